"""Which function reads which probe, of a board and of a MIG device on it."""

from typing import Final

from exporter.nvml.simulated.readings import (
    clocks,
    errors,
    licensing,
    memory,
    nvlink,
    pcie,
    power,
    processes,
    state,
    thermal,
    utilization,
)
from exporter.nvml.simulated.readings.read import BoardReads, InstanceReads

DOMAINS: Final = (
    memory,
    power,
    clocks,
    processes,
    thermal,
    utilization,
    errors,
    state,
    pcie,
    nvlink,
    licensing,
)

BOARD: Final[BoardReads] = {k: v for domain in DOMAINS for k, v in domain.BOARD.items()}
INSTANCE: Final[InstanceReads] = {
    **memory.INSTANCE, **processes.INSTANCE, **errors.INSTANCE, **state.INSTANCE,
}  # fmt: skip
