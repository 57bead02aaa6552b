"""Means over the last seconds of what was read of one device.

One bucket per tick. A value is weighted by the time that it describes, so that a mean is right
whatever the rhythm of the readings. Times are whole nanoseconds and what is summed are whole
numbers: what falls out of a window is subtracted from its totals, and leaves nothing behind.
"""

import math
from typing import Final

_NANOSECONDS: Final = 1_000_000_000
# A reading whose time is longer than this many buckets came after a silence, and is put where
# that silence was; shorter ones all count now, which moves a mean by less than it is rounded.
BUCKETS_OF_ONE_READING: Final = 2

# A value per series, None where the window holds nothing.
Means = list[float | None]
# Of a bucket or a window, per series: value times nanoseconds, and nanoseconds.
_Sums = tuple[list[int], list[int]]


class Grid:
    """The buckets that time is divided into, for all windows of a node.

    Attributes:
        current: the number of the bucket that time is in.
    """

    def __init__(self, *, window_seconds: float, tick_seconds: float) -> None:
        self.tick_seconds = tick_seconds
        self.buckets = max(1, round(window_seconds / tick_seconds))
        self.current = 0

    def advance(self, now: float) -> None:
        """Go on to the bucket of ``now`` (monotonic seconds)."""
        self.current = max(self.current, int(now / self.tick_seconds))


class Window:
    """A sliding window over a fixed number of series.

    Attributes:
        held: per series, what stands for the time that passes, or None.
    """

    __slots__ = ("_buckets", "_grid", "_newest", "_totals", "held")

    def __init__(self, series: int, grid: Grid) -> None:
        self._grid = grid
        self._newest = grid.current
        self.held: Means = [None] * series
        self._totals = _nothing(series)
        self._buckets = [_nothing(series) for _ in range(grid.buckets)]

    def let_pass(self, seconds: float) -> None:
        """Count what is held, for this long, in the current bucket."""
        sums, times = self._buckets[self._turned()]
        all_sums, all_times = self._totals
        time = round(seconds * _NANOSECONDS)
        for series, value in enumerate(self.held):
            if value is not None:
                amount = round(value * time)
                sums[series] += amount
                times[series] += time
                all_sums[series] += amount
                all_times[series] += time

    def add(self, series: int, value: float, weight_seconds: float) -> None:
        """Count a value with a time of its own: the ``weight_seconds`` that end now.

        Where that is longer than the window, only the part within the window counts.
        """
        current = self._turned()
        tick, buckets = self._grid.tick_seconds, self._grid.buckets
        if weight_seconds <= BUCKETS_OF_ONE_READING * tick:
            self._add(current, series, value, weight_seconds)
            return
        pieces = math.ceil(weight_seconds / tick)
        for back in range(min(pieces, buckets)):
            self._add((current - back) % buckets, series, value, weight_seconds / pieces)

    def forget(self, series: int) -> None:
        """Empty a series."""
        self.held[series] = None
        for sums, times in (self._totals, *self._buckets):
            sums[series] = times[series] = 0

    def means(self) -> Means:
        """Return the mean of each series."""
        self._turned()
        return [
            amount / time if time else None for amount, time in zip(*self._totals, strict=True)
        ]

    def _add(self, index: int, series: int, value: float, seconds: float) -> None:
        time = round(seconds * _NANOSECONDS)
        amount = round(value * time)
        for sums, times in (self._totals, self._buckets[index]):
            sums[series] += amount
            times[series] += time

    def _turned(self) -> int:
        """Subtract what fell out of the window; return the index of the current bucket."""
        current, buckets = self._grid.current, self._grid.buckets
        if self._newest != current:
            for number in range(max(self._newest + 1, current - buckets + 1), current + 1):
                self._empty(number % buckets)
            self._newest = current
        return current % buckets

    def _empty(self, index: int) -> None:
        all_sums, all_times = self._totals
        sums, times = self._buckets[index]
        if any(times):
            self._totals = (
                [all_of - out for all_of, out in zip(all_sums, sums, strict=True)],
                [all_of - out for all_of, out in zip(all_times, times, strict=True)],
            )
            self._buckets[index] = _nothing(len(sums))


def _nothing(series: int) -> _Sums:
    return [0] * series, [0] * series
