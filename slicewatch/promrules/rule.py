"""Rules, compiled: what they offer, what has to be discovered, and the query for a question."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from slicewatch.promrules.faults import Place
from slicewatch.promrules.mapping import Mapping, Target
from slicewatch.promrules.matchers import Condition, Requirement, among, conditions
from slicewatch.promrules.naming import Naming
from slicewatch.promrules.series import SeriesSelector
from slicewatch.promrules.template import Template
from slicewatch.promrules.template_nodes import Field, TemplateError

DEFAULT_NAMESPACE_LABEL: Final = "namespace"
_ANY_NAMESPACE: Final = f'{DEFAULT_NAMESPACE_LABEL}=~".*"'
_COMMA_FOLLOWS: Final = re.compile(r"\.LabelMatchers\s*-?>>\s*,")


class QueryMode(StrEnum):
    """How the objects of a question get into its query."""

    EXACT = "exact"
    """By name, as prometheus-adapter does."""
    GROUPED = "grouped"
    """Not at all: the answer has all objects of the namespace, to pick from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """What a backend has to be asked before all metrics of a rule are known.

    Attributes:
        match: a selector of series, for ``match[]``.
        names: the names of its series (values of ``__name__``) are needed.
        labels: the names of its labels are needed.
    """

    match: str
    names: bool
    labels: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceChoice:
    """Which namespace a query is about.

    Attributes:
        requested: that of the request.
        fixed: this one, if it is not the request's; empty: every one.
    """

    requested: bool = True
    fixed: str = ""

    def of(self, requested: str | None) -> str | None:
        """Return the namespace to ask for; None for all."""
        return requested if self.requested else (self.fixed or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """What is made of a value before it is served.

    Attributes:
        nan_as: what NaN stands for; None: nothing, the value is left out.
        smallest, largest: limits that values are moved to.
        whole: whether it is rounded to a whole number, half to even.
    """

    nan_as: float | None = None
    smallest: float = -math.inf
    largest: float = math.inf
    whole: bool = False

    def of(self, value: float) -> float | None:
        """Return the value to serve; None if there is none: infinite, or NaN without a meaning."""
        if math.isnan(value):
            if self.nan_as is None:
                return None
            value = self.nan_as
        if math.isinf(value):
            return None
        limited = min(max(value, self.smallest), self.largest)
        return float(round(limited)) if self.whole else limited


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """What both kinds of rules have.

    Attributes:
        place: of the rule; its path is its name in logs and metrics, such as ``rules[2]``.
        max_age_seconds: how old samples may be; None: whatever the setting says.
        backend: name of the backend to ask; empty: the default one.
    """

    place: Place
    series: SeriesSelector
    naming: Naming
    mapping: Mapping
    template: Template
    namespace: NamespaceChoice
    adjustment: Adjustment
    max_age_seconds: float | None
    backend: str

    @property
    def name(self) -> str:
        """Return the rule's name: where it stands in its file."""
        return self.place.path

    @property
    def names(self) -> tuple[str, ...]:
        """Return the metrics that are known without asking anybody."""
        name = self.naming.fixed
        if self.series.name is not None:
            name = self.naming.metric(self.series.name)
        return (name,) if name else ()

    def metrics(self, discovered: Iterable[str] = ()) -> dict[str, str]:
        """Return each metric with the series that it is made of.

        Args:
            discovered: names of series, where ``discovery`` says that they are needed.
        """
        if self.series.name is not None:
            return self.naming.metrics([self.series.name])
        if not self._needs_names:
            return dict.fromkeys(self.names, "")
        return self.naming.metrics(discovered)

    @property
    def _needs_names(self) -> bool:
        if self.series.name is not None:
            return False
        uses_series = any(
            isinstance(each, Field) and each.name == "Series"
            for each in self.template.expressions()
        )
        return uses_series or self.naming.fixed is None

    @property
    def _no_matchers(self) -> str:
        """Return what stands for no conditions: a comma after nothing would be no PromQL."""
        return _ANY_NAMESPACE if _COMMA_FOLLOWS.search(self.template.text) else ""

    def _rendered(self, series: str, found: Sequence[Condition], group_by: Sequence[str]) -> str:
        query = self.template.render(
            {
                "Series": series,
                "LabelMatchers": ",".join(each.text for each in found) or self._no_matchers,
                "LabelValuesByName": {each.label: "|".join(each.values) for each in found},
                "GroupBy": ",".join(group_by),
                "GroupBySlice": list(group_by),
            }
        )
        if not query.strip():
            raise TemplateError("metricsQuery makes an empty query", "let every branch make one")
        return query

    def _conditions(
        self, namespace: str | None, requirements: Iterable[Requirement]
    ) -> list[Condition]:
        found = conditions(requirements)
        chosen = self.namespace.of(namespace)
        if chosen:
            label = self.mapping.namespace_label or DEFAULT_NAMESPACE_LABEL
            found.append(among(label, [chosen]))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomRule(_Rule):
    """A rule for metrics of objects."""

    mode: QueryMode

    @property
    def targets(self) -> tuple[Target, ...]:
        """Return the kinds of objects that are known without asking anybody."""
        return self.mapping.targets

    @property
    def discovery(self) -> Discovery | None:
        """Return what has to be asked for; None if everything is known."""
        names, labels = self._needs_names, self.mapping.template is not None
        if not names and not labels:
            return None
        return Discovery(match=self.series.text, names=names, labels=labels)

    def query(
        self,
        *,
        series: str,
        label: str,
        namespace: str | None,
        names: Sequence[str] = (),
        requirements: Iterable[Requirement] = (),
    ) -> str:
        """Return the PromQL text whose result has one series per object.

        Args:
            series: the metric's, as ``metrics`` returns it.
            label: what names the objects, in the series and in the result.
            namespace: of the request; None for objects outside of namespaces.
            names: of the objects; used in exact mode only, and needed there.
            requirements: of the request's metric label selector.

        Raises:
            UnsupportedRequirementError: a requirement cannot be asked of Prometheus.
            TemplateError: the template cannot be rendered for this.
        """
        found = self._conditions(namespace, requirements)
        if self.mode is QueryMode.EXACT:
            found.append(among(label, names))
        else:
            found.append(Condition(label, f'{label}!=""', ()))
        return self._rendered(series, found, [label])


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalRule(_Rule):
    """A rule for metrics that belong to no object."""

    @property
    def discovery(self) -> Discovery | None:
        """Return what has to be asked for; None if everything is known."""
        if not self._needs_names:
            return None
        return Discovery(match=self.series.text, names=True, labels=False)

    def query(
        self, *, series: str, namespace: str | None, requirements: Iterable[Requirement] = ()
    ) -> str:
        """Return the PromQL text; ``.GroupBy`` in it is empty, as in prometheus-adapter.

        Args:
            series: the metric's, as ``metrics`` returns it.
            namespace: of the request.
            requirements: of the request's label selector.

        Raises:
            UnsupportedRequirementError: a requirement cannot be asked of Prometheus.
            TemplateError: the template cannot be rendered for this.
        """
        return self._rendered(series, self._conditions(namespace, requirements), [])
