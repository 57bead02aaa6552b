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

    __slots__ = ("_grid", "_newest", "_now", "_past", "_totals", "held")

    def __init__(self, series: int, grid: Grid) -> None:
        self._grid = grid
        self.held: Means = [None] * series
        # The current bucket, whose number is ``_newest``, and those before it with their totals.
        self._newest = grid.current
        self._now = _nothing(series)
        self._past = [_nothing(series) for _ in range(grid.buckets)]
        self._totals = _nothing(series)

    def let_pass(self, seconds: float) -> None:
        """Count what is held, for this long, in the current bucket."""
        self._turn()
        sums, times = self._now
        time = round(seconds * _NANOSECONDS)
        for series, value in enumerate(self.held):
            if value is not None:
                sums[series] += round(value * time)
                times[series] += time

    def add(self, series: int, value: float, weight_seconds: float) -> None:
        """Count a value with a time of its own: the ``weight_seconds`` that end now.

        Where that is longer than the window, only the part within the window counts.
        """
        self._turn()
        tick, buckets = self._grid.tick_seconds, self._grid.buckets
        if weight_seconds <= BUCKETS_OF_ONE_READING * tick:
            _add(self._now, series, value, weight_seconds)
            return
        pieces = math.ceil(weight_seconds / tick)
        _add(self._now, series, value, weight_seconds / pieces)
        for back in range(1, min(pieces, buckets)):
            for into in (self._past[(self._newest - back) % buckets], self._totals):
                _add(into, series, value, weight_seconds / pieces)

    def forget(self, series: int) -> None:
        """Empty a series."""
        self.held[series] = None
        for sums, times in (self._now, *self._past, self._totals):
            sums[series] = times[series] = 0

    def means(self) -> Means:
        """Return the mean of each series."""
        self._turn()
        return [
            (past + now) / (past_time + now_time) if past_time or now_time else None
            for past, now, past_time, now_time in zip(
                self._totals[0], self._now[0], self._totals[1], self._now[1], strict=True
            )
        ]

    def _turn(self) -> None:
        """Go on to the current bucket, and subtract what fell out of the window."""
        buckets = self._grid.buckets
        if self._grid.current - self._newest > buckets:
            self._empty()
        for number in range(self._newest + 1, self._grid.current + 1):
            out, come = self._past[number % buckets], self._now
            self._past[(number - 1) % buckets] = come
            self._totals = _moved(self._totals, come, out)
            self._now = _nothing(len(self.held))
        self._newest = self._grid.current

    def _empty(self) -> None:
        """Drop everything: all of it fell out of the window at once."""
        series = len(self.held)
        self._newest = self._grid.current
        self._now, self._totals = _nothing(series), _nothing(series)
        self._past = [_nothing(series) for _ in self._past]


def _moved(totals: _Sums, come: _Sums, out: _Sums) -> _Sums:
    """Return the totals with one bucket more and another one less."""
    sums, times = (
        [total + more - less for total, more, less in zip(*of, strict=True)]
        for of in zip(totals, come, out, strict=True)
    )
    return sums, times


def _add(bucket: _Sums, series: int, value: float, seconds: float) -> None:
    sums, times = bucket
    time = round(seconds * _NANOSECONDS)
    sums[series] += round(value * time)
    times[series] += time


def _nothing(series: int) -> _Sums:
    return [0] * series, [0] * series
