"""What the rules offer: each metric of each kind of objects, and the rule that answers for it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from adapter.api.resources import Resource, Resources
from adapter.sources.prometheus.dating import times_of_all, times_of_objects
from slicewatch.promrules.mapping import Target
from slicewatch.promrules.rule import CustomRule, ExternalRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a backend knew when it was asked for what a rule leaves open.

    Attributes:
        series: names of its series.
        labels: names of their labels.
    """

    series: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


NOTHING = Found()


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomOffer:
    """A metric of a kind of objects.

    Attributes:
        times: the rule for the age of the samples; None if that cannot be asked for.
        series: what the metric is made of.
        label: what names the objects.
    """

    rule: CustomRule
    times: CustomRule | None
    resource: Resource
    metric: str
    series: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalOffer:
    """A metric that belongs to no object; attributes as of ``CustomOffer``."""

    rule: ExternalRule
    times: ExternalRule | None
    metric: str
    series: str


def custom_offers(
    rules: Iterable[CustomRule], found: Mapping[str, Found], resources: Resources
) -> dict[tuple[Resource, str], CustomOffer]:
    """Return what rules offer; of two for the same metric of a kind the later counts.

    Args:
        rules: in the order of the configuration.
        found: what backends knew, by the names of rules.
        resources: kinds that are known; others are left out.
    """
    offers = {}
    for rule in rules:
        known, times = found.get(rule.name, NOTHING), times_of_objects(rule)
        metrics = rule.metrics(known.series)
        for target in targets(rule, known):
            resource = resources.find(target.name)
            if resource is None:
                continue
            for metric, series in metrics.items():
                offers[resource, metric] = CustomOffer(
                    rule=rule, times=times, resource=resource, metric=metric, series=series,
                    label=target.label,
                )  # fmt: skip
    return offers


def targets(rule: CustomRule, found: Found) -> list[Target]:
    """Return the labels that name objects, and of which kinds."""
    return rule.mapping.discovered(found.labels) if found.labels else list(rule.targets)


def external_offers(
    rules: Iterable[ExternalRule], found: Mapping[str, Found]
) -> dict[str, ExternalOffer]:
    """Return what rules offer, by name in lower case, as clients ask for it."""
    offers = {}
    for rule in rules:
        times = times_of_all(rule)
        for metric, series in rule.metrics(found.get(rule.name, NOTHING).series).items():
            offers[metric.lower()] = ExternalOffer(
                rule=rule, times=times, metric=metric, series=series
            )
    return offers
