"""Heat beyond the temperature of the die, and the fans."""

from functools import partial
from typing import Final

import pynvml
from pynvml import NVMLError

from exporter.nvml.protocol import Outcome, Unsupported, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.reads.parts import parts
from exporter.nvml.real.reads.read import Reads
from exporter.nvml.real.returns import TOO_OLD
from slicewatch.catalog.readings.thermal import (
    Fans,
    MemoryTemperature,
    TemperatureMargin,
    Thresholds,
)

# A driver in trouble may claim billions.
MOST_FANS: Final = 16

# In the order of the fields of Thresholds.
_THRESHOLDS: Final = (
    pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,
    pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
    pynvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX,
    pynvml.NVML_TEMPERATURE_THRESHOLD_GPU_MAX,
)
_MARGINS: Final = (
    (pynvml.NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, 0),
    (pynvml.NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, 0),
    (pynvml.NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT, 0),
    (pynvml.NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT, 0),
)


def _memory_temperature(calls: Calls, handle: Handle) -> Outcome[MemoryTemperature]:
    return Value(MemoryTemperature(*calls.fields(handle, (pynvml.NVML_FI_DEV_MEMORY_TEMP, 0))))


def _margin(_: Calls, handle: Handle) -> Outcome[TemperatureMargin]:
    return Value(TemperatureMargin(pynvml.nvmlDeviceGetMarginTemperature(handle)))


def _thresholds(_: Calls, handle: Handle) -> Outcome[Thresholds]:
    ask = partial(pynvml.nvmlDeviceGetTemperatureThreshold, handle)
    return Value(Thresholds(*parts(*(partial(ask, kind) for kind in _THRESHOLDS))))


def _margin_thresholds(calls: Calls, handle: Handle) -> Outcome[Thresholds]:
    return Value(Thresholds(*calls.fields(handle, *_MARGINS)))


def _fans(_: Calls, handle: Handle) -> Outcome[Fans]:
    try:
        number = pynvml.nvmlDeviceGetNumFans(handle)
    except NVMLError as error:
        if error.value not in TOO_OLD:
            raise
        return Value(Fans((pynvml.nvmlDeviceGetFanSpeed(handle),)))
    if number == 0:
        return Unsupported("device")
    ask = partial(pynvml.nvmlDeviceGetFanSpeed_v2, handle)
    speeds = parts(*(partial(ask, fan) for fan in range(min(number, MOST_FANS))))
    return Value(Fans(tuple(speeds)))


BOARD: Final[Reads] = {
    "memory_temperature": _memory_temperature,
    "temperature_margin": _margin,
    "temperature_thresholds": _thresholds,
    "margin_thresholds": _margin_thresholds,
    "fans": _fans,
}
