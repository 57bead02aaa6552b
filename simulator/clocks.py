"""What holds the clocks of a simulated GPU down, and for how long it did.

The rules are simple and exact: a GPU that does nothing is idle, one at full load draws as much as
its limit allows, and everything else happens only while a ``slowdown`` fault lasts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from simulator.clock import Clock
from simulator.driver import Driver
from simulator.load import IDLE, Signal, Times, constant, value_at
from simulator.stage import Stage
from simulator.timeline import GpuTimeline
from slicewatch.catalog.readings.clocks import ClockEvent

# Load that counts as full: shares of several tenants need not add up to the last bit.
FULL: Final = 1 - 1e-9

# What cuts clocks by half sets the common bit beside its own.
BY_HARDWARE: Final = frozenset({
    ClockEvent.HW_SLOWDOWN, ClockEvent.HW_THERMAL_SLOWDOWN, ClockEvent.HW_POWER_BRAKE,
})  # fmt: skip
# What the driver counts the time of.
COUNTED: Final = frozenset({
    ClockEvent.SW_POWER_CAP, ClockEvent.SYNC_BOOST, ClockEvent.SW_THERMAL_SLOWDOWN,
    ClockEvent.HW_THERMAL_SLOWDOWN, ClockEvent.HW_POWER_BRAKE,
})  # fmt: skip
# What only the newest drivers know of is left out.
SUPPORTED: Final = frozenset(ClockEvent) - {ClockEvent.BOARD_LIMIT, ClockEvent.RELIABILITY}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FullLoad:
    """1 while a load is full, else 0."""

    load: Signal

    def breaks(self, begin: float, end: float) -> Times:
        """Return the breaks of the load."""
        return self.load.breaks(begin, end)

    def values(self, times: Times) -> Times:
        """Return 0 or 1 at each time."""
        return (self.load.values(times) >= FULL).astype(float)


class ClockEvents:
    """The clock events of one GPU."""

    def __init__(
        self, timeline: GpuTimeline, *, clock: Clock, driver: Callable[[float], Driver]
    ) -> None:
        self._timeline = timeline
        self._clock = clock
        self._driver = driver

    def active(self) -> frozenset[ClockEvent]:
        """Return what holds the clocks down now."""
        now = self._clock.now()
        stage = self._timeline.stage(now)
        active = {ClockEvent(one) for one in stage.slowdowns}
        if active & BY_HARDWARE:
            active.add(ClockEvent.HW_SLOWDOWN)
        work = value_at(stage.work, now)
        if work == 0:
            active.add(ClockEvent.IDLE)
        if work >= FULL:
            active.add(ClockEvent.SW_POWER_CAP)
        return frozenset(active)

    def seconds(self, event: ClockEvent) -> float:
        """Return how long an event that is counted lasted since the driver was loaded."""
        now = self._clock.now()
        return self.total(event, now) - self.total(event, self._driver(now).loaded_at)

    def total(self, event: ClockEvent, until: float) -> float:
        """Return how long it lasted since the beginning, up to a moment."""
        return self._timeline.cumulative(
            ("clock_event", event), lambda stage: _signal(stage, event), until
        )


def _signal(stage: Stage, event: ClockEvent) -> Signal:
    if stage.halted:
        return IDLE
    if event in stage.slowdowns:
        return constant(1)
    return FullLoad(load=stage.work) if event is ClockEvent.SW_POWER_CAP else IDLE
