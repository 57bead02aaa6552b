"""How busy something is over time, and what that adds up to.

Every load is made of straight lines with steps between them, so that its integral is exact
whatever the distance, and no simulation step exists. A wave is the polygon that
``LINES_PER_WAVE`` chords of a sine make; it is defined to be that, not an approximation.

Loads are ratios: 1 is a device that is busy all the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]

LINES_PER_WAVE = 24


class Signal(Protocol):
    """A value over time, linear between its breaks."""

    @property
    def peak(self) -> float:
        """A bound that no value exceeds."""
        ...

    def breaks(self, begin: float, end: float) -> Times:
        """Return the times between begin and end where a new line may start, in any order."""
        ...

    def values(self, times: Times) -> Times:
        """Return the value at each time; at a step, the one after it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """Lines one after the other, from ``origin`` on, once or again and again.

    Attributes:
        starts: seconds after the origin at which each line starts, ascending, the first 0.
        levels: value at the start of each line.
        slopes: change per second along each line.
        period: seconds after which the lines repeat; None: the last one goes on for ever.
        origin: when it begins; before that it has the value of its beginning, or repeats.
    """

    starts: Times
    levels: Times
    slopes: Times
    period: float | None = None
    origin: float = 0.0

    @property
    def peak(self) -> float:
        """The largest value."""
        lengths = np.diff(self.starts, append=self.period or self.starts[-1])
        return float(np.maximum(self.levels, self.levels + self.slopes * lengths).max())

    def breaks(self, begin: float, end: float) -> Times:
        """Return the starts of lines between begin and end."""
        starts = self.starts + self.origin
        if self.period is not None:
            first = np.floor((begin - self.origin) / self.period)
            last = np.ceil((end - self.origin) / self.period)
            rounds = np.arange(first, last + 1) * self.period
            starts = (starts[np.newaxis, :] + rounds[:, np.newaxis]).ravel()
        inside = (starts > begin) & (starts < end)
        return starts[inside]

    def values(self, times: Times) -> Times:
        """Return the value at each time."""
        local = times - self.origin
        local = np.maximum(local, 0.0) if self.period is None else np.mod(local, self.period)
        line = np.searchsorted(self.starts, local, side="right") - 1
        return np.asarray(self.levels[line] + self.slopes[line] * (local - self.starts[line]))


def constant(level: float) -> Curve:
    """Return a curve that stays at a level."""
    return Curve(starts=np.zeros(1), levels=np.array([float(level)]), slopes=np.zeros(1))


def steps(levels: Sequence[tuple[float, float]], *, period: float | None = None) -> Curve:
    """Return a curve that jumps to each level at its time, and is 0 before the first."""
    if not levels or levels[0][0] > 0:
        levels = [(0.0, 0.0), *levels]
    return Curve(
        starts=np.array([at for at, _ in levels], dtype=float),
        levels=np.array([level for _, level in levels], dtype=float),
        slopes=np.zeros(len(levels)),
        period=period,
    )


def ramp(first: float, last: float, *, begin: float, over: float) -> Curve:
    """Return a curve that stays at ``first``, then goes straight to ``last`` and stays."""
    return Curve(
        starts=np.array([0.0, over]),
        levels=np.array([first, last], dtype=float),
        slopes=np.array([(last - first) / over, 0.0]),
        origin=begin,
    )


def wave(low: float, high: float, *, period: float, phase: float = 0.0) -> Curve:
    """Return a sine between low and high that is at low ``phase`` seconds after the beginning."""
    starts = np.linspace(0.0, period, LINES_PER_WAVE + 1)
    levels = low + (high - low) * (1 - np.cos(2 * np.pi * starts / period)) / 2
    return Curve(
        starts=starts[:-1],
        levels=levels[:-1],
        slopes=np.diff(levels) / np.diff(starts),
        period=period,
        origin=phase,
    )


