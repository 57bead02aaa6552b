"""The last minutes of a few values of many things, for sparklines.

Means over steps of some seconds, in a ring: it costs the same however long it runs. What was not
known for a whole step is a gap.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from slicewatch.pages.message import Lines

STEP_SECONDS: Final = 5.0
# Five minutes.
STEPS: Final = 60

Values = Sequence[float | None]
"""Utilization, memory, power, contention, in the order of ``Lines``."""


class _Track:
    """One thing: the steps that are over, and the sums of the one that is not."""

    __slots__ = ("counts", "past", "sums")

    def __init__(self, width: int, gaps: int) -> None:
        self.past: deque[tuple[float | None, ...]] = deque([(None,) * width] * gaps, maxlen=STEPS)
        self.sums = [0.0] * width
        self.counts = [0] * width

    def add(self, values: Values) -> None:
        for place, value in enumerate(values):
            if value is not None:
                self.sums[place] += value
                self.counts[place] += 1

    def end_step(self) -> None:
        self.past.append(
            tuple(
                round(s / n, 3) if n else None for s, n in zip(self.sums, self.counts, strict=True)
            )
        )
        self.sums = [0.0] * len(self.sums)
        self.counts = [0] * len(self.counts)


class History:
    """The tracks of what is there; what has gone is forgotten."""

    def __init__(self, step_seconds: float = STEP_SECONDS) -> None:
        self.step_seconds = step_seconds
        self._tracks: dict[str, _Track] = {}
        self._step: int | None = None
        self._steps = 0

    def take(self, now: float, values: Mapping[str, Values]) -> None:
        """Take the values of all that is there, at a time on a clock that never goes back."""
        self._advance(int(now // self.step_seconds))
        for key in self._tracks.keys() - values.keys():
            del self._tracks[key]
        for key, row in values.items():
            track = self._tracks.get(key)
            if track is None:
                track = self._tracks[key] = _Track(len(row), self._steps)
            track.add(row)

    def lines(self, key: str) -> Lines:
        """Return the steps of a thing, as long for all that is there; empty if it is not."""
        track = self._tracks.get(key)
        if track is None or not track.past:
            return Lines()
        columns = zip(*track.past, strict=True)
        known = [tuple(column) if any(v is not None for v in column) else () for column in columns]
        return Lines(
            utilization=known[0], memory=known[1], power=known[2], contention=known[3]
        )  # fmt: skip

    def _advance(self, step: int) -> None:
        if self._step is None:
            self._step = step
        # After a long silence the whole ring is gaps.
        for _ in range(min(step - self._step, STEPS + 1)):
            self._steps = min(self._steps + 1, STEPS)
            for track in self._tracks.values():
                track.end_step()
        self._step = max(step, self._step)
