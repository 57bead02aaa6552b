"""What a simulated GPU answers, one file per domain; each only says, and reads the GPU alone."""

from collections.abc import Callable
from typing import Final

from simulator.gpu import SimulatedGpu
from testbed.driver.answers import Answers
from testbed.driver.answers_of import (
    clocks,
    errors,
    gpm,
    licensing,
    memory,
    nvlink,
    pcie,
    power,
    processes,
    state,
    thermal,
    utilization,
    vgpu,
)

DOMAINS: Final[tuple[Callable[[SimulatedGpu, Answers], None], ...]] = (
    clocks.answers,
    errors.answers,
    gpm.answers,
    licensing.answers,
    memory.answers,
    nvlink.answers,
    pcie.answers,
    power.answers,
    processes.answers,
    state.answers,
    thermal.answers,
    utilization.answers,
    vgpu.answers,
)
