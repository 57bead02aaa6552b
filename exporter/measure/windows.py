"""Means and peaks over the last seconds, for all devices and series at once.

One numpy ring of buckets, one bucket per tick, each a matrix [slot, series]. A value is weighted by
the time that it describes, so that a mean is right whatever the rhythm of the readings.
"""

import math

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

# A reading whose time is longer than this many buckets came after a silence, and is put where
# that silence was; shorter ones all count now, which moves a mean by less than it is rounded.
BUCKETS_OF_ONE_READING = 2


class Windows:
    """Sliding windows of a fixed number of series over a growing number of slots."""

    def __init__(self, *, series: int, window_seconds: float, tick_seconds: float) -> None:
        self.tick_seconds = tick_seconds
        self._buckets = max(1, round(window_seconds / tick_seconds))
        self._series = series
        self._slots = 0
        self._current = 0
        self._sums = np.zeros((self._buckets, 0, series))
        self._weights = np.zeros((self._buckets, 0, series))
        self._peaks = np.full((self._buckets, 0, series), -np.inf)
        # Collected here for the current bucket, since numpy counts all of it at once.
        self._held = np.full((0, series), np.nan)
        self._passed: list[float] = []
        self._waiting: list[tuple[int, int, float, float]] = []

    def reserve(self, slots: int) -> None:
        """Make room for slots 0 to ``slots`` - 1; what they hold stays."""
        missing = slots - self._slots
        if missing > 0:
            shape = ((0, 0), (0, missing), (0, 0))
            self._sums = np.pad(self._sums, shape)
            self._weights = np.pad(self._weights, shape)
            self._peaks = np.pad(self._peaks, shape, constant_values=-np.inf)
            self._held = np.pad(self._held, shape[1:], constant_values=np.nan)
            self._passed += [0.0] * missing
            self._slots = slots

    def forget(self, slot: int, series: int | None = None) -> None:
        """Empty a slot, for the next device that gets it, or one series of it."""
        self._count()
        where = (slice(None), slot, slice(None) if series is None else series)
        self._sums[where] = 0
        self._weights[where] = 0
        self._peaks[where] = -np.inf
        self._held[where[1:]] = np.nan

    def advance(self, now: float) -> None:
        """Turn the ring to the bucket of ``now`` (monotonic seconds); drop what fell out."""
        self._count()
        bucket = int(now / self.tick_seconds)
        for passed in range(max(self._current + 1, bucket - self._buckets + 1), bucket + 1):
            index = passed % self._buckets
            self._sums[index] = 0
            self._weights[index] = 0
            self._peaks[index] = -np.inf
        self._current = max(self._current, bucket)

    def hold(self, slot: int, series: int, value: float | None) -> None:
        """Let a value, or its absence, stand for all time that ``let_pass`` adds from now on."""
        if self._passed[slot]:
            self._count()
        self._held[slot, series] = np.nan if value is None else value

    def let_pass(self, slot: int, seconds: float) -> None:
        """Count the values that a slot holds, for this long, in the current bucket."""
        self._passed[slot] += seconds

    def add(self, slot: int, series: int, value: float, weight_seconds: float) -> None:
        """Count a value with a time of its own: the ``weight_seconds`` that end now.

        Where that is longer than the window, only the part within the window counts.
        """
        if weight_seconds <= BUCKETS_OF_ONE_READING * self.tick_seconds:
            self._waiting.append((slot, series, value, weight_seconds))
            return
        pieces = math.ceil(weight_seconds / self.tick_seconds)
        share = weight_seconds / pieces
        buckets = (self._current - np.arange(min(pieces, self._buckets))) % self._buckets
        self._sums[buckets, slot, series] += value * share
        self._weights[buckets, slot, series] += share
        self._peaks[buckets, slot, series] = np.maximum(self._peaks[buckets, slot, series], value)

    def summary(self) -> Matrix:
        """Return means and peaks, [2, slot, series]; NaN where the window holds nothing."""
        self._count()
        weights = self._weights.sum(axis=0)
        known = weights > 0
        means, peaks = summary = np.full((2, *weights.shape), np.nan)
        np.copyto(peaks, self._peaks.max(axis=0), where=known)
        np.divide(self._sums.sum(axis=0), weights, out=means, where=known)
        # Rounding lifts the mean of a GPU that is always busy to 100.00000000000001 percent.
        np.minimum(means, peaks, out=means)
        return summary

    def _count(self) -> None:
        """Count what was collected into the current bucket."""
        if any(self._passed):
            self._count_held(self._current % self._buckets)
        if not self._waiting:
            return
        slots, series, values, weights = np.array(self._waiting).T
        self._waiting.clear()
        where = (self._current % self._buckets, slots.astype(int), series.astype(int))
        np.add.at(self._sums, where, values * weights)
        np.add.at(self._weights, where, weights)
        np.maximum.at(self._peaks, where, values)

    def _count_held(self, bucket: int) -> None:
        known = np.isfinite(self._held)
        weights = known * np.array(self._passed)[:, None]
        self._sums[bucket] += np.where(known, self._held, 0.0) * weights
        self._weights[bucket] += weights
        seen = np.where(weights > 0, self._held, -np.inf)
        self._peaks[bucket] = np.maximum(self._peaks[bucket], seen)
        self._passed = [0.0] * self._slots
