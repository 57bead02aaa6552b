"""How busy a GPU was in each of the last periods, as its driver buffers it."""

from itertools import pairwise
from typing import Final

from simulator.scenario import SAMPLE_PERIOD_SECONDS, SAMPLES_KEPT
from simulator.timeline import GpuTimeline

SAMPLE_PERIOD_US: Final = round(SAMPLE_PERIOD_SECONDS * 1e6)


class UtilizationRing:
    """The newest samples of one GPU.

    Args:
        timeline: of the GPU.
        epoch_us: CPU time of second 0.
    """

    def __init__(self, timeline: GpuTimeline, *, epoch_us: int) -> None:
        self._timeline = timeline
        self._epoch_us = epoch_us

    def newest(self, now: float) -> int:
        """Return the percent of the last complete period, 0 if there was none yet."""
        last = _last_sample(now)
        return self._percents(last - 1, last)[0] if last > 0 else 0

    def samples(
        self, now: float, *, awake: float, since_us: int | None
    ) -> tuple[tuple[int, int], ...]:
        """Return pairs of CPU timestamp and percent, oldest first.

        Args:
            now: second of the fleet.
            awake: when the ring began to fill anew.
            since_us: CPU time after which samples count; None for all that there are.
        """
        last, period = _last_sample(now), SAMPLE_PERIOD_US
        first = max(last - SAMPLES_KEPT, -int(-awake * 1e6 // period))
        if since_us is not None:
            first = max(first, (since_us - self._epoch_us) // period)
        if first >= last:
            return ()
        stamps = (self._epoch_us + number * period for number in range(first + 1, last + 1))
        return tuple(zip(stamps, self._percents(first, last), strict=True))

    def _percents(self, first: int, last: int) -> list[int]:
        times = [number * SAMPLE_PERIOD_US / 1e6 for number in range(first, last + 1)]
        busy = pairwise(self._timeline.busy_seconds(self._timeline.uuid, times))
        return [round(100e6 * (after - before) / SAMPLE_PERIOD_US) for before, after in busy]


def newest_period(now: float) -> tuple[float, float] | None:
    """Return when the last complete period began and ended; None if there was none yet."""
    last = _last_sample(now)
    period = SAMPLE_PERIOD_US / 1e6
    return ((last - 1) * period, last * period) if last > 0 else None


def _last_sample(now: float) -> int:
    # Half a microsecond, so that a clock moved to a multiple of the period has reached it.
    return int((now * 1e6 + 0.5) // SAMPLE_PERIOD_US)
