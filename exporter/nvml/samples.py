"""Which of the buffered utilization samples are new.

The driver keeps the samples of some ten or twenty seconds and hands out those after a timestamp.
Percentages are passed on as they are, and gaps are left to the reading: here only timestamps are
judged, because a wrong one would hide the samples that come after it.
"""

from collections.abc import Iterable
from typing import Final

from slicewatch.catalog.readings import LONGEST_PERIOD_US, Utilization

# Stamps come from the CPU's clock. One that is further ahead than this is garbage, or the clock
# was set back: as a cursor it would keep out every sample until the clock is there again.
AHEAD_US: Final = 1_000_000


class SampleCursor:
    """The last sample taken of one GPU.

    It outlives sessions and restarts of NVML: the samples between two of them are in the driver's
    buffer, and count.
    """

    def __init__(self) -> None:
        self._seen_us = 0

    def last_seen_us(self, now_us: int) -> int:
        """Return the timestamp after which to ask; 0 for whatever there is."""
        if self._seen_us > now_us + AHEAD_US:
            self._seen_us = 0
        return self._seen_us

    def is_dry(self, now_us: int) -> bool:
        """Tell whether samples have stopped, as on some boards while they idle.

        Until then a read without a new sample says nothing: the next sample speaks of that time.
        """
        return now_us - self._seen_us > LONGEST_PERIOD_US

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


class SampleCursors:
    """The cursors of all GPUs of a process, by uuid. For threads that each have their own GPU."""

    def __init__(self) -> None:
        self._by_uuid: dict[str, SampleCursor] = {}

    def of(self, uuid: str) -> SampleCursor:
        """Return the cursor of a GPU, the same one each time."""
        return self._by_uuid.setdefault(uuid, SampleCursor())
