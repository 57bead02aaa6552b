"""What a backend has to be asked before all checks can be made.

Whoever asks puts the answers into the subject, under the place that each question has.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from advisor.rules.subject import ScaledMetric, Subject, is_called
from slicewatch.promrules.faults import Place, RuleError
from slicewatch.promrules.matchers import UnsupportedRequirementError
from slicewatch.promrules.rule import CustomRule, ExternalRule, QueryMode

NAMESPACE: Final = "default"
"""Stands for the namespace of a request where none is known."""


def series_questions(subject: Subject) -> Iterator[tuple[Place, str]]:
    """Yield a selector for each rule: its series' labels, and how often they are scraped."""
    for rule in subject.rules():
        yield rule.place, rule.series.text


def trial_questions(subject: Subject) -> Iterator[tuple[Place, str]]:
    """Yield a query for each rule, to see whether the backend takes it at all."""
    for rule in subject.rules():
        with suppress(RuleError):  # one that needs a certain selector cannot be tried
            yield rule.place, _trial(rule)


def _trial(rule: CustomRule | ExternalRule) -> str:
    series = next(iter(rule.metrics().values()), "") or "up"
    if isinstance(rule, ExternalRule):
        return rule.query(series=series, namespace=NAMESPACE)
    label = rule.targets[-1].label if rule.targets else "pod"
    return rule.query(series=series, label=label, namespace=NAMESPACE, names=["x"])


def result_questions(subject: Subject) -> Iterator[tuple[Place, str]]:
    """Yield the query for each metric of an autoscaler that a rule offers."""
    for metric in subject.metrics:
        try:
            query = _query(subject, metric)
        except (RuleError, UnsupportedRequirementError):
            continue  # another check has said so
        if query:
            yield metric.place, query


def _query(subject: Subject, metric: ScaledMetric) -> str:
    namespace = metric.namespace or NAMESPACE
    for external in reversed(subject.external_rules_of(metric)):
        series = next(iter(external.metrics().values()))
        return external.query(series=series, namespace=namespace, requirements=metric.requirements)
    for custom in reversed(subject.custom_rules_of(metric)):
        label = _label(custom, metric)
        # By name, it cannot be asked without knowing the pods.
        if label and custom.mode is QueryMode.GROUPED:
            series = next(iter(custom.metrics().values()))
            return custom.query(
                series=series, label=label, namespace=namespace, requirements=metric.requirements
            )
    return ""


def _label(rule: CustomRule, metric: ScaledMetric) -> str | None:
    named = (t.label for t in rule.targets if is_called(t.resource, metric.resource))
    return next(named, None)
