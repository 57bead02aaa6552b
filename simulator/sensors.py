"""What the sensors of a simulated board show: power, heat, clocks.

The model is deliberately simple: power rises linearly with load from idle to the limit; the die
warms with the mean power of the last minute; clocks are either idle or full.
"""

from collections.abc import Callable
from typing import Final

from simulator import garbage, thermal
from simulator.clock import Clock
from simulator.clocks import BY_HARDWARE, ClockEvents
from simulator.driver import Driver
from simulator.load import value_at
from simulator.stage import Stage
from simulator.timeline import GpuTimeline
from slicewatch.catalog.readings.clocks import BITS, ClockEvent
from slicewatch.hardware import GpuModel

RISE_AT_FULL_POWER_CELSIUS: Final = 45
WARMING_SECONDS: Final = 60.0
POWER_MEAN_SECONDS: Final = 1.0
FASTEST_STATE, IDLE_STATE = 0, 8


class Sensors:
    """The sensors of one GPU. Every attribute is computed when read, on any thread.

    Attributes:
        events: what holds the clocks down.
    """

    def __init__(
        self,
        model: GpuModel,
        timeline: GpuTimeline,
        *,
        clock: Clock,
        driver: Callable[[float], Driver],
    ) -> None:
        self._model = model
        self._timeline = timeline
        self._clock = clock
        self._driver = driver
        self.events = ClockEvents(timeline, clock=clock, driver=driver)

    def shown(self, value: int) -> int:
        """Return a value that never changes, or nonsense while there is nothing else."""
        _, stage = self._moment()
        return garbage.WORD if stage.garbage else value

    @property
    def power_milliwatts(self) -> int:
        """Power draw as the driver measures it on such a board."""
        average = self.power_average_milliwatts
        return self.power_instant_milliwatts if average is None else average

    @property
    def power_instant_milliwatts(self) -> int:
        """Power that the board draws now."""
        return self.shown(round(1000 * self._watts(self._work())))

    @property
    def power_average_milliwatts(self) -> int | None:
        """Mean power of the last second; None on boards that do not measure it."""
        if not self._model.averages_power:
            return None
        return self.shown(round(1000 * self._watts(self._mean_work(POWER_MEAN_SECONDS))))

    @property
    def power_bounds_milliwatts(self) -> tuple[int, int]:
        """Lowest and highest power limit that can be set; the latter is in force."""
        bounds = (self._model.limits.min_power_watts, self._model.max_power_watts)
        least, most = (self.shown(round(1000 * watts)) for watts in bounds)
        return least, most

    @property
    def energy_millijoules(self) -> int:
        """Energy since the driver was loaded."""
        now, stage = self._moment()
        return garbage.LONG if stage.garbage else round(1000 * self.joules(now))

    def joules(self, at: float) -> float:
        """Return the true energy since the driver was loaded, at a moment."""
        since = self._driver(at).loaded_at
        busy = self._timeline.work_seconds(at) - self._timeline.work_seconds(since)
        idle = self._model.idle_power_watts
        return idle * (at - since) + (self._model.max_power_watts - idle) * busy

    @property
    def temperature_celsius(self) -> int:
        """Temperature of the die."""
        _, stage = self._moment()
        if stage.garbage:
            return garbage.CELSIUS
        power = self._watts(self._mean_work(WARMING_SECONDS)) / self._model.max_power_watts
        warm = round(thermal.INLET_CELSIUS + RISE_AT_FULL_POWER_CELSIUS * power)
        slow = thermal.least_celsius(self._model.limits, stage.slowdowns)
        return max(warm, slow, stage.least_celsius)

    @property
    def sm_clock_mhz(self) -> int:
        """Clock of the streaming multiprocessors: idle, or full as soon as anything runs.

        The hardware halves what it slows down.
        """
        _, stage = self._moment()
        if self._work() == 0:
            return self.shown(self._model.idle_sm_clock_mhz)
        return self.shown(
            self._model.max_sm_clock_mhz // (2 if stage.slowdowns & BY_HARDWARE else 1)
        )

    @property
    def video_clock_mhz(self) -> int:
        """Clock of the encoders and decoders, which follows that of the multiprocessors."""
        share = self.sm_clock_mhz / self._model.max_sm_clock_mhz
        return self.shown(round(share * self._model.limits.max_video_clock_mhz))

    @property
    def memory_clock_mhz(self) -> int:
        """Clock of the memory; always the full one."""
        return self.shown(self._model.max_memory_clock_mhz)

    @property
    def max_clocks_mhz(self) -> tuple[int, int, int, int]:
        """Highest clocks of graphics, multiprocessors, memory and video."""
        sm, video = self._model.max_sm_clock_mhz, self._model.limits.max_video_clock_mhz
        most = (sm, sm, self._model.max_memory_clock_mhz, video)
        graphics, sm, memory, video = map(self.shown, most)
        return graphics, sm, memory, video

    @property
    def performance_state(self) -> int:
        """P-state: the fastest one while anything runs."""
        return self.shown(IDLE_STATE if self._work() == 0 else FASTEST_STATE)

    @property
    def event_mask(self) -> int:
        """Bits of what holds the clocks down now."""
        _, stage = self._moment()
        return garbage.LONG if stage.garbage else sum(BITS[one] for one in self.events.active())

    def event_nanoseconds(self, event: ClockEvent) -> int:
        """Return how long an event that is counted lasted since the driver was loaded."""
        _, stage = self._moment()
        return garbage.LONG if stage.garbage else round(1e9 * self.events.seconds(event))

    def _moment(self) -> tuple[float, Stage]:
        now = self._clock.now()
        return now, self._timeline.stage(now)

    def _work(self) -> float:
        now, stage = self._moment()
        return value_at(stage.work, now)

    def _mean_work(self, seconds: float) -> float:
        """Return the mean load of the last seconds; before the beginning, nothing ran."""
        now = self._clock.now()
        busy = self._timeline.busy_seconds(self._timeline.uuid, (max(0.0, now - seconds), now))
        return busy[-1] / seconds

    def _watts(self, work: float) -> float:
        idle = self._model.idle_power_watts
        return idle + (self._model.max_power_watts - idle) * work
