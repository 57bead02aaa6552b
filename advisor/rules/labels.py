"""Checks of the mapping from labels to objects: is it the workload that the label names?"""

from collections.abc import Iterator
from typing import Final

from advisor.rules.check import Check, Need, Problem, Severity
from advisor.rules.subject import Source, Subject, is_called
from slicewatch.promrules.mapping import Target
from slicewatch.promrules.rule import CustomRule

EXPORTED: Final = "exported_"
"""What Prometheus puts before a label of the exporter that it has set itself."""


def _exporter_instead_of_workload(subject: Subject) -> Iterator[Problem]:
    for rule in subject.custom():
        facts = subject.series.get(rule.place)
        carried = facts.labels if facts else frozenset()
        for target in rule.targets:
            other = f"{EXPORTED}{target.label}"
            if target.label.startswith(EXPORTED):
                continue
            if other in carried or rule.series.demands(other):
                yield Problem(
                    place=rule.place,
                    what=f"the label {target.label} names the exporter's own {target.resource}; "
                    f"the workload's is in {other}",
                    fix=f"write {other}: {{resource: {target.resource}}} in overrides, or scrape "
                    "with honorLabels",
                )


def _label_that_is_not_there(subject: Subject) -> Iterator[Problem]:
    for rule in subject.custom():
        facts = subject.series.get(rule.place)
        if facts is None or not facts.labels:
            continue
        for target in rule.targets:
            if target.label not in facts.labels:
                yield Problem(
                    place=rule.place,
                    what=f"no series of it has the label {target.label}",
                    fix=_instead(target, facts.labels),
                )


def _instead(target: Target, labels: frozenset[str]) -> str:
    others = (f"{EXPORTED}{target.label}", target.label.removeprefix(EXPORTED))
    found = next((label for label in others if label in labels), None)
    return f"use {found}" if found else f"use one of {', '.join(sorted(labels))}"


def _no_series(subject: Subject) -> Iterator[Problem]:
    for rule in subject.rules():
        facts = subject.series.get(rule.place)
        if facts is not None and not facts.labels:
            yield Problem(
                place=rule.place,
                what=f"{rule.series.text} selects no series now",
                fix="look whether the exporter is scraped, and for labels that are empty",
            )


def _no_mapping_for_kind(subject: Subject) -> Iterator[Problem]:
    for metric in subject.metrics:
        offering = subject.custom_rules_of(metric)
        if metric.source is Source.EXTERNAL or not offering:
            continue
        if not any(_maps(rule, metric.resource) for rule in offering):
            mapped = ", ".join(sorted({t.resource for rule in offering for t in rule.targets}))
            yield Problem(
                place=metric.place,
                what=f"{metric.name} is asked for {metric.resource}s, and {offering[-1].name} maps "
                f"labels to {mapped} only",
                fix=f"add the label that names the {metric.resource} to its overrides",
            )


def _maps(rule: CustomRule, resource: str) -> bool:
    named = any(is_called(target.resource, resource) for target in rule.targets)
    return rule.mapping.template is not None or named


CHECKS: Final = (
    Check(
        id="exporter-label",
        title="A label names the exporter's pod, and the workload is in `exported_...`.",
        severity=Severity.ERROR,
        judge=_exporter_instead_of_workload,
        needs=frozenset({Need.RULES}),
        sharper_with=frozenset({Need.BACKEND}),
    ),
    Check(
        id="missing-label",
        title="A mapped label is on none of the series.",
        severity=Severity.ERROR,
        judge=_label_that_is_not_there,
        needs=frozenset({Need.RULES, Need.BACKEND}),
    ),
    Check(
        id="no-series",
        title="`seriesQuery` selects nothing now.",
        severity=Severity.WARNING,
        judge=_no_series,
        needs=frozenset({Need.RULES, Need.BACKEND}),
    ),
    Check(
        id="unmapped-kind",
        title="An autoscaler asks for a kind of objects that the rule maps no label to.",
        severity=Severity.ERROR,
        judge=_no_mapping_for_kind,
        needs=frozenset({Need.RULES, Need.AUTOSCALERS}),
    ),
)
