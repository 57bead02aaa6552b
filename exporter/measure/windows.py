"""Means and peaks over the last seconds, per slot and series.

One ring of buckets per series, one bucket per tick. A value is weighted by the time that it
describes, so that a mean is right whatever the rhythm of the readings.
"""

import math
from collections.abc import Sequence

# A reading whose time is longer than this many buckets came after a silence, and is put where
# that silence was; shorter ones all count now, which moves a mean by less than it is rounded.
BUCKETS_OF_ONE_READING = 2

# Of one slot: a value per series, None where the window holds nothing.
Summary = list[float | None]


class _Ring:
    """The buckets of one series, and the number of the newest."""

    __slots__ = ("newest", "peaks", "sums", "weights")

    def __init__(self, buckets: int, newest: int) -> None:
        self.newest = newest
        self.sums = [0.0] * buckets
        self.weights = [0.0] * buckets
        self.peaks = [-math.inf] * buckets

    def turn(self, current: int) -> None:
        """Empty the buckets between the newest and the current one."""
        sums, weights, peaks = self.sums, self.weights, self.peaks
        buckets = len(sums)
        for number in range(max(self.newest + 1, current - buckets + 1), current + 1):
            index = number % buckets
            sums[index] = weights[index] = 0.0
            peaks[index] = -math.inf
        self.newest = current

    def add(self, number: int, value: float, seconds: float) -> None:
        """Count a value in a bucket."""
        index = number % len(self.sums)
        self.sums[index] += value * seconds
        self.weights[index] += seconds
        if value > self.peaks[index]:
            self.peaks[index] = value


class Windows:
    """Sliding windows of a fixed number of series over a growing number of slots."""

    def __init__(self, *, series: int, window_seconds: float, tick_seconds: float) -> None:
        self.tick_seconds = tick_seconds
        self._buckets = max(1, round(window_seconds / tick_seconds))
        self._series = series
        self._current = 0
        self._rings: list[dict[int, _Ring]] = []
        # What a slot holds and how long that is so, until it is counted.
        self._held: list[dict[int, float]] = []
        self._passed: list[float] = []

    def reserve(self, slots: int) -> None:
        """Make room for slots 0 to ``slots`` - 1; what they hold stays."""
        for _ in range(slots - len(self._rings)):
            self._rings.append({})
            self._held.append({})
            self._passed.append(0.0)

    def forget(self, slot: int, series: int | None = None) -> None:
        """Empty a slot, for the next device that gets it, or one series of it."""
        self._count(slot)
        for kept in (self._rings[slot], self._held[slot]):
            if series is None:
                kept.clear()
            else:
                kept.pop(series, None)

    def advance(self, now: float) -> None:
        """Turn to the bucket of ``now`` (monotonic seconds); drop what fell out."""
        self._count_all()
        self._current = max(self._current, int(now / self.tick_seconds))

    def hold(self, slot: int, series: int, value: float | None) -> None:
        """Let a value, or its absence, stand for all time that ``let_pass`` adds from now on."""
        if self._passed[slot]:
            self._count(slot)
        if value is None:
            self._held[slot].pop(series, None)
        else:
            self._held[slot][series] = value

    def let_pass(self, slot: int, seconds: float) -> None:
        """Count the values that a slot holds, for this long, in the current bucket."""
        self._passed[slot] += seconds

    def add(self, slot: int, series: int, value: float, weight_seconds: float) -> None:
        """Count a value with a time of its own: the ``weight_seconds`` that end now.

        Where that is longer than the window, only the part within the window counts.
        """
        ring = self._ring(slot, series)
        if weight_seconds <= BUCKETS_OF_ONE_READING * self.tick_seconds:
            ring.add(self._current, value, weight_seconds)
            return
        pieces = math.ceil(weight_seconds / self.tick_seconds)
        for back in range(min(pieces, self._buckets)):
            ring.add(self._current - back, value, weight_seconds / pieces)

    def summary(self, slots: Sequence[int]) -> tuple[list[Summary], list[Summary]]:
        """Return means and peaks of these slots, each with a value per series."""
        self._count_all()
        means: list[Summary] = []
        peaks: list[Summary] = []
        for slot in slots:
            mean: Summary = [None] * self._series
            peak: Summary = [None] * self._series
            for series, ring in self._rings[slot].items():
                if ring.newest != self._current:
                    ring.turn(self._current)
                if weight := sum(ring.weights):
                    found, highest = sum(ring.sums) / weight, max(ring.peaks)
                    peak[series] = highest
                    # Rounding lifts the mean of a GPU that is always busy above 100 percent.
                    mean[series] = min(highest, found)
            means.append(mean)
            peaks.append(peak)
        return means, peaks

    def _ring(self, slot: int, series: int) -> _Ring:
        ring = self._rings[slot].get(series)
        if ring is None:
            ring = self._rings[slot][series] = _Ring(self._buckets, self._current)
        elif ring.newest != self._current:
            ring.turn(self._current)
        return ring

    def _count_all(self) -> None:
        for slot, passed in enumerate(self._passed):
            if passed:
                self._count(slot)

    def _count(self, slot: int) -> None:
        passed, self._passed[slot] = self._passed[slot], 0.0
        if not passed:
            return
        current = self._current
        for series, value in self._held[slot].items():
            self._ring(slot, series).add(current, value, passed)
