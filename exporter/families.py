"""Which families ``/metrics`` shows, by the users' list of names and patterns."""

import fnmatch
from collections.abc import Iterable, Sequence
from typing import Any

from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Metric
from slicewatch.suggestion import did_you_mean

# In a list of families: those that are shown where no list is given.
DEFAULT = "default"


def check_names(patterns: Iterable[str]) -> None:
    """Check a user's list of families against the catalog.

    Raises:
        ValueError: a name is not known, or a pattern matches nothing; names the nearest.
    """
    names = [DEFAULT, *(m.name for m in CATALOG)]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            hint = did_you_mean(pattern, names) or "; see docs/reference/metrics.md"
            raise ValueError(f"no metric is called {pattern!r}{hint}")


def chosen(metrics: Sequence[Metric[Any]], patterns: Sequence[str]) -> tuple[Metric[Any], ...]:
    """Return the core families and those that a pattern names.

    ``default`` names all that are not optional; no pattern means ``default``.
    """
    return tuple(m for m in metrics if m.core or _is_chosen(m, patterns or (DEFAULT,)))


def _is_chosen(metric: Metric[Any], patterns: Sequence[str]) -> bool:
    if DEFAULT in patterns and not metric.optional:
        return True
    return any(fnmatch.fnmatchcase(metric.name, pattern) for pattern in patterns)
