"""Signals of a stage that are worked out for minutes at once, and looked up from then on.

A driver is asked dozens of times a second about loads that are sums of shares of demands, and all
that time they stand on the same few steps. Nothing is rounded or skipped in here: a table has
every step of its time, and what is no lookup in one table is left to the signal itself.
"""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.load import Signal, Times, cumulated

# A table ends at the next multiple of this; it reaches back far enough for the rings and means
# of a driver, so that theirs are lookups also just after it began.
TABLE_SECONDS = 600.0
REACH_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Table:
    """The steps of a signal between its first and its last edge.

    Attributes:
        number: of multiples of ``TABLE_SECONDS`` before it.
        levels: between the edges.
        sums: the integral from the first edge to each.
    """

    number: int
    edges: Times
    levels: Times
    sums: Times

    def step(self, times: Times) -> npt.NDArray[np.intp]:
        """Return which step each time is on; at an edge, the one after it."""
        return np.minimum(self.edges.searchsorted(times, side="right"), len(self.levels)) - 1


class Tabulated:
    """A signal as long as a stage lasts. Any number of threads may use it.

    Args:
        signal: what is looked up.
        begin: of the stage; no table starts before it.
        end: of the stage as it is foreseen; no table goes beyond it.
    """

    __slots__ = ("_begin", "_end", "_signal", "_tables")

    def __init__(self, signal: Signal, *, begin: float, end: float) -> None:
        self._signal = signal
        self._begin = begin
        self._end = end
        # The present one, and the one in which the driver was loaded; replaced as a whole.
        self._tables: tuple[_Table, ...] = ()

    def breaks(self, begin: float, end: float) -> Times:
        """Return the times between begin and end where the value may change."""
        table = self._table(begin, end, _number_upto(end))
        if table is None:
            return self._signal.breaks(begin, end)
        return table.edges[bisect_right(table.edges, begin) : bisect_left(table.edges, end)]

    def values(self, times: Times) -> Times:
        """Return the value at each time; times ascend."""
        if not len(times):
            return times
        table = self._table(times[0], times[-1], int(times[-1] // TABLE_SECONDS))
        return self._signal.values(times) if table is None else table.levels[table.step(times)]

    def cumulated(self, times: Times) -> Times:
        """Return the integral from the first time to each; times ascend.

        From one multiple of ``TABLE_SECONDS`` to any times up to the next, it never falls.
        """
        table = self._table(times[0], times[-1], _number_upto(times[-1]))
        if table is None:
            return cumulated(self._signal, times)
        step = table.step(times)
        upto = table.sums[step] + table.levels[step] * (times - table.edges[step])
        return np.asarray(upto - upto[0])

    def _table(self, begin: float, end: float, number: int) -> _Table | None:
        """Return the table of a number; None if it does not hold all of a period."""
        first = max(self._begin, number * TABLE_SECONDS - REACH_SECONDS)
        last = min(self._end, (number + 1) * TABLE_SECONDS)
        if begin < first or end > last or first == last:
            return None
        for table in self._tables:
            if table.number == number:
                return table
        made = _tabulate(self._signal, number, first, last)
        self._tables = (made, *self._tables[:1])
        return made


def _tabulate(signal: Signal, number: int, begin: float, end: float) -> _Table:
    edges = np.unique(np.concatenate([[begin, end], signal.breaks(begin, end)]))
    widths = np.diff(edges)
    # In the middle, since rounding may put an edge on either side of its break.
    levels = signal.values(edges[:-1] + widths / 2)
    sums = np.concatenate([[0.0], np.cumsum(levels * widths)])
    return _Table(number=number, edges=edges, levels=levels, sums=sums)


def _number_upto(end: float) -> int:
    # What is integrated up to the end of a table comes out of that table, like all before it.
    return max(0, math.ceil(end / TABLE_SECONDS) - 1)


def summed(signal: Signal, times: Times) -> Times:
    """Return the integral of a signal from the first time to each; times ascend."""
    return signal.cumulated(times) if isinstance(signal, Tabulated) else cumulated(signal, times)
