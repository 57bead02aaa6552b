"""Processes on a device, and what each of them used of it."""

from enum import StrEnum
from typing import Final

import msgspec

MICROSECONDS: Final = 1_000_000

# The driver's ring of process samples wraps after this time: what was before it is not known.
LONGEST_SPAN_US: Final = 10 * MICROSECONDS


class ProcessKind(StrEnum):
    """By which list NVML names a process. A client of MPS is in the compute list of no driver."""

    COMPUTE = "compute"
    GRAPHICS = "graphics"
    MPS = "mps"


class GpuProcess(msgspec.Struct, frozen=True, gc=False):
    """A process with a context on the device.

    Attributes:
        used_bytes: device memory that it holds; None where the driver does not say.
    """

    pid: int
    kind: ProcessKind
    used_bytes: int | None = None


class Processes(msgspec.Struct, frozen=True, gc=False):
    """Every process with a context on the device, each once."""

    found: tuple[GpuProcess, ...]


class ProcessShare(msgspec.Struct, frozen=True, gc=False):
    """How much of the span one process kept the SMs busy.

    Attributes:
        at_us: CPU timestamp of the last sample in which it was seen.
        percent: the samples in which it ran, over all samples of the span; a whole number, cut.
    """

    pid: int
    at_us: int
    percent: int


class ProcessUtilization(msgspec.Struct, frozen=True, gc=False):
    """Shares of the processes in the time between two reads.

    The driver draws a sample about seven times a second and gives each to the one process that ran
    at that moment: a share is an estimate, the better the longer the span. A process without a
    share used nothing.

    Attributes:
        shares: without what cannot be true.
        since_us, until_us: the span, on the CPU's clock; ``since_us`` is None at the first read.
        rejected: how many entries could not be true.
    """

    shares: tuple[ProcessShare, ...]
    since_us: int | None
    until_us: int
    rejected: int = 0

    def covered_us(self) -> int:
        """Return the length of the span; 0 if the driver no longer held all of it."""
        if self.since_us is None:
            return 0
        span = self.until_us - self.since_us
        return span if 0 < span <= LONGEST_SPAN_US else 0