ZERO = constant(0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightedSum:
    """A sum of signals, each times its weight."""

    parts: tuple[tuple[float, Signal], ...]

    @property
    def peak(self) -> float:
        """The sum of the peaks."""
        return sum(weight * signal.peak for weight, signal in self.parts)

    def breaks(self, begin: float, end: float) -> Times:
        """Return the breaks of all parts."""
        return np.concatenate([signal.breaks(begin, end) for _, signal in self.parts])

    def values(self, times: Times) -> Times:
        """Return the sum at each time."""
        values = [weight * signal.values(times) for weight, signal in self.parts]
        return np.asarray(np.sum(values, axis=0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Capped:
    """A signal that cannot rise above 1: what is asked for beyond that waits."""

    inner: Signal

    @property
    def peak(self) -> float:
        """At most 1."""
        return min(1.0, self.inner.peak)

    def breaks(self, begin: float, end: float) -> Times:
        """Return the breaks of the inner signal and where it crosses 1."""
        inner = self.inner.breaks(begin, end)
        edges = np.unique(np.concatenate([inner, [begin, end]]))
        left, right = edges[:-1], edges[1:]
        if not left.size:
            return inner
        # Ends of a line are ambiguous at a step, so its slope is taken from points inside it.
        quarter = (right - left) / 4
        early = self.inner.values(left + quarter)
        late = self.inner.values(right - quarter)
        at_left, at_right = (3 * early - late) / 2, (3 * late - early) / 2
        crosses = (at_left - 1) * (at_right - 1) < 0
        share = (1 - at_left[crosses]) / (at_right[crosses] - at_left[crosses])
        return np.concatenate([inner, left[crosses] + share * (right - left)[crosses]])

    def values(self, times: Times) -> Times:
        """Return the value at each time, at most 1."""
        return np.minimum(self.inner.values(times), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Succession:
    """One signal after the other; each holds from its begin to the next one's."""

    begins: Times
    signals: tuple[Signal, ...]

    @property
    def peak(self) -> float:
        """The largest of the peaks."""
        return max(signal.peak for signal in self.signals)

    def breaks(self, begin: float, end: float) -> Times:
        """Return the changes from one signal to the next, and the breaks of each while it holds."""
        found = [self.begins[(self.begins > begin) & (self.begins < end)]]
        for number in range(self._number(begin), self._number(end) + 1):
            until = self.begins[number + 1] if number + 1 < len(self.signals) else end
            since = max(begin, float(self.begins[number]))
            found.append(self.signals[number].breaks(since, min(end, float(until))))
        return np.concatenate(found)

    def values(self, times: Times) -> Times:
        """Return the value of the signal that holds at each time."""
        numbers = np.maximum(np.searchsorted(self.begins, times, side="right") - 1, 0)
        result = np.empty(times.shape)
        for number in np.unique(numbers):
            holds = numbers == number
            result[holds] = self.signals[number].values(times[holds])
        return result

    def _number(self, at: float) -> int:
        return max(0, int(np.searchsorted(self.begins, at, side="right")) - 1)


def together(signals: Sequence[Signal]) -> Signal:
    """Return how busy a device is that all these loads share."""
    if not signals:
        return ZERO
    total = (
        signals[0] if len(signals) == 1 else WeightedSum(parts=tuple((1.0, s) for s in signals))
    )
    return Capped(inner=total) if total.peak > 1 else total


def cumulated(signal: Signal, times: Times) -> Times:
    """Return the integral of the signal from the first time to each; times ascend."""
    begin, end = float(times[0]), float(times[-1])
    edges = np.unique(np.concatenate([times, signal.breaks(begin, end)]))
    widths = np.diff(edges)
    # The midpoint of a line times its width is its integral.
    areas = signal.values(edges[:-1] + widths / 2) * widths
    sums = np.concatenate([[0.0], np.cumsum(areas)])
    return np.asarray(sums[np.searchsorted(edges, times)])


def integral(signal: Signal, begin: float, end: float) -> float:
    """Return the integral of the signal, in seconds of full load."""
    if end <= begin:
        return 0.0
    return float(cumulated(signal, np.array([begin, end], dtype=float))[-1])


def value_at(signal: Signal, at: float) -> float:
    """Return the value of the signal at one time."""
    return float(signal.values(np.array([at], dtype=float))[0])
