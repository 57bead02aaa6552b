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


def together(signals: Sequence[Signal]) -> Signal:
    """Return how busy a device is that all these loads share."""
    return Sum(parts=tuple((1.0, signal) for signal in signals), limit=1.0)


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
