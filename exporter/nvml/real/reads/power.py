"""Power, energy and temperature of a board."""

from typing import Final

import pynvml
from pynvml import NVMLError

from exporter.nvml.protocol import Outcome, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.reads.parts import parts
from exporter.nvml.real.reads.read import Reads
from exporter.nvml.real.returns import TOO_OLD
from slicewatch.catalog.readings.power import (
    Energy,
    Power,
    PowerDraw,
    PowerLimits,
    Temperature,
)

# Of the GPU alone, without the CPU that may share its module.
_GPU_SCOPE: Final = 0


def _power(calls: Calls, handle: Handle) -> Outcome[Power]:
    return Value(Power(calls.number("nvmlDeviceGetPowerUsage", handle)))


def _power_draw(calls: Calls, handle: Handle) -> Outcome[PowerDraw]:
    instant, average = calls.fields(
        handle,
        (pynvml.NVML_FI_DEV_POWER_INSTANT, _GPU_SCOPE),
        (pynvml.NVML_FI_DEV_POWER_AVERAGE, _GPU_SCOPE),
    )
    return Value(PowerDraw(instant, average))


def _power_limits(_: Calls, handle: Handle) -> Outcome[PowerLimits]:
    # Older drivers have these functions, but not the fields for the same.
    enforced, management, default, bounds = parts(
        lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle),
        lambda: pynvml.nvmlDeviceGetPowerManagementLimit(handle),
        lambda: pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle),
        lambda: pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle),
    )
    least, most = bounds or (None, None)
    return Value(PowerLimits(enforced, management, default, least, most))


def _energy(calls: Calls, handle: Handle) -> Outcome[Energy]:
    return Value(Energy(calls.long_number("nvmlDeviceGetTotalEnergyConsumption", handle)))


def _temperature(calls: Calls, handle: Handle) -> Outcome[Temperature]:
    sensor = pynvml.NVML_TEMPERATURE_GPU
    try:
        celsius = pynvml.nvmlDeviceGetTemperatureV(handle, sensor)
    except NVMLError as error:
        if error.value not in TOO_OLD:
            raise
        celsius = calls.number("nvmlDeviceGetTemperature", handle, sensor)
    return Value(Temperature(celsius))


BOARD: Final[Reads] = {
    "power": _power,
    "power_draw": _power_draw,
    "power_limits": _power_limits,
    "energy": _energy,
    "temperature": _temperature,
}
