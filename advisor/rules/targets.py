"""Checks of autoscalers' targets: are they in the metric's unit, and within what is computed?"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from advisor.rules.check import Check, Need, Problem, Severity
from advisor.rules.subject import ScaledMetric, Source, Subject
from advisor.rules.units import unit_of
from slicewatch.catalog.model import Unit
from slicewatch.promrules.grouping import skeleton

# An autoscaler computes replicas in 32 bits.
MOST_REPLICAS: Final = 2**31 - 1
FULL_PERCENT: Final = 100
_OTHER_UNIT: Final = frozenset({"*", "/", "count", "deriv", "increase", "irate", "rate"})
LEAST_BYTES: Final = 1024


def _wrong_unit(subject: Subject) -> Iterator[Problem]:
    for metric in subject.metrics:
        unit = unit_of(metric.name, *_same_unit(subject, metric))
        if unit is None or metric.target is None or _is_total(metric):
            continue
        wrong = _mismatch(unit, metric.target)
        if wrong:
            what, fix = wrong
            yield Problem(
                place=metric.place, what=f"{metric.name} {what}: {metric.target:f}", fix=fix
            )


def _same_unit(subject: Subject, metric: ScaledMetric) -> Iterator[str]:
    """Yield the series that a metric is made of without a change of its unit."""
    for rule in (*subject.custom_rules_of(metric), *subject.external_rules_of(metric)):
        words = {token.text for token in skeleton(rule.template)}
        if rule.series.name is not None and not words & _OTHER_UNIT:
            yield rule.series.name


def _is_total(metric: ScaledMetric) -> bool:
    """Tell whether the target is of a sum over replicas, which goes beyond what one has."""
    return metric.source is not Source.PODS and metric.target_type == "Value"


def _mismatch(unit: Unit, target: Decimal) -> tuple[str, str] | None:
    if unit is Unit.RATIO and target > 1:
        fix = f"write {target / 100:f} for {target:f} %" if target <= FULL_PERCENT else _RATIO
        return "goes from 0 to 1, and the target is more", fix
    if unit is Unit.PERCENT and target > FULL_PERCENT:
        return "goes from 0 to 100, and the target is more", "write a target below 100"
    if unit is Unit.PERCENT and target < 1:
        return (
            "goes from 0 to 100, and the target is less than one percent",
            f"write {target.scaleb(2):f} for {target.scaleb(2):f} %",
        )
    if unit is Unit.BYTES and target < LEAST_BYTES:
        return "is in bytes, and the target is a few of them", "write a suffix such as Gi"
    return None


_RATIO: Final = "write a target below 1, such as 700m"


def _utilization_type(subject: Subject) -> Iterator[Problem]:
    for metric in subject.metrics:
        if metric.target_type == "Utilization":
            yield Problem(
                place=metric.place,
                what=f"Utilization is a share of what pods request; no pod requests {metric.name}",
                fix="write type: AverageValue and averageValue: with the number itself",
            )


def _overflow(subject: Subject) -> Iterator[Problem]:
    for metric in subject.metrics:
        result = subject.results.get(metric.place)
        if result is None or result.largest is None or not metric.target:
            continue
        replicas = Decimal(result.largest) / metric.target
        if abs(replicas) > MOST_REPLICAS:
            yield Problem(
                place=metric.place,
                what=f"{metric.name} is {result.largest:g} now, which at a target of "
                f"{metric.target:f} makes more replicas than 32 bits hold: some versions of "
                "Kubernetes then scale to one",
                fix="raise the target, or set clampMax on the rule",
            )


CHECKS: Final = (
    Check(
        id="wrong-unit",
        title="A target is in another unit than its metric.",
        severity=Severity.ERROR,
        judge=_wrong_unit,
        needs=frozenset({Need.AUTOSCALERS}),
        sharper_with=frozenset({Need.RULES}),
    ),
    Check(
        id="utilization-target",
        title="A target of type Utilization is for CPU and memory only.",
        severity=Severity.ERROR,
        judge=_utilization_type,
        needs=frozenset({Need.AUTOSCALERS}),
    ),
    Check(
        id="overflow",
        title="A value divided by its target overflows the autoscaler.",
        severity=Severity.ERROR,
        judge=_overflow,
        needs=frozenset({Need.AUTOSCALERS, Need.RULES, Need.BACKEND}),
    ),
)
