"""Clock rates of a board, and what holds them down."""

from typing import Final

from exporter.nvml.simulated.readings.read import BoardReads
from simulator.clocks import COUNTED, SUPPORTED
from simulator.gpu import SimulatedGpu
from slicewatch.catalog.readings.clocks import (
    BITS,
    Clock,
    ClockEvents,
    ClockEventTimes,
    MaxClocks,
    PerformanceState,
)


def _max_clocks(gpu: SimulatedGpu) -> MaxClocks:
    return MaxClocks(*gpu.sensors.max_clocks_mhz)


def _events(gpu: SimulatedGpu) -> ClockEvents:
    return ClockEvents(gpu.sensors.event_mask, sum(BITS[event] for event in SUPPORTED))


def _event_times(gpu: SimulatedGpu) -> ClockEventTimes:
    times = {f"{one}_nanoseconds": gpu.sensors.event_nanoseconds(one) for one in COUNTED}
    return ClockEventTimes(**times)


BOARD: Final[BoardReads] = {
    "sm_clock": lambda gpu: Clock(gpu.sm_clock_mhz),
    "memory_clock": lambda gpu: Clock(gpu.memory_clock_mhz),
    "video_clock": lambda gpu: Clock(gpu.sensors.video_clock_mhz),
    "max_clocks": _max_clocks,
    "performance_state": lambda gpu: PerformanceState(gpu.sensors.performance_state),
    "clock_events": _events,
    "clock_event_times": _event_times,
}
