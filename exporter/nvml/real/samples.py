"""Which of the buffered utilization samples are new. Pure.

The driver keeps the samples of some ten or twenty seconds and hands out those after a timestamp.
Percentages are passed on as they are, and gaps are left to the reading: here only timestamps are
judged, because a wrong one would hide the samples that come after it.
"""

from collections.abc import Iterable
from typing import Final

from slicewatch.catalog.readings import Utilization

# Stamps come from the CPU's clock. One that is further ahead than this is garbage, or the clock
# was set back: as a cursor it would keep out every sample until the clock is there again.
AHEAD_US: Final = 10_000_000


class SampleCursor:
    """The last sample that was taken, of one GPU in one session."""

    def __init__(self) -> None:
        self._seen_us = 0

    def last_seen_us(self, now_us: int) -> int:
        """Return the timestamp after which to ask; 0 for whatever there is."""
        if self._seen_us > now_us + AHEAD_US:
            self._seen_us = 0
        return self._seen_us

    def take(self, samples: Iterable[tuple[int, int]], now_us: int) -> Utilization:
        """Return the reading of the samples that are new, and move on behind them.

        Args:
            samples: pairs of (CPU timestamp in microseconds, percent), in any order.
            now_us: the CPU's clock.
        """
        before = self._seen_us
        until = now_us + AHEAD_US
        new = sorted(sample for sample in samples if before < sample[0] <= until)
        if not new:
            return Utilization((), before or None)
        self._seen_us = new[-1][0]
        if not before:
            # The first read finds the whole buffer: what was before the session is not counted.
            return Utilization((new[-1],), None)
        return Utilization(tuple(new), before)
