"""Which series a rule takes, and what each of them is called in the API."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from slicewatch.promrules.faults import FaultKind, RuleError, listed
from slicewatch.promrules.regex import Expansion


@dataclass(frozen=True, slots=True, kw_only=True)
class NameFilter:
    """An entry of ``seriesFilters``: an unanchored expression, and whether it has to match."""

    pattern: re.Pattern[str]
    positive: bool

    def passes(self, series: str) -> bool:
        """Tell whether a name of series is taken."""
        return (self.pattern.search(series) is not None) == self.positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """``seriesFilters`` and ``name`` of a rule."""

    filters: tuple[NameFilter, ...]
    matches: re.Pattern[str]
    as_: Expansion

    def metric(self, series: str) -> str | None:
        """Return the metric that a series is served as; None if the rule does not take it."""
        if not all(each.passes(series) for each in self.filters):
            return None
        match = self.matches.search(series)
        return (self.as_.of(match) or None) if match else None

    def metrics(self, series: Iterable[str]) -> dict[str, str]:
        """Return each metric with its series; of two series for one metric the last counts."""
        named = ((self.metric(name), name) for name in series)
        return {metric: name for metric, name in named if metric is not None}

    @property
    def fixed(self) -> str | None:
        """Return the metric if it is the same for every series; None if it depends on them."""
        return None if self.as_.references() else self.as_.text.replace("$$", "$")


def naming(pattern: re.Pattern[str], as_: str, filters: Iterable[NameFilter] = ()) -> Naming:
    """Return the naming of a rule.

    Args:
        pattern: ``matches``, to be searched for.
        as_: what the metric is called, with references to groups; empty is the whole name, or
            the only group.
        filters: of the series.

    Raises:
        RuleError: ``as_`` names groups that the expression does not have.
    """
    if not as_ and pattern.groups > 1:
        raise RuleError(
            FaultKind.NAME_REFERENCE,
            f"the expression has {pattern.groups} groups and nothing says which is the name",
            "add as: with references such as ${1}",
        )
    expansion = Expansion(text=as_ or ("$1" if pattern.groups else "$0"))
    if unknown := expansion.unknown(pattern):
        raise RuleError(
            FaultKind.NAME_REFERENCE,
            f"{as_!r} refers to {listed(unknown)}, which is no group of the expression, so that "
            "the name would miss this part",
            _brace_hint(as_, unknown[0]),
        )
    return Naming(filters=tuple(filters), matches=pattern, as_=expansion)


def _brace_hint(as_: str, name: str) -> str:
    number = re.match(r"\d+", name)
    if number is None or number[0] == name:
        return "add the group in parentheses, or remove the reference"
    braced = as_.replace(f"${name}", f"${{{number[0]}}}{name[number.end() :]}")
    return f"write {braced!r}, since a reference goes on as far as letters, digits and _ do"
