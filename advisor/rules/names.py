"""Checks of metrics' names: can clients ask for them?"""

from collections.abc import Iterator
from typing import Final

from advisor.rules.check import Check, Need, Problem, Severity
from advisor.rules.subject import Source, Subject
from slicewatch.catalog import CATALOG
from slicewatch.catalog.dcgm import ALIASES
from slicewatch.promrules.faults import Place
from slicewatch.suggestion import did_you_mean

# Kubernetes reads a path that ends in one of these as something else than a metric.
RESERVED: Final = frozenset({"finalize", "metrics", "status"})


def _names(subject: Subject) -> Iterator[tuple[Place, str]]:
    for rule in subject.rules():
        for name in rule.names:
            yield rule.place, name


def _not_a_segment(subject: Subject) -> Iterator[Problem]:
    for place, name in _names(subject):
        if "/" in name or "%" in name or name in {".", ".."}:
            yield Problem(
                place=place,
                what=f"{name!r} cannot be a part of a path, as names of metrics are",
                fix="name it without / and %, by name: {as: ...}",
            )


def _reserved(subject: Subject) -> Iterator[Problem]:
    for place, name in _names(subject):
        if name.lower() in RESERVED:
            yield Problem(
                place=place,
                what=f"Kubernetes takes {name} for a part of the object",
                fix="give it another name, by name: {as: ...}",
            )


def _upper_case(subject: Subject) -> Iterator[Problem]:
    for rule in subject.external():
        for name in rule.names:
            if name != name.lower():
                yield Problem(
                    place=rule.place,
                    what=f"autoscalers ask for {name.lower()}: prometheus-adapter does not find "
                    f"{name} then, this adapter does",
                    fix=f"write name: {{as: {name.lower()}}} if both are to serve it",
                )


def _unknown(subject: Subject) -> Iterator[Problem]:
    if any(rule.discovery is not None and rule.discovery.names for rule in subject.rules()):
        return  # what these offer is known once they run
    known = {name.lower() if external else name for external, name in _known(subject)}
    for metric in subject.metrics:
        is_external = metric.source is Source.EXTERNAL
        if (metric.name.lower() if is_external else metric.name) not in known:
            yield Problem(
                place=metric.place,
                what=f"no rule here offers {metric.name}{did_you_mean(metric.name, known)}",
                fix="add a rule, or ignore this if another file or server has it",
            )


def _known(subject: Subject) -> Iterator[tuple[bool, str]]:
    for external, rules in ((False, subject.custom()), (True, subject.external())):
        for rule in rules:
            for name in rule.names:
                yield external, name
    for served in CATALOG.served():
        yield False, served.name
    for alias in ALIASES:
        yield False, alias.name


CHECKS: Final = (
    Check(
        id="upper-case-external",
        title="The name of an external metric has upper-case letters, and clients lower them.",
        severity=Severity.WARNING,
        judge=_upper_case,
        needs=frozenset({Need.RULES}),
    ),
    Check(
        id="not-a-path-segment",
        title="The name of a metric cannot stand in a path.",
        severity=Severity.ERROR,
        judge=_not_a_segment,
        needs=frozenset({Need.RULES}),
    ),
    Check(
        id="reserved-name",
        title="A metric is called as a part of every object is.",
        severity=Severity.ERROR,
        judge=_reserved,
        needs=frozenset({Need.RULES}),
    ),
    Check(
        id="unknown-metric",
        title="An autoscaler asks for a metric that nothing offers.",
        severity=Severity.WARNING,
        judge=_unknown,
        needs=frozenset({Need.RULES, Need.AUTOSCALERS}),
    ),
)
