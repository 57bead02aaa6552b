"""Clocks, and what holds them down."""

from ctypes import c_uint64
from typing import Final

from simulator.clocks import SUPPORTED
from simulator.gpu import SimulatedGpu
from slicewatch.catalog.readings.clocks import BITS, ClockEvent
from testbed.driver.answers import Answers, nvml

# nvmlClockType_t.
SM, MEMORY, VIDEO = 1, 2, 3

# How an event is counted: the field, and the policy of the older call where it has one.
COUNTERS: Final = {
    ClockEvent.SW_POWER_CAP: (nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP, 0),
    ClockEvent.SYNC_BOOST: (nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST, 2),
    ClockEvent.SW_THERMAL_SLOWDOWN: (nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, 1),
    ClockEvent.HW_THERMAL_SLOWDOWN: (nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, None),
    ClockEvent.HW_POWER_BRAKE: (
        nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
        None,
    ),
}


def answers(gpu: SimulatedGpu, into: Answers) -> None:
    """Put the clocks of a GPU, its P-state, and the events with their times."""
    sensors = gpu.sensors
    into.put("nvmlDeviceGetClockInfo", sensors.sm_clock_mhz, key=(SM, 0))
    into.put("nvmlDeviceGetClockInfo", sensors.memory_clock_mhz, key=(MEMORY, 0))
    into.put("nvmlDeviceGetClockInfo", sensors.video_clock_mhz, key=(VIDEO, 0))
    for domain, megahertz in enumerate(sensors.max_clocks_mhz):
        into.put("nvmlDeviceGetMaxClockInfo", megahertz, key=(domain, 0))
    into.put("nvmlDeviceGetPerformanceState", sensors.performance_state)
    into.put("nvmlDeviceGetCurrentClocksEventReasons", c_uint64(sensors.event_mask))
    supported = sum(BITS[event] for event in SUPPORTED)
    into.put("nvmlDeviceGetSupportedClocksEventReasons", c_uint64(supported))
    for event, (field, policy) in COUNTERS.items():
        nanoseconds = sensors.event_nanoseconds(event)
        into.put_field(field, c_uint64(nanoseconds))
        if policy is not None:
            time = nvml.c_nvmlViolationTime_t(violationTime=nanoseconds)
            into.put("nvmlDeviceGetViolationStatus", time, key=(policy, 0))
