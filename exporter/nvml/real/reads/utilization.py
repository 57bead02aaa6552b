"""Utilization of a GPU that is not partitioned: the driver's samples, and its current rates."""

import struct
from collections.abc import Iterable
from typing import Final

import pynvml
from pynvml import NVMLError

from exporter.nvml.protocol import Outcome, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.reads.read import Read, Reads
from exporter.nvml.real.returns import UNSUPPORTED, Return
from slicewatch.catalog.readings.utilization import EngineRate

_SAMPLE: Final = struct.Struct("@QI")

# The buffer may grow between the call that asks for its size and the one that reads it.
_SAMPLE_ATTEMPTS: Final = 3


def samples(handle: Handle, since_us: int) -> Iterable[tuple[int, int]]:
    """Return the utilization samples after a timestamp: pairs of (microseconds, percent).

    Raises:
        NVMLError: NOT_FOUND where none is newer, or what else the call answers.
    """
    for attempt in range(1, _SAMPLE_ATTEMPTS + 1):
        try:
            _, found = pynvml.nvmlDeviceGetSamples(
                handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES, since_us
            )
            return map(_SAMPLE.unpack_from, found)
        except NVMLError as error:
            if error.value != Return.INSUFFICIENT_SIZE or attempt == _SAMPLE_ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def current_percent(handle: Handle) -> int | None:
    """Return the driver's current rate, or None on a board that has samples but no rate.

    Raises:
        NVMLError: the call failed.
    """
    try:
        return pynvml.nvmlDeviceGetUtilizationRates(handle).gpu
    except NVMLError as error:
        if error.value not in UNSUPPORTED:
            raise
        return None


def _memory_interface(_: Calls, handle: Handle) -> Outcome[EngineRate]:
    return Value(EngineRate(pynvml.nvmlDeviceGetUtilizationRates(handle).memory))


def _engine(function: str) -> Read:
    def read(calls: Calls, handle: Handle) -> Outcome[EngineRate]:
        percent, _ = calls.two_numbers(function, handle)
        return Value(EngineRate(percent))

    return read


BOARD: Final[Reads] = {
    "memory_interface": _memory_interface,
    "encoder": _engine("nvmlDeviceGetEncoderUtilization"),
    "decoder": _engine("nvmlDeviceGetDecoderUtilization"),
    "jpeg": _engine("nvmlDeviceGetJpgUtilization"),
    "ofa": _engine("nvmlDeviceGetOfaUtilization"),
}
