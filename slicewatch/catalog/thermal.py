"""Heat beyond the temperature of the die: memory, margins, thresholds, fans.

A margin is a difference of temperatures, and is in degrees Celsius as well.
"""

from typing import Final

from slicewatch.catalog.model import CELSIUS, Label, Labelled, Limits, Probe, Scope, Unit
from slicewatch.catalog.readings.thermal import (
    Fans,
    MemoryTemperature,
    TemperatureMargin,
    Thresholds,
)

BOARD: Final = frozenset({Scope.GPU})
# NVML counts from the noise that is tolerated, which a fan may exceed.
FAN_SPEED: Final = Limits(low=0, high=2)

# What has a thermal mass moves over some seconds.
MEMORY_TEMPERATURE: Final = Probe(
    name="memory_temperature", reading=MemoryTemperature, scopes=BOARD, interval_seconds=5
)
TEMPERATURE_MARGIN: Final = Probe(
    name="temperature_margin", reading=TemperatureMargin, scopes=BOARD, interval_seconds=5
)
TEMPERATURE_THRESHOLDS: Final = Probe(
    name="temperature_thresholds", reading=Thresholds, scopes=BOARD, interval_seconds=60
)
MARGIN_THRESHOLDS: Final = Probe(
    name="margin_thresholds", reading=Thresholds, scopes=BOARD, interval_seconds=60
)
FANS: Final = Probe(name="fans", reading=Fans, scopes=BOARD, interval_seconds=10)


def _thresholds(reading: Thresholds) -> Labelled:
    return {
        "shutdown": reading.shutdown_celsius,
        "slowdown": reading.slowdown_celsius,
        "memory_max": reading.memory_max_celsius,
        "gpu_max": reading.gpu_max_celsius,
    }


def _speeds(reading: Fans) -> Labelled:
    return {
        str(fan): None if percent is None else percent / 100
        for fan, percent in enumerate(reading.percents)
    }


METRICS: Final = (
    MEMORY_TEMPERATURE.gauge(
        "gpu_memory_temperature_celsius",
        help="Temperature of the device memory, on boards that measure it.",
        unit=Unit.CELSIUS,
        limits=CELSIUS,
        value=lambda r: r.celsius,
    ),
    TEMPERATURE_MARGIN.gauge(
        "gpu_temperature_margin_celsius",
        help="Degrees between the GPU and its nearest slowdown threshold, below 0 once that is passed.",
        unit=Unit.CELSIUS,
        limits=CELSIUS,
        value=lambda r: r.celsius,
    ),
    TEMPERATURE_THRESHOLDS.gauge(
        "gpu_temperature_threshold_celsius",
        help="Temperature from which the board reacts; boards from Ada on state it under older drivers only.",
        unit=Unit.CELSIUS,
        limits=CELSIUS,
        labels=(Label.KIND,),
        value=_thresholds,
    ),
    MARGIN_THRESHOLDS.gauge(
        "gpu_temperature_margin_threshold_celsius",
        help="Margin down to which the board does not react yet (T.Limit), as it is stated from Ada on.",
        unit=Unit.CELSIUS,
        limits=CELSIUS,
        labels=(Label.KIND,),
        value=_thresholds,
    ),
    FANS.gauge(
        "gpu_fan_speed_ratio",
        help="Speed that a fan is told to run at, relative to its loudest tolerated one; may exceed 1.",
        unit=Unit.RATIO,
        limits=FAN_SPEED,
        labels=(Label.FAN,),
        value=_speeds,
    ),
)
