"""A file of rules as prometheus-adapter reads it, compiled rule by rule.

One broken rule costs that rule and nothing else. What is refused as a whole is only a text that
is no YAML at all.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from slicewatch.promrules.compilation import custom_rule, external_rule
from slicewatch.promrules.faults import Fault, FaultKind, RuleError
from slicewatch.promrules.rule import CustomRule, ExternalRule
from slicewatch.promrules.sections import Document, Section, document

_METRICS_SERVER: Final = RuleError(
    FaultKind.RESOURCE_RULES,
    "CPU and memory of metrics.k8s.io are not served here",
    "install metrics-server for them and remove this section; all other rules are used",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFile:
    """What a file of rules has.

    Attributes:
        custom, external: in the order of the file; of two for the same metric the later counts.
        faults: what could not be used, and why.
        document: the whole file, for whoever reads its other keys.
    """

    custom: tuple[CustomRule, ...]
    external: tuple[ExternalRule, ...]
    faults: tuple[Fault, ...]
    document: Document


def load(text: str, *, file: str, others: Iterable[str] = (), first_line: int = 1) -> RuleFile:
    """Return the rules of a configuration, or of the values of prometheus-adapter's Helm chart.

    Args:
        text: the YAML document.
        file: its name in messages.
        others: keys at the top that somebody else reads.
        first_line: of the text, in that file.

    Raises:
        DocumentError: it is not YAML; says line and column.
    """
    read = document(text, file=file, first_line=first_line)
    faults: list[Fault] = []
    if not isinstance(read.value, dict):
        wrong = RuleError(
            FaultKind.BAD_VALUE, "the file is no mapping", "write rules: or externalRules: in it"
        )
        return RuleFile(custom=(), external=(), faults=(wrong.at(read.place(())),), document=read)
    top = Section(document=read, path=(), value=read.value, faults=faults)
    of_chart = isinstance(read.value.get("rules"), dict)
    custom, external = _of_chart(top) if of_chart else _of_file(top, others)
    rules = [custom_rule(section) for section in custom]
    outer = [external_rule(section) for section in external]
    return RuleFile(
        custom=tuple(rule for rule in rules if rule is not None),
        external=tuple(_without_twins([rule for rule in outer if rule is not None], faults)),
        faults=tuple(faults),
        document=read,
    )


def _of_file(top: Section, others: Iterable[str]) -> tuple[list[Section], list[Section]]:
    custom, external = top.sections("rules"), top.sections("externalRules")
    if top.section("resourceRules").value:
        top.fault(_METRICS_SERVER, "resourceRules")
    for key in others:
        top.know(key)
    top.end()
    return custom, external


def _of_chart(top: Section) -> tuple[list[Section], list[Section]]:
    """Return the rules below ``rules``; the chart's other values are none of our business."""
    rules = top.section("rules")
    custom, external = rules.sections("custom"), rules.sections("external")
    if rules.section("resource").value:
        rules.fault(_METRICS_SERVER, "resource")
    if rules.flag("default", False):
        rules.fault(
            RuleError(
                FaultKind.ELSEWHERE,
                "this adds the chart's own rules, which are not in this file",
                "copy those that you need, or set it to false",
            ),
            "default",
        )
    if rules.text("existing"):
        rules.fault(
            RuleError(
                FaultKind.ELSEWHERE,
                "the rules are in a ConfigMap of this name, and the ones here are not used",
                "give that ConfigMap instead",
            ),
            "existing",
        )
    rules.end()
    return custom, external


def _without_twins(rules: list[ExternalRule], faults: list[Fault]) -> list[ExternalRule]:
    """Leave out rules whose names differ from an earlier one's in case only.

    Clients lower the case, so that nobody could tell which of them is meant.
    """
    kept: list[ExternalRule] = []
    spelt: dict[str, str] = {}
    for rule in rules:
        twins = [name for name in rule.names if spelt.setdefault(name.lower(), name) != name]
        for name in twins:
            error = RuleError(
                FaultKind.SAME_NAME,
                f"{name} and {spelt[name.lower()]} are the same external metric, since clients "
                "lower the case",
                "give one of them another name",
            )
            faults.append(error.at(rule.place))
        if not twins:
            kept.append(rule)
    return kept
