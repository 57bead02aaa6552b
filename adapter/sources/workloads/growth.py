"""How much the counters of a pod have grown: what rates, averages and quantiles are made of.

A counter says nothing by itself. What is kept is its growth, scrape by scrape, over one window.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from adapter.sources.workloads.declaration import Labels, Type, WorkloadMetric
from adapter.sources.workloads.page import Parts
from slicewatch.catalog.model import Combine

Key = tuple[Labels, str]
"""A series, or no labels where all series are added up, and one of its parts."""

# Growth over a much longer time than the window says little of now: after a pause as long as
# this, counting begins again.
_LONGEST_WINDOWS: Final = 2
# Counters that are added up over all series are few, as the buckets of a histogram are. Where new
# ones go on coming, counting begins again.
MOST_SUMS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What was counted in a time that ends with the latest page.

    Attributes:
        seconds: the time; about the window, less if not so much is known yet.
        amounts: by series and part; never negative.
    """

    seconds: float
    amounts: Mapping[Key, float]


@dataclass(frozen=True, slots=True)
class _Point:
    at: float
    totals: dict[Key, float]


class Counters:
    """The counters of one metric of one pod, from page to page."""

    def __init__(self, metric: WorkloadMetric) -> None:
        self._window = metric.window_seconds
        self._apart = metric.type is Type.RATE and metric.combine is not Combine.SUM
        self._last: Mapping[Labels, Parts] = {}
        self._totals: dict[Key, float] = {}
        self._points: deque[_Point] = deque()

    def add(self, at: float, series: Mapping[Labels, Parts]) -> None:
        """Take in the counters of a page that was read at ``at`` on the monotonic clock.

        A series counts from the first page that has it, as its growth before is unknown.
        """
        for labels, parts in series.items():
            before = self._last.get(labels)
            # The parts of a series belong to one process: if one began again, all did.
            restarted = before is not None and any(
                value < before.get(part, value) for part, value in parts.items()
            )
            for part, value in parts.items():
                known = None if before is None else before.get(part)
                grown = 0.0 if known is None else value if restarted else value - known
                key = (labels if self._apart else (), part)
                self._totals[key] = self._totals.get(key, 0.0) + grown
        if self._apart:  # Those that came to an end are no longer among those to choose from.
            self._totals = {key: n for key, n in self._totals.items() if key[0] in series}
        elif len(self._totals) > MOST_SUMS:
            self._totals = {}
            self._points.clear()
        self._last = series
        self._points.append(_Point(at, dict(self._totals)))
        self._forget(at)

    def growth(self) -> Growth | None:
        """Return the growth in the window; None before there are two pages to compare."""
        if len(self._points) < 2:
            return None
        first, last = self._points[0], self._points[-1]
        amounts = {key: total - first.totals.get(key, 0.0) for key, total in last.totals.items()}
        return Growth(seconds=last.at - first.at, amounts=amounts)

    def _forget(self, at: float) -> None:
        """Keep the latest point at least one window old, and those since."""
        points = self._points
        while len(points) > 2 and points[1].at <= at - self._window:
            points.popleft()
        while points[0].at < at - _LONGEST_WINDOWS * self._window:
            points.popleft()
