"""What is judged: rules and autoscalers of files, and what a backend knows of their series."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from slicewatch.kube.label_selector import LabelRequirement
from slicewatch.promrules.faults import Place
from slicewatch.promrules.loading import RuleFile
from slicewatch.promrules.rule import CustomRule, ExternalRule


class Source(StrEnum):
    """Where an autoscaler takes a metric from; the words are those of its manifest."""

    PODS = "Pods"
    OBJECT = "Object"
    EXTERNAL = "External"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledMetric:
    """A metric that an autoscaler scales on.

    Attributes:
        place: of its entry in the manifest.
        namespace: of the autoscaler; empty where the manifest leaves it open.
        target_type: Value, AverageValue or Utilization.
        target: the number to keep; None if it is none or not given.
        resource: singular of the kind of object, in lower case; empty for external metrics.
        requirements: of its selector.
    """

    place: Place
    namespace: str
    source: Source
    name: str
    target_type: str
    target: Decimal | None
    resource: str = ""
    requirements: tuple[LabelRequirement, ...] = ()


def is_called(resource: str, singular: str) -> bool:
    """Tell whether a rule's word for a kind, one or many, is that of the singular."""
    plurals = {f"{singular}s", f"{singular}es", f"{singular.removesuffix('y')}ies"}
    return resource == singular or resource in plurals


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesFacts:
    """What a backend knows of the series that a rule selects.

    Attributes:
        labels: names of the labels that any of them has; none if there are no series.
        interval_seconds: between two samples, about; None if there are too few to tell.
    """

    labels: frozenset[str]
    interval_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFacts:
    """What a backend answers for a metric: how many series, and the largest value."""

    series: int
    largest: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Everything to be judged together.

    Attributes:
        unread: what could not be read at all: where, what, what to do.
        scrape_interval_seconds: as the user says; None: as the backend's samples say.
        series: by the place of the rule.
        results: by the place of the autoscaler's metric.
        refusals: what the backend says against the query of a rule, by the rule's place.
    """

    files: tuple[RuleFile, ...] = ()
    metrics: tuple[ScaledMetric, ...] = ()
    unread: tuple[tuple[Place, str, str], ...] = ()
    scrape_interval_seconds: float | None = None
    series: Mapping[Place, SeriesFacts] = field(default_factory=dict)
    results: Mapping[Place, ResultFacts] = field(default_factory=dict)
    refusals: Mapping[Place, str] = field(default_factory=dict)

    def custom(self) -> Iterator[CustomRule]:
        """Yield the rules for metrics of objects, in the order of the files."""
        for file in self.files:
            yield from file.custom

    def external(self) -> Iterator[ExternalRule]:
        """Yield the rules for external metrics, in the order of the files."""
        for file in self.files:
            yield from file.external

    def rules(self) -> Iterator[CustomRule | ExternalRule]:
        """Yield all rules."""
        yield from self.custom()
        yield from self.external()

    def custom_rules_of(self, metric: ScaledMetric) -> list[CustomRule]:
        """Return the rules that are known to offer a metric of objects."""
        if metric.source is Source.EXTERNAL:
            return []
        return [rule for rule in self.custom() if metric.name in rule.names]

    def external_rules_of(self, metric: ScaledMetric) -> list[ExternalRule]:
        """Return the rules that are known to offer an external metric, whose name has no case."""
        if metric.source is not Source.EXTERNAL:
            return []
        name = metric.name.lower()
        return [rule for rule in self.external() if name in map(str.lower, rule.names)]

    def interval_seconds(self, rule: CustomRule | ExternalRule) -> float | None:
        """Return the time between two samples of a rule's series; None if nobody knows."""
        if self.scrape_interval_seconds is not None:
            return self.scrape_interval_seconds
        facts = self.series.get(rule.place)
        return facts.interval_seconds if facts else None
