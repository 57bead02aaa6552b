"""Device memory, of a board and of a MIG instance."""

from typing import Final

import pynvml

from exporter.nvml.protocol import Outcome, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.reads.read import Reads
from slicewatch.catalog.readings.memory import Bar1Memory, Memory


def _memory(calls: Calls, handle: Handle) -> Outcome[Memory]:
    # Version 1 counts what the driver reserved as used and does not say how much it is: where
    # version 2 is missing, the true use is unknown.
    total, reserved, free, used = calls.memory(handle)
    # The header says both of ``used``: with what is reserved, and without. The sum tells which.
    if reserved and free + used == total:
        used -= reserved
    return Value(Memory(total, free, used, reserved))


def _bar1(_: Calls, handle: Handle) -> Outcome[Bar1Memory]:
    window = pynvml.nvmlDeviceGetBAR1MemoryInfo(handle)
    return Value(Bar1Memory(window.bar1Total, window.bar1Free, window.bar1Used))


BOARD: Final[Reads] = {"memory": _memory, "bar1_memory": _bar1}
INSTANCE: Final[Reads] = {"memory": _memory, "bar1_memory": _bar1}
