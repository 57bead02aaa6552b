"""Providers whose values are given: metrics of any kind of objects, and of none.

For tests of what is between clients and providers; what they were asked is within reach.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from adapter.api.paths import ALL
from adapter.api.values import ExternalItem, Item, external_list, metric_list
from adapter.offering import not_found
from adapter.provider import Answer, ExternalQuestion, Offer, Question, Tree

Name = tuple[str, str]
"""Namespace and name of an object."""


@dataclass(slots=True)
class FixedObjects:
    """``CustomMetrics`` of given values.

    Attributes:
        given: values by offer and object.
        asked: the questions so far.
    """

    given: dict[Offer, Mapping[Name, float]]
    read_at: float = 1_790_000_000.0
    revision: int = 0
    asked: list[Question] = field(default_factory=list)

    def offers(self) -> Iterable[Offer]:
        """Return what has values."""
        return list(self.given)

    async def answer(self, question: Question) -> Answer:
        """Return the given values of the objects of a path."""
        self.asked.append(question)
        path = question.path
        ((offer, values),) = (
            (offer, values)
            for offer, values in self.given.items()
            if (offer.resource.name, offer.metric) == (path.resource, path.metric)
        )
        items = [
            Item(
                resource=offer.resource,
                namespace=namespace,
                name=name,
                metric=offer.metric,
                value=value,
                read_at=self.read_at,
                window_seconds=0.0,
                selector=question.series.echo(),
            ).encode(path.version)
            for (namespace, name), value in values.items()
            if namespace == path.namespace and path.name in {name, ALL}
        ]
        if not items and path.name != ALL:
            raise not_found(path, f"; there is no {path.resource} {path.name}")
        body = metric_list(path.version, items)
        return Answer(body=body, read_at=self.read_at if items else math.nan)

    async def explain(self, question: Question) -> Tree:
        """Return what was asked."""
        return {"kind": "MetricExplanation", "metric": question.path.metric}


@dataclass(slots=True)
class FixedSeries:
    """``ExternalMetrics`` of given values.

    Attributes:
        given: series by metric.
        asked: the questions so far.
    """

    given: dict[str, Sequence[tuple[Mapping[str, str], float]]]
    read_at: float = 1_790_000_000.0
    revision: int = 0
    asked: list[ExternalQuestion] = field(default_factory=list)

    def names(self) -> Iterable[str]:
        """Return what has values."""
        return list(self.given)

    async def answer_external(self, question: ExternalQuestion) -> Answer:
        """Return the given values of the series that are chosen."""
        self.asked.append(question)
        ((name, series),) = (
            (name, series)
            for name, series in self.given.items()
            if name.lower() == question.path.metric.lower()
        )
        items = [
            ExternalItem(metric=name, labels=labels, value=value, read_at=self.read_at).encode()
            for labels, value in series
            if question.series.matches(labels)
        ]
        return Answer(body=external_list(items), read_at=self.read_at if items else math.nan)

    async def explain_external(self, question: ExternalQuestion) -> Tree:
        """Return what was asked."""
        return {"kind": "MetricExplanation", "metric": question.path.metric}
