"""How busy something is over time, and what that adds up to.

Every load is made of steps, so that its integral is exact over any distance and there is no
simulation step. A wave is a staircase of ``STEPS``, each at the middle of what it stands for.

Loads are ratios: 1 is a device that is busy all the time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]

STEPS = 100


class Signal(Protocol):
    """A value over time, constant between its breaks."""

    def breaks(self, begin: float, end: float) -> Times:
        """Return the times between begin and end where the value may change, in any order."""
        ...

    def values(self, times: Times) -> Times:
        """Return the value at each time; at a break, the one after it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Staircase:
    """Steps one after the other, once or repeatedly.

    Attributes:
        starts: seconds at which each step starts, ascending, the first 0.
        levels: value of each step; the last one lasts forever, unless they repeat.
        period: seconds after which the steps repeat, or None.
        phase: by how much they start late.
    """

    starts: Times
    levels: Times
    period: float | None = None
    phase: float = 0.0

    def breaks(self, begin: float, end: float) -> Times:
        """Return the starts of steps between begin and end."""
        starts = self.starts + self.phase
        if self.period is not None:
            first = np.floor((begin - self.phase) / self.period)
            last = np.ceil((end - self.phase) / self.period)
            rounds = np.arange(first, last + 1) * self.period
            starts = (starts[np.newaxis, :] + rounds[:, np.newaxis]).ravel()
        return starts[(starts > begin) & (starts < end)]

    def values(self, times: Times) -> Times:
        """Return the value at each time."""
        local = times - self.phase
        if self.period is not None:
            local = np.mod(local, self.period)
        return self.levels[np.searchsorted(self.starts, local, side="right") - 1]


def constant(level: float) -> Staircase:
    """Return a load that stays at a level."""
    return Staircase(starts=np.zeros(1), levels=np.array([float(level)]))


def steps(levels: Sequence[tuple[float, float]], *, period: float | None = None) -> Staircase:
    """Return a load that jumps to each level at its time, and is 0 before the first."""
    times, heights = zip((0.0, 0.0), *levels, strict=True)
    return Staircase(
        starts=np.array(times, dtype=float), levels=np.array(heights, dtype=float), period=period
    )


def wave(low: float, high: float, *, period: float, phase: float = 0.0) -> Staircase:
    """Return a sine between low and high that is at low ``phase`` seconds after the beginning."""
    angles = 2 * np.pi * (np.arange(STEPS) + 0.5) / STEPS
    return Staircase(
        starts=np.arange(STEPS) * period / STEPS,
        levels=low + (high - low) * (1 - np.cos(angles)) / 2,
        period=period,
        phase=phase,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sum:
    """A weighted sum of signals, capped: what exceeds the limit waits."""

    parts: tuple[tuple[float, Signal], ...]
    limit: float = math.inf

    def breaks(self, begin: float, end: float) -> Times:
        """Return the breaks of all parts."""
        return np.concatenate([np.empty(0), *(s.breaks(begin, end) for _, s in self.parts)])

    def values(self, times: Times) -> Times:
        """Return the sum at each time."""
        total = np.zeros(times.shape)
        for weight, signal in self.parts:
            total += weight * signal.values(times)
        return np.minimum(total, self.limit)


IDLE = Sum(parts=())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FairShare:
    """What one of several loads gets of a device that they share.

    Max-min fair by weight: nobody gets more than it asks for, and who gets less than that gets
    as much per weight as anyone. It is what time slices that go round add up to.

    Attributes:
        parts: weight and demand of everyone.
        which: whose share it is.
    """

    parts: tuple[tuple[float, Signal], ...]
    which: int

    def breaks(self, begin: float, end: float) -> Times:
        """Return the breaks of all demands."""
        return Sum(parts=self.parts).breaks(begin, end)

    def values(self, times: Times) -> Times:
        """Return the share at each time."""
        demands = np.stack([signal.values(times) for _, signal in self.parts])
        weights = np.array([[weight] for weight, _ in self.parts]) + np.zeros(demands.shape)
        order = np.argsort(demands / weights, axis=0)
        ascending = np.take_along_axis(demands, order, axis=0)
        served = np.cumsum(ascending, axis=0) - ascending
        waiting = np.cumsum(np.take_along_axis(weights, order, axis=0)[::-1], axis=0)[::-1]
        # If only the first few are satisfied, the rest goes evenly to the others. The right few
        # are those that leave the most: with one too few or one too many, some get less.
        level = ((1 - served) / waiting).max(axis=0)
        level[demands.sum(axis=0) <= 1] = math.inf
        return np.asarray(np.minimum(demands, weights * level)[self.which])


def together(demands: Sequence[Signal]) -> Signal:
    """Return how busy a device is that all these loads share."""
    return Sum(parts=tuple((1.0, demand) for demand in demands), limit=1.0)


def fair_shares(demands: Sequence[tuple[float, Signal]]) -> tuple[Signal, ...]:
    """Return what each of these loads, with their weights, gets of a device that they share."""
    parts = tuple(demands)
    if len(parts) == 1:
        return (together([parts[0][1]]),)
    return tuple(FairShare(parts=parts, which=number) for number in range(len(parts)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Waiting:
    """How much of the time somebody waits for a device, who has to share it.

    Somebody with a demand below 1 thinks, then asks for some work and goes on thinking when it is
    done. If a second of work takes longer, thinking takes no longer: of a second in which it gets
    ``got`` of what it would get alone, thinking and running take ``got / demand``.
    """

    demand: Signal
    got: Signal

    def breaks(self, begin: float, end: float) -> Times:
        """Return the breaks of both."""
        return np.concatenate([self.demand.breaks(begin, end), self.got.breaks(begin, end)])

    def values(self, times: Times) -> Times:
        """Return the share of the time that is spent waiting."""
        demand, got = self.demand.values(times), self.got.values(times)
        asks = demand > 0
        waiting = np.zeros(times.shape)
        waiting[asks] = np.maximum(0.0, 1 - got[asks] / demand[asks])
        return waiting


def cumulated(signal: Signal, times: Times) -> Times:
    """Return the integral of the signal from the first time to each; times ascend."""
    edges = np.unique(np.concatenate([times, signal.breaks(float(times[0]), float(times[-1]))]))
    widths = np.diff(edges)
    # Taken in the middle, since rounding may put an edge on either side of its break.
    areas = signal.values(edges[:-1] + widths / 2) * widths
    sums = np.concatenate([[0.0], np.cumsum(areas)])
    return np.asarray(sums[np.searchsorted(edges, times)])


def value_at(signal: Signal, at: float) -> float:
    """Return the value of the signal at one time."""
    return float(signal.values(np.array([at], dtype=float))[0])
