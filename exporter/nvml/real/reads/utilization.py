"""The reads: one function a probe, from a handle to an outcome. Nothing is kept between them.

A read raises the binding's error for a call that failed; who called turns it into an outcome.
"""

import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

import pynvml
from pynvml import NVMLError

from exporter.nvml.protocol import Outcome, Unsupported, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.returns import TOO_OLD, Return, outcome_of
from slicewatch.catalog.readings import Clock, Energy, Memory, Power, Temperature

# What a probe reads differs from probe to probe; the session gives the type back.
Read = Callable[[Calls, Handle], Outcome[Any]]

_SAMPLE: Final = struct.Struct("@QI")

_OF_MIG_INSTANCE: Final = Unsupported("mig_instance")
_WHILE_MIG_ENABLED: Final = Unsupported("mig_enabled")
# The buffer may grow between the call that asks for its size and the one that reads it.
_SAMPLE_ATTEMPTS: Final = 3


def _memory(calls: Calls, handle: Handle) -> Outcome[Memory]:
    # Version 1 counts what the driver reserved as used and does not say how much it is: where
    # version 2 is missing, the true use is unknown.
    total, reserved, free, used = calls.memory(handle)
    # The header says both of ``used``: with what is reserved, and without. The sum tells which.
    if reserved and free + used == total:
        used -= reserved
    return Value(Memory(total, free, used, reserved))


def _power(calls: Calls, handle: Handle) -> Outcome[Power]:
    return Value(Power(calls.number("nvmlDeviceGetPowerUsage", handle)))


def _energy(calls: Calls, handle: Handle) -> Outcome[Energy]:
    return Value(Energy(calls.long_number("nvmlDeviceGetTotalEnergyConsumption", handle)))


def _sm_clock(calls: Calls, handle: Handle) -> Outcome[Clock]:
    return Value(Clock(calls.number("nvmlDeviceGetClockInfo", handle, pynvml.NVML_CLOCK_SM)))


def _memory_clock(calls: Calls, handle: Handle) -> Outcome[Clock]:
    return Value(Clock(calls.number("nvmlDeviceGetClockInfo", handle, pynvml.NVML_CLOCK_MEM)))


def _temperature(calls: Calls, handle: Handle) -> Outcome[Temperature]:
    sensor = pynvml.NVML_TEMPERATURE_GPU
    try:
        celsius = pynvml.nvmlDeviceGetTemperatureV(handle, sensor)
    except NVMLError as error:
        if error.value not in TOO_OLD:
            raise
        celsius = calls.number("nvmlDeviceGetTemperature", handle, sensor)
    return Value(Temperature(celsius))


def _not_of_mig_instance(_: Calls, __: Handle) -> Outcome[Any]:
    return _OF_MIG_INSTANCE


def _not_while_mig_enabled(_: Calls, __: Handle) -> Outcome[Any]:
    return _WHILE_MIG_ENABLED


# By name of the probe: of a GPU in MIG mode, and of an instance on it. A GPU that is not
# partitioned has utilization besides, which needs a cursor and so belongs to the session.
PARTITIONED: Final[dict[str, Read]] = {
    "memory": _memory,
    "power": _power,
    "energy": _energy,
    "temperature": _temperature,
    "sm_clock": _sm_clock,
    "memory_clock": _memory_clock,
    "utilization": _not_while_mig_enabled,
}
INSTANCE: Final[dict[str, Read]] = {
    **dict.fromkeys(PARTITIONED, _not_of_mig_instance),
    "memory": _memory,
}


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
        if not isinstance(outcome_of(error.value), Unsupported):
            raise
        return None
