"""The facts as external metrics: an item per series, for autoscalers of any namespace.

A right to external metrics is one in a namespace. So series that are about a namespace are shown
to that one only, and those that are about none of them to all.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from adapter.api.status import Reason, Refusal
from adapter.api.values import ExternalItem, external_list
from adapter.cluster.facts import ClusterFacts, Fact, series_of
from adapter.cluster.freshness import OutdatedError
from adapter.cluster.resources import PREFIX
from adapter.provider import Answer, ExternalQuestion, Tree
from slicewatch.catalog import CATALOG
from slicewatch.catalog.cluster import PENDING, POOLS
from slicewatch.catalog.model import Cluster, Kind, Label, Metric
from slicewatch.kube.times import timestamp

# An explanation names no more than this many pods.
MOST_NAMED: Final = 20

_Pair = tuple[dict[str, str], float]


class ClusterExternal:
    """``ExternalMetrics`` of the cluster: its gauges, since autoscalers take no rate of a counter.

    A label's value may not hold a slash in a selector. So a resource is called ``gpu`` or
    ``mig-1g.10gb`` here, without the domain in front.
    """

    revision = 0

    def __init__(self, facts: ClusterFacts) -> None:
        self._facts = facts
        self._metrics: dict[str, tuple[Cluster[Any], Metric[Any]]] = {
            metric.name: (metric.origin, metric)
            for metric in CATALOG
            if isinstance(metric.origin, Cluster) and metric.kind is Kind.GAUGE
        }

    def names(self) -> Iterable[str]:
        """Return the names of the gauges."""
        return self._metrics

    async def answer_external(self, question: ExternalQuestion) -> Answer:
        """Return the series that the selector chooses, among those of the namespace.

        Where only what is there has a series, as with pods that wait, none is an item of 0: an
        autoscaler that got no item would keep its replicas for ever.

        Raises:
            Refusal: 400 for a label that the metric does not have, 404 if no series is chosen, 503
                while the cluster is not known well enough.
        """
        origin, metric, fact = self._found(question)
        visible = list(_visible(metric, fact, question.path.namespace))
        chosen = [pair for pair in visible if question.series.matches(pair[0])]
        if not chosen and origin.sparse:
            chosen = [(_asked_for(metric, question), 0.0)]
        if not chosen:
            raise _nothing(origin, metric, question, visible)
        items = [
            ExternalItem(metric=metric.name, labels=labels, value=value, read_at=fact.read_at)
            for labels, value in chosen
        ]
        return Answer(body=external_list(i.encode() for i in items), read_at=fact.read_at)

    async def explain_external(self, question: ExternalQuestion) -> Tree:
        """Return every series of the namespace, whether it is chosen, and who waits there."""
        origin, metric, fact = self._found(question)
        namespace = question.path.namespace
        tree: Tree = {
            "kind": "ExternalMetricExplanation",
            "metric": metric.name,
            "help": metric.help,
            "unit": str(metric.unit),
            "labels": [str(label) for label in metric.labels],
            "labelSelector": question.series.text,
            "namespace": namespace,
            "readAt": timestamp(int(fact.read_at)),
            "series": [
                {"labels": labels, "value": value, "chosen": question.series.matches(labels)}
                for labels, value in _visible(metric, fact, namespace)
            ],
        }
        if origin is PENDING:
            tree["waiting"] = self._waiting(namespace, fact.read_at)
        return tree

    def _found(self, question: ExternalQuestion) -> tuple[Cluster[Any], Metric[Any], Fact]:
        origin, metric = self._metrics[question.path.metric.lower()]
        known = {str(label) for label in metric.labels}
        unknown = sorted({r.key for r in question.series.requirements} - known)
        if unknown:
            raise Refusal(
                Reason.BadRequest,
                f"the series of {metric.name} have no label {' and no label '.join(unknown)}; "
                f"they have {', '.join(sorted(known))}",
                field="labelSelector",
            )
        try:
            return origin, metric, self._facts.fact(origin)
        except OutdatedError as error:
            message = f"the external metric {metric.name} is not available now: {error}"
            raise Refusal(Reason.ServiceUnavailable, message) from error

    def _waiting(self, namespace: str, now: float) -> list[Tree]:
        return [
            {
                "pod": ask.name,
                "requests": dict(ask.devices),
                "priority": ask.priority,
                "reasons": {resource: str(ask.reason_of(resource)) for resource, _ in ask.devices},
                "ageSeconds": None if ask.created_at is None else max(0.0, now - ask.created_at),
            }
            for ask in self._facts.waiting_in(namespace)[:MOST_NAMED]
        ]


def _visible(metric: Metric[Any], fact: Fact, namespace: str) -> Iterator[_Pair]:
    """Yield the labels and values that may be seen from a namespace, in a fixed order."""
    names = [str(label) for label in metric.labels]
    for texts, value in sorted(series_of(metric, fact).items()):
        labels = {n: t.removeprefix(PREFIX) for n, t in zip(names, texts, strict=True) if t}
        if Label.NAMESPACE not in metric.labels or labels.get(Label.NAMESPACE) == namespace:
            yield labels, value


def _asked_for(metric: Metric[Any], question: ExternalQuestion) -> dict[str, str]:
    """Return the labels of what there is none of."""
    within = {str(Label.NAMESPACE): question.path.namespace}
    own = within if Label.NAMESPACE in metric.labels else {}
    return dict(question.series.equalities) | own


def _nothing(
    origin: Cluster[Any],
    metric: Metric[Any],
    question: ExternalQuestion,
    visible: list[_Pair],
) -> Refusal:
    if visible:
        labels = ", ".join(f"{name}={text}" for name, text in visible[0][0].items())
        return Refusal(
            Reason.NotFound,
            f"no series of {metric.name} matches {question.series.text}; there are "
            f"{len(visible)}, one of them with {labels}",
        )
    if origin is POOLS:
        return Refusal(
            Reason.ServiceUnavailable,
            f"the external metric {metric.name} is not available now: no exporter reports a "
            "contention that is fresh",
        )
    namespace = question.path.namespace
    where = f" in namespace {namespace}" if Label.NAMESPACE in metric.labels else ""
    return Refusal(Reason.NotFound, f"there is no series of {metric.name}{where}")
