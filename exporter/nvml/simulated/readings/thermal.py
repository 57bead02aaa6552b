"""Heat beyond the temperature of the die, and the fans."""

from typing import Final

from exporter.nvml.protocol import Unsupported
from exporter.nvml.simulated.readings.read import BoardReads
from simulator import thermal
from simulator.gpu import SimulatedGpu
from slicewatch.catalog.readings.thermal import (
    Fans,
    MemoryTemperature,
    TemperatureMargin,
    Thresholds,
)

_NONE: Final = Unsupported("device")


def _memory(gpu: SimulatedGpu) -> MemoryTemperature | Unsupported:
    celsius = thermal.memory_celsius(gpu.model.limits, gpu.temperature_celsius)
    return _NONE if celsius is None else MemoryTemperature(celsius)


def _margin(gpu: SimulatedGpu) -> TemperatureMargin | Unsupported:
    celsius = thermal.margin_celsius(gpu.model, gpu.temperature_celsius)
    return _NONE if celsius is None else TemperatureMargin(celsius)


def _thresholds(gpu: SimulatedGpu) -> Thresholds | Unsupported:
    stated = thermal.thresholds(gpu.model.limits)
    return _NONE if gpu.model.states_margins else _shown(gpu, stated)


def _margin_thresholds(gpu: SimulatedGpu) -> Thresholds | Unsupported:
    stated = thermal.margin_thresholds(gpu.model.limits)
    return _shown(gpu, stated) if gpu.model.states_margins else _NONE


def _shown(gpu: SimulatedGpu, stated: tuple[int | None, ...]) -> Thresholds:
    return Thresholds(*(None if one is None else gpu.sensors.shown(one) for one in stated))


def _fans(gpu: SimulatedGpu) -> Fans | Unsupported:
    percents = thermal.fan_percents(gpu.model.limits, gpu.temperature_celsius)
    return Fans(percents) if percents else _NONE


BOARD: Final[BoardReads] = {
    "memory_temperature": _memory,
    "temperature_margin": _margin,
    "temperature_thresholds": _thresholds,
    "margin_thresholds": _margin_thresholds,
    "fans": _fans,
}
