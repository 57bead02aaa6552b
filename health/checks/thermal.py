"""Heat, and what holds clocks down for a reason other than the load.

One temperature for all boards is wrong for most of them: some slow down below 90 degrees, others
work at 88 all day. So the operator's limit warns; that a GPU is taken out of service for heat
takes the board's own word: that it slows down, and that it is beyond its own limit.
"""

from collections.abc import Callable
from typing import Final

from health.case import Case
from health.checks.model import (
    THREE_POLLS_SECONDS,
    Action,
    Check,
    CheckId,
    Healthy,
    Judgement,
    Unhealthy,
)
from health.checks.reading import (
    NoEvidenceError,
    careful,
    read,
    read_if_any,
    rise_per_second,
)
from slicewatch.catalog.clocks import CLOCK_EVENT_TIMES, CLOCK_EVENTS
from slicewatch.catalog.model import Limits
from slicewatch.catalog.power import TEMPERATURE
from slicewatch.catalog.readings.clocks import BITS, ClockEvent, ClockEventTimes
from slicewatch.catalog.thermal import (
    MARGIN_THRESHOLDS,
    TEMPERATURE_MARGIN,
    TEMPERATURE_THRESHOLDS,
)

# Broken sensors read 0, words for "not available" more than 200.
TEMPERATURES: Final = Limits(low=1, high=199)
# Less of the time is a clock that is being set.
HELD_DOWN_RATIO: Final = 0.1
NANOSECONDS: Final = 1e9


def _celsius(case: Case) -> int:
    celsius = read(case.newest, TEMPERATURE).celsius
    if not TEMPERATURES.hold(celsius):
        raise NoEvidenceError("the temperature is impossible")
    return celsius


def _is_hot(case: Case) -> bool:
    return _celsius(case) > case.thresholds.temperature_celsius


@careful
def _hot(case: Case) -> Judgement:
    if not _is_hot(case):
        return Healthy()
    return Unhealthy(
        message=f"hotter than {case.thresholds.temperature_celsius:g} °C",
        action=None if case.thresholds.hot_cordons else Action.WARN,
    )


@careful
def _overheated(case: Case) -> Judgement:
    if not _is_hot(case):
        return Healthy()
    if _is_beyond(case) and _is_slowed(case, *_HARDWARE):
        return Unhealthy(message="slowed down by heat, and beyond the board's own limit")
    return Healthy()


def _is_beyond(case: Case) -> bool:
    """Tell whether the board is where its hardware slows down, by a margin or a temperature.

    Raises:
        NoEvidenceError: it states neither.
    """
    margin = read_if_any(case.newest, TEMPERATURE_MARGIN)
    offsets = read_if_any(case.newest, MARGIN_THRESHOLDS)
    if margin is not None and offsets is not None and offsets.slowdown_celsius is not None:
        return margin.celsius <= offsets.slowdown_celsius
    limits = read(case.newest, TEMPERATURE_THRESHOLDS)
    if limits.slowdown_celsius is None or not TEMPERATURES.hold(limits.slowdown_celsius):
        raise NoEvidenceError("the board does not state where it slows down")
    return _celsius(case) >= limits.slowdown_celsius


_Count = Callable[[ClockEventTimes], int | None]
_HARDWARE: Final[tuple[ClockEvent, _Count]] = (
    ClockEvent.HW_THERMAL_SLOWDOWN,
    lambda r: r.hw_thermal_slowdown_nanoseconds,
)
_SOFTWARE: Final[tuple[ClockEvent, _Count]] = (
    ClockEvent.SW_THERMAL_SLOWDOWN,
    lambda r: r.sw_thermal_slowdown_nanoseconds,
)
_BRAKE: Final[tuple[ClockEvent, _Count]] = (
    ClockEvent.HW_POWER_BRAKE,
    lambda r: r.hw_power_brake_nanoseconds,
)


def _is_slowed(case: Case, event: ClockEvent, count: _Count) -> bool:
    """Tell whether a reason holds the clocks down: by its counted time, else at this moment.

    Raises:
        NoEvidenceError: neither is told.
    """
    try:
        return rise_per_second(case, CLOCK_EVENT_TIMES, count) / NANOSECONDS >= HELD_DOWN_RATIO
    except NoEvidenceError:
        return bool(read(case.newest, CLOCK_EVENTS).active_mask & BITS[event])


@careful
def _slowed_by_heat(case: Case) -> Judgement:
    if _is_slowed(case, *_HARDWARE):
        return Unhealthy(message="the hardware slows the GPU down for heat")
    if _is_slowed(case, *_SOFTWARE):
        return Unhealthy(
            message="the driver slows the GPU down for heat", reason="SoftwareThermalSlowdown"
        )
    return Healthy()


@careful
def _braked(case: Case) -> Judgement:
    if _is_slowed(case, *_BRAKE):
        return Unhealthy(message="the power supply of the site slows the GPU down")
    return Healthy()


CHECKS: Final = (
    Check(
        id=CheckId("hot"),
        title="Hotter than TEMPERATURE_THRESHOLD; cordons only with TEMPERATURE_ACTION=cordon.",
        reason="Hot",
        needs=(TEMPERATURE,),
        raise_seconds=THREE_POLLS_SECONDS,
        action=Action.CORDON,
        judge=_hot,
    ),
    Check(
        id=CheckId("overheated"),
        title="Hotter than TEMPERATURE_THRESHOLD, slowed down for it, and beyond its own limit.",
        reason="Overheated",
        needs=(TEMPERATURE,),
        raise_seconds=THREE_POLLS_SECONDS,
        action=Action.CORDON,
        judge=_overheated,
    ),
    Check(
        id=CheckId("thermal_slowdown"),
        title="Slowed down for heat.",
        reason="HardwareThermalSlowdown",
        reasons=("SoftwareThermalSlowdown",),
        raise_seconds=300,
        action=Action.WARN,
        judge=_slowed_by_heat,
    ),
    Check(
        id=CheckId("power_brake"),
        title="Slowed down from outside, by the power supply; says nothing against the GPU.",
        reason="PowerBrake",
        raise_seconds=600,
        action=Action.WARN,
        judge=_braked,
    ),
)
