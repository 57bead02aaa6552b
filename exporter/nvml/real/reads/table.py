"""Which function reads which probe: of a board, of one in MIG mode, of a MIG instance."""

from typing import Any, Final

from exporter.nvml.protocol import Outcome, Unsupported
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.reads import (
    clocks,
    errors,
    licensing,
    memory,
    nvlink,
    pcie,
    power,
    state,
    thermal,
    utilization,
)
from exporter.nvml.real.reads.read import Reads

DOMAINS: Final = (
    memory,
    power,
    clocks,
    utilization,
    thermal,
    errors,
    state,
    pcie,
    nvlink,
    licensing,
)

OF_MIG_INSTANCE: Final = Unsupported("mig_instance")
WHILE_MIG_ENABLED: Final = Unsupported("mig_enabled")


def not_while_mig_enabled(_: Calls, __: Handle) -> Outcome[Any]:
    """Answer for what is not measured while a GPU is partitioned."""
    return WHILE_MIG_ENABLED


# By name of the probe; what a table lacks, an instance does not have.
BOARD: Final[Reads] = {k: v for domain in DOMAINS for k, v in domain.BOARD.items()}
INSTANCE: Final[Reads] = {**memory.INSTANCE, **errors.INSTANCE, **state.INSTANCE}
# Of a GPU in MIG mode.
PARTITIONED: Final[Reads] = {
    **BOARD,
    **errors.PARTITIONED,
    **dict.fromkeys(
        (*utilization.BOARD, *nvlink.BOARD, "processes", "process_utilization", "compute_mode"),
        not_while_mig_enabled,
    ),
}
