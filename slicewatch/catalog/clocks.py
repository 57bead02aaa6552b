"""Clock rates of a board, and what holds them down.

What changes with the load is read every tick only where users always saw it; for the rest a few
seconds suffice, since the time of each event is counted by the driver.
"""

from typing import Final

from slicewatch.catalog.model import (
    FLAG,
    HERTZ,
    MEGAHERTZ,
    Label,
    Labelled,
    Limits,
    Probe,
    Scope,
    Stability,
    Unit,
)
from slicewatch.catalog.readings.clocks import (
    Clock,
    ClockEvent,
    ClockEvents,
    ClockEventTimes,
    MaxClocks,
    PerformanceState,
)

BOARD: Final = frozenset({Scope.GPU})
FASTEST, SLOWEST, UNKNOWN_STATE = 0, 15, 32
# More than thirty years, less than any word for "not available".
EVENT_SECONDS: Final = Limits(low=0, high=1e9)

SM_CLOCK: Final = Probe(name="sm_clock", reading=Clock, scopes=BOARD)
MEMORY_CLOCK: Final = Probe(name="memory_clock", reading=Clock, scopes=BOARD)
VIDEO_CLOCK: Final = Probe(name="video_clock", reading=Clock, scopes=BOARD, interval_seconds=5)
MAX_CLOCKS: Final = Probe(name="max_clocks", reading=MaxClocks, scopes=BOARD, interval_seconds=60)
PERFORMANCE_STATE: Final = Probe(
    name="performance_state", reading=PerformanceState, scopes=BOARD, interval_seconds=5
)
CLOCK_EVENTS: Final = Probe(
    name="clock_events",
    reading=ClockEvents,
    scopes=BOARD,
    interval_seconds=5,
    consistent=lambda r: r.consistent(),
)
CLOCK_EVENT_TIMES: Final = Probe(
    name="clock_event_times", reading=ClockEventTimes, scopes=BOARD, interval_seconds=5
)


def _hertz(megahertz: int | None) -> float | None:
    return None if megahertz is None else megahertz * 1e6


def _max_clocks(reading: MaxClocks) -> Labelled:
    return {
        "graphics": _hertz(reading.graphics_megahertz),
        "sm": _hertz(reading.sm_megahertz),
        "memory": _hertz(reading.memory_megahertz),
        "video": _hertz(reading.video_megahertz),
    }


def _event_seconds(reading: ClockEventTimes) -> dict[str, float | None]:
    return {
        ClockEvent.SW_POWER_CAP: _seconds(reading.sw_power_cap_nanoseconds),
        ClockEvent.SYNC_BOOST: _seconds(reading.sync_boost_nanoseconds),
        ClockEvent.SW_THERMAL_SLOWDOWN: _seconds(reading.sw_thermal_slowdown_nanoseconds),
        ClockEvent.HW_THERMAL_SLOWDOWN: _seconds(reading.hw_thermal_slowdown_nanoseconds),
        ClockEvent.HW_POWER_BRAKE: _seconds(reading.hw_power_brake_nanoseconds),
        ClockEvent.BOARD_LIMIT: _seconds(reading.board_limit_nanoseconds),
        ClockEvent.RELIABILITY: _seconds(reading.reliability_nanoseconds),
    }


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9


METRICS: Final = (
    SM_CLOCK.gauge(
        "gpu_sm_clock_mhz",
        help="Current clock of the streaming multiprocessors.",
        unit=Unit.MEGAHERTZ,
        limits=MEGAHERTZ,
        value=lambda r: r.megahertz,
        stability=Stability.STABLE,
    ),
    MEMORY_CLOCK.gauge(
        "gpu_mem_clock_mhz",
        help="Current clock of the device memory.",
        unit=Unit.MEGAHERTZ,
        limits=MEGAHERTZ,
        value=lambda r: r.megahertz,
        stability=Stability.STABLE,
    ),
    VIDEO_CLOCK.gauge(
        "gpu_video_clock_hertz",
        help="Current clock of the video encoders and decoders.",
        unit=Unit.HERTZ,
        limits=HERTZ,
        value=lambda r: _hertz(r.megahertz),
    ),
    MAX_CLOCKS.gauge(
        "gpu_max_clock_hertz",
        help="Highest clock that a clock domain of the board can have.",
        unit=Unit.HERTZ,
        limits=HERTZ,
        labels=(Label.KIND,),
        value=_max_clocks,
    ),
    PERFORMANCE_STATE.gauge(
        "gpu_performance_state",
        help="Performance state (P-state) of the GPU: 0 is the fastest, 15 the slowest.",
        unit=Unit.NONE,
        limits=Limits(low=FASTEST, high=SLOWEST),
        value=lambda r: None if r.number == UNKNOWN_STATE else r.number,
    ),
    CLOCK_EVENTS.gauge(
        "gpu_clock_event_active",
        help="1 while the reason holds clocks below their highest; 0 only for reasons that the board can have.",
        unit=Unit.NONE,
        limits=FLAG,
        labels=(Label.REASON,),
        value=lambda r: r.active(),
    ),
    CLOCK_EVENT_TIMES.counter(
        "gpu_clock_event_seconds_total",
        help="Time in which the reason held clocks down, as the driver counts it.",
        unit=Unit.SECONDS,
        limits=EVENT_SECONDS,
        labels=(Label.REASON,),
        value=_event_seconds,
    ),
)
