"""Clock rates of a board, and what holds them down."""

from functools import partial
from typing import Final

import pynvml
from pynvml import NVMLError

from exporter.nvml.protocol import Outcome, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.reads.parts import parts
from exporter.nvml.real.reads.read import Read, Reads
from exporter.nvml.real.returns import TOO_OLD, UNSUPPORTED
from slicewatch.catalog.readings.clocks import (
    Clock,
    ClockEvents,
    ClockEventTimes,
    MaxClocks,
    PerformanceState,
)

# In the order of the fields of MaxClocks.
_DOMAINS: Final = (
    pynvml.NVML_CLOCK_GRAPHICS,
    pynvml.NVML_CLOCK_SM,
    pynvml.NVML_CLOCK_MEM,
    pynvml.NVML_CLOCK_VIDEO,
)
# In the order of the fields of ClockEventTimes, and what older drivers count for the third.
_EVENT_FIELDS: Final = (
    (pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP, 0),
    (pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST, 0),
    (pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, 0),
    (pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, 0),
    (pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, 0),
    (pynvml.NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, 0),
    (pynvml.NVML_FI_DEV_PERF_POLICY_RELIABILITY, 0),
    (pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL, 0),
)
_POLICIES: Final = (
    pynvml.NVML_PERF_POLICY_POWER,
    pynvml.NVML_PERF_POLICY_SYNC_BOOST,
    pynvml.NVML_PERF_POLICY_THERMAL,
    pynvml.NVML_PERF_POLICY_BOARD_LIMIT,
    pynvml.NVML_PERF_POLICY_RELIABILITY,
)


def _clock(domain: int) -> Read:
    def read(calls: Calls, handle: Handle) -> Outcome[Clock]:
        return Value(Clock(calls.number("nvmlDeviceGetClockInfo", handle, domain)))

    return read


def _max_clocks(_: Calls, handle: Handle) -> Outcome[MaxClocks]:
    ask = partial(pynvml.nvmlDeviceGetMaxClockInfo, handle)
    return Value(MaxClocks(*parts(*(partial(ask, domain) for domain in _DOMAINS))))


def _performance_state(_: Calls, handle: Handle) -> Outcome[PerformanceState]:
    return Value(PerformanceState(pynvml.nvmlDeviceGetPerformanceState(handle)))


def _events(calls: Calls, handle: Handle) -> Outcome[ClockEvents]:
    active = _mask(calls, handle, "nvmlDeviceGetCurrentClocks{}Reasons")
    try:
        supported = _mask(calls, handle, "nvmlDeviceGetSupportedClocks{}Reasons")
    except NVMLError as error:
        if error.value not in UNSUPPORTED:
            raise
        return Value(ClockEvents(active, None))
    return Value(ClockEvents(active, supported))


def _mask(calls: Calls, handle: Handle, function: str) -> int:
    try:
        return calls.long_number(function.format("Event"), handle)
    except NVMLError as error:
        if error.value not in TOO_OLD:
            raise
        return calls.long_number(function.format("Throttle"), handle)


def _event_times(calls: Calls, handle: Handle) -> Outcome[ClockEventTimes]:
    try:
        power, boost, thermal, *others, older_thermal = calls.fields(handle, *_EVENT_FIELDS)
    except NVMLError as error:
        if error.value not in UNSUPPORTED:
            raise
        return Value(_event_times_by_policy(handle))
    return Value(
        ClockEventTimes(power, boost, older_thermal if thermal is None else thermal, *others)
    )


def _event_times_by_policy(handle: Handle) -> ClockEventTimes:
    ask = partial(pynvml.nvmlDeviceGetViolationStatus, handle)
    found = parts(*(partial(ask, policy) for policy in _POLICIES))
    times = [None if one is None else one.violationTime for one in found]
    power, boost, thermal, board, reliability = times
    return ClockEventTimes(
        power, boost, thermal, board_limit_nanoseconds=board, reliability_nanoseconds=reliability
    )


BOARD: Final[Reads] = {
    "sm_clock": _clock(pynvml.NVML_CLOCK_SM),
    "memory_clock": _clock(pynvml.NVML_CLOCK_MEM),
    "video_clock": _clock(pynvml.NVML_CLOCK_VIDEO),
    "max_clocks": _max_clocks,
    "performance_state": _performance_state,
    "clock_events": _events,
    "clock_event_times": _event_times,
}
