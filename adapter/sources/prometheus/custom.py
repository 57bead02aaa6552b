"""Metrics of objects that rules define, as a provider: one query for all who ask about a namespace."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from adapter.api.paths import ALL
from adapter.api.resources import PODS
from adapter.api.status import Reason, Refusal
from adapter.api.values import Item, metric_list
from adapter.cluster.pods import Pods
from adapter.offering import not_found
from adapter.provider import Answer, Offer, Question, Tree
from adapter.selection import selected
from adapter.sources.prometheus import explanation
from adapter.sources.prometheus.offers import CustomOffer
from adapter.sources.prometheus.readings import Query, Reading
from adapter.sources.prometheus.refusals import missing, no_value, rendered
from adapter.sources.prometheus.rules import Rules
from adapter.sources.prometheus.values import Drop, Value, of_objects
from slicewatch.promrules.rule import CustomRule, QueryMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a question.

    Attributes:
        found: each object that is asked for, by name.
        others: names of objects that the reading has and nobody asks for.
    """

    offer: CustomOffer
    reading: Reading
    found: Mapping[str, Value]
    others: tuple[str, ...]


class CustomRules:
    """``CustomMetrics`` of rules."""

    def __init__(self, rules: Rules, pods: Pods) -> None:
        self._rules = rules
        self._pods = pods

    @property
    def revision(self) -> int:
        """Return a number that changes whenever the offers do."""
        return self._rules.revision

    def offers(self) -> Iterable[Offer]:
        """Return every metric that is configured, and those that are discovered."""
        for offer in self._rules.custom.values():
            yield Offer(resource=offer.resource, metric=offer.metric)

    async def answer(self, question: Question) -> Answer:
        """Return the fresh values."""
        offer, names = self._asked(question)
        if names == ():
            return Answer(body=metric_list(question.path.version, ()))
        outcome = await self._outcome(question, offer, names)
        self._rules.count(offer, outcome.found.values())
        served = {name: one for name, one in outcome.found.items() if one.value is not None}
        if not served and (outcome.reading.result.samples or not question.series.requirements):
            raise no_value(
                question.path, offer, outcome.reading, outcome.found, self._hint(question, outcome)
            )
        return Answer(
            body=metric_list(
                question.path.version,
                [_item(question, offer, name, one) for name, one in served.items()],
            ),
            expires_at=min((one.expires_at for one in served.values()), default=math.inf),
            warning=missing(offer.resource.plural, outcome.found, outcome.reading),
            read_at=min((one.read_at for one in served.values()), default=math.nan),
            holds=self._holds(outcome.reading),
        )

    async def explain(self, question: Question) -> Tree:
        """Return the query, what came back, and what became of it."""
        offer, names = self._asked(question)
        if names == ():
            return explanation.nobody(question, offer, self._pods)
        outcome = await self._outcome(question, offer, names)
        tree = explanation.of_reading(offer, outcome.reading, self._rules.serving(offer))
        tree |= explanation.of_objects(offer, question, outcome.found, outcome.others)
        hint = self._hint(question, outcome)
        return tree | ({"hint": hint.removeprefix("; ")} if hint else {})

    def _asked(self, question: Question) -> tuple[CustomOffer, tuple[str, ...] | None]:
        """Return who answers, and the objects that are asked for by name; None for all."""
        path = question.path
        offer = self._rules.custom.get((path.resource, path.metric))
        if offer is None:
            raise not_found(path, "; its rule has just been removed")
        if question.combine is not None or question.window_seconds is not None:
            raise Refusal(
                Reason.BadRequest,
                f"combine and window: the rule {offer.rule.name} makes {path.metric} by its own "
                "query; write it into metricsQuery",
                field="metricLabelSelector",
            )
        if offer.resource == PODS:
            return offer, self._selected(question)
        if path.name != ALL:
            return offer, (path.name,)
        if question.objects.requirements:
            raise Refusal(
                Reason.BadRequest,
                f"labelSelector: the labels of {offer.resource.plural} are not known here, only "
                "those of pods; name one object, or leave the selector out",
                field="labelSelector",
            )
        return offer, None

    def _selected(self, question: Question) -> tuple[str, ...]:
        """Return the pods that are asked for and have not ended."""
        path = question.path
        pods = selected(self._pods, path, question.objects)
        if path.name != ALL and pods[0].finished:
            raise not_found(path, f"; the pod has finished ({pods[0].status.phase})")
        return tuple(pod.metadata.name for pod in pods if not pod.finished)

    async def _outcome(
        self, question: Question, offer: CustomOffer, names: tuple[str, ...] | None
    ) -> Outcome:
        query = self._query(question, offer, names)
        reading = await self._rules.read(offer, query)
        values = of_objects(reading, offer.label, self._rules.serving(offer))
        asked = tuple(sorted(values)) if names is None else names
        absent = Value(labels={}, drop=Drop.NO_SERIES)
        return Outcome(
            offer=offer,
            reading=reading,
            found={name: values.get(name, absent) for name in asked},
            others=tuple(sorted(values.keys() - set(asked))),
        )

    def _query(
        self, question: Question, offer: CustomOffer, names: tuple[str, ...] | None
    ) -> Query:
        """Return the query: the same for all objects of a namespace wherever that is possible."""
        path = question.path
        # Outside of namespaces, one object is far less than all of the cluster.
        by_name = not offer.resource.namespaced and names is not None
        exact = by_name or offer.rule.mode is QueryMode.EXACT
        if exact and names is None:
            raise Refusal(
                Reason.BadRequest,
                f"the query of the rule {offer.rule.name} has to name its objects: name one "
                f"instead of {ALL}, or write it as sum(...{{<<.LabelMatchers>>}}) by "
                "(<<.GroupBy>>)",
            )

        def text(rule: CustomRule | None) -> str:
            if rule is None:
                return ""
            return replace(rule, mode=QueryMode.EXACT if exact else rule.mode).query(
                series=offer.series,
                label=offer.label,
                namespace=path.namespace or None,
                names=(names or ()) if exact else (),
                requirements=question.series.requirements,
            )

        with rendered(offer.rule):
            return self._rules.query(offer, text(offer.rule), text(offer.times))

    def _hint(self, question: Question, outcome: Outcome) -> str:
        """Say what the names are that nobody asks for, where nothing else has a value."""
        if outcome.offer.resource != PODS or not outcome.others:
            return ""
        if any(one.drop is not Drop.NO_SERIES for one in outcome.found.values()):
            return ""
        here = self._pods.in_namespace(question.path.namespace)
        known = [name for name in outcome.others if name in here]
        if known:
            return (
                f"; the query has series of {len(known)} pods that are not asked for, such as "
                f"{known[0]}: a metric of other pods needs the type Object or External"
            )
        return (
            f"; the label {outcome.offer.label} names {outcome.others[0]}, which is no pod of "
            f"namespace {question.path.namespace}: where a scrape renames labels, map exported_pod"
        )

    def _holds(self, reading: Reading) -> Callable[[], bool]:
        as_of = (self._rules.revision, self._pods.revision)
        return lambda: (
            as_of == (self._rules.revision, self._pods.revision)
            and self._rules.readings.is_current(reading)
        )


def _item(question: Question, offer: CustomOffer, name: str, found: Value) -> bytes:
    if found.value is None:
        raise TypeError(f"{name} has no value")
    return Item(
        resource=offer.resource,
        namespace=question.path.namespace,
        name=name,
        metric=offer.metric,
        value=found.value,
        read_at=found.read_at,
        window_seconds=0.0,
        selector=question.series.echo(),
    ).encode(question.path.version)
