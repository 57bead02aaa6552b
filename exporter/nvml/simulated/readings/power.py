"""Power, energy and temperature of a board."""

from typing import Final

from exporter.nvml.simulated.readings.read import BoardReads
from simulator.gpu import SimulatedGpu
from slicewatch.catalog.readings.power import (
    Energy,
    Power,
    PowerDraw,
    PowerLimits,
    Temperature,
)


def _draw(gpu: SimulatedGpu) -> PowerDraw:
    sensors = gpu.sensors
    return PowerDraw(sensors.power_instant_milliwatts, sensors.power_average_milliwatts)


def _limits(gpu: SimulatedGpu) -> PowerLimits:
    least, most = gpu.sensors.power_bounds_milliwatts
    return PowerLimits(most, most, most, least, most)


BOARD: Final[BoardReads] = {
    "power": lambda gpu: Power(gpu.power_milliwatts),
    "power_draw": _draw,
    "power_limits": _limits,
    "energy": lambda gpu: Energy(gpu.energy_millijoules),
    "temperature": lambda gpu: Temperature(gpu.temperature_celsius),
}
