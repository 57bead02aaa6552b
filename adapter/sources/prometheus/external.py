"""Metrics that belong to no object, as a provider: each series of a rule's query is one value."""

from collections.abc import Callable, Iterable, Mapping

from adapter.api.status import Reason, Refusal
from adapter.api.values import ExternalItem, external_list
from adapter.provider import Answer, ExternalQuestion, Tree
from adapter.sources.prometheus import explanation
from adapter.sources.prometheus.offers import ExternalOffer
from adapter.sources.prometheus.readings import Reading
from adapter.sources.prometheus.refusals import missing, no_external_value, rendered
from adapter.sources.prometheus.rules import Rules
from adapter.sources.prometheus.values import Value, of_series
from slicewatch.promrules.promql import NAME_LABEL
from slicewatch.promrules.rule import ExternalRule


class ExternalRules:
    """``ExternalMetrics`` of rules."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    @property
    def revision(self) -> int:
        """Return a number that changes whenever the names do."""
        return self._rules.revision

    def names(self) -> Iterable[str]:
        """Return the names as they are configured."""
        return [offer.metric for offer in self._rules.external.values()]

    async def answer_external(self, question: ExternalQuestion) -> Answer:
        """Return the fresh values."""
        offer = self._offer(question)
        reading, found = await self._found(question, offer)
        self._rules.count(offer, found.values())
        served = [one for one in found.values() if one.value is not None]
        if not served:
            raise no_external_value(question.path, offer, reading, found)
        return Answer(
            body=external_list(_item(offer, one) for one in served),
            expires_at=min(one.expires_at for one in served),
            warning=missing("series", found, reading),
            read_at=min(one.read_at for one in served),
            holds=self._holds(reading),
        )

    async def explain_external(self, question: ExternalQuestion) -> Tree:
        """Return the query, what came back, and what became of it."""
        offer = self._offer(question)
        reading, found = await self._found(question, offer)
        tree = explanation.of_reading(offer, reading, self._rules.serving(offer))
        return tree | explanation.of_series(question, found)

    def _offer(self, question: ExternalQuestion) -> ExternalOffer:
        offer = self._rules.external.get(question.path.metric.lower())
        if offer is None:
            raise Refusal(
                Reason.NotFound,
                f"the server could not find the external metric {question.path.metric}; its rule "
                "has just been removed",
            )
        return offer

    async def _found(
        self, question: ExternalQuestion, offer: ExternalOffer
    ) -> tuple[Reading, Mapping[str, Value]]:
        """Return a reading, and what becomes of each series, by its labels as text."""

        def text(rule: ExternalRule | None) -> str:
            if rule is None:
                return ""
            return rule.query(
                series=offer.series,
                namespace=question.path.namespace,
                requirements=question.series.requirements,
            )

        with rendered(offer.rule):
            query = self._rules.query(offer, text(offer.rule), text(offer.times))
        reading = await self._rules.read(offer, query)
        values = of_series(reading, self._rules.serving(offer))
        return reading, {_text(one.labels): one for one in values}

    def _holds(self, reading: Reading) -> Callable[[], bool]:
        revision = self._rules.revision
        return lambda: (
            revision == self._rules.revision and self._rules.readings.is_current(reading)
        )


def _text(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{key}={value}" for key, value in sorted(labels.items())) + "}"


def _item(offer: ExternalOffer, found: Value) -> bytes:
    if found.value is None:
        raise TypeError(f"{found.labels} has no value")
    labels = {key: value for key, value in found.labels.items() if key != NAME_LABEL}
    return ExternalItem(
        metric=offer.metric, labels=labels, value=found.value, read_at=found.read_at
    ).encode()
