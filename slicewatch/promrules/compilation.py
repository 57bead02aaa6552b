"""One rule, from its section of the file: every key of it read, checked and compiled."""

import math
import re
from typing import Final, TypedDict

from slicewatch.promrules.faults import FaultKind, Place, RuleError
from slicewatch.promrules.grouping import QUERY_FIELDS, skeleton, why_not_grouped
from slicewatch.promrules.mapping import Mapping, Target, label_template
from slicewatch.promrules.naming import NameFilter, Naming, naming
from slicewatch.promrules.promql import is_label
from slicewatch.promrules.regex import compile_re2
from slicewatch.promrules.rule import (
    Adjustment,
    CustomRule,
    ExternalRule,
    NamespaceChoice,
    QueryMode,
)
from slicewatch.promrules.sections import Section
from slicewatch.promrules.series import SeriesSelector, series_selector
from slicewatch.promrules.template import Template
from slicewatch.suggestion import choices

_NAMESPACE: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


class _Common(TypedDict):
    """The fields of both kinds of rules."""

    place: Place
    series: SeriesSelector
    naming: Naming
    mapping: Mapping
    template: Template
    namespace: NamespaceChoice
    adjustment: Adjustment
    max_age_seconds: float | None
    backend: str


def custom_rule(section: Section) -> CustomRule | None:
    """Return a rule of ``rules``; None, with faults in the section, if it cannot be used."""
    before = len(section.faults)
    common = _common(section, external=False)
    wanted = section.text("queryMode")
    section.end()
    if common is None or len(section.faults) > before:
        return None
    section.made("resources", lambda: _check_namespace(common["mapping"], common["namespace"]))
    mode = section.made("queryMode", lambda: _mode(wanted, common["template"], common["mapping"]))
    if mode is None or len(section.faults) > before:
        return None
    return CustomRule(mode=mode, **common)


def external_rule(section: Section) -> ExternalRule | None:
    """Return a rule of ``externalRules``; None, with faults in the section, if it cannot be."""
    before = len(section.faults)
    common = _common(section, external=True)
    section.end()
    if common is None or len(section.faults) > before:
        return None
    return ExternalRule(**common)


def _common(section: Section, *, external: bool) -> _Common | None:
    series = section.made("seriesQuery", lambda: series_selector(section.text("seriesQuery")))
    names = _naming(section)
    template = section.made("metricsQuery", lambda: _template(section.text("metricsQuery")))
    resources = section.section("resources")
    namespaced = resources.flag("namespaced", True) or not external
    mapping = _mapping(resources)
    adjustment = _adjustment(section)
    namespace = section.made(
        "namespace", lambda: _namespace(section.text("namespace"), namespaced=namespaced)
    )
    max_age, backend = section.seconds("maxAge"), section.text("backend")
    if series is None or names is None or template is None or namespace is None:
        return None
    section.made("name", lambda: _check_taken(series, names))
    return _Common(
        place=section.at(),
        series=series,
        naming=names,
        mapping=mapping,
        template=template,
        namespace=namespace,
        adjustment=adjustment,
        max_age_seconds=max_age,
        backend=backend,
    )


def _naming(section: Section) -> Naming | None:
    filters = [_filter(each) for each in section.sections("seriesFilters")]
    name = section.section("name")
    matches, as_ = name.text("matches"), name.text("as")
    name.end()
    kept = [each for each in filters if each is not None]
    pattern = name.made("matches", lambda: compile_re2(matches or ".*"))
    if pattern is None:
        return None
    return name.made("as", lambda: naming(pattern, as_, kept))


def _filter(section: Section) -> NameFilter | None:
    positive, negative = section.text("is"), section.text("isNot")
    section.end()
    if bool(positive) == bool(negative):
        what = "a filter has either is or isNot"
        section.fault(RuleError(FaultKind.BAD_VALUE, what, "make two entries, or remove one key"))
        return None
    key = "is" if positive else "isNot"
    pattern = section.made(key, lambda: compile_re2(positive or negative))
    return None if pattern is None else NameFilter(pattern=pattern, positive=bool(positive))


def _template(text: str) -> Template:
    if not text.strip():
        raise RuleError(
            FaultKind.TEMPLATE,
            "there is no query",
            "write one such as 'avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'",
        )
    template = Template(text, QUERY_FIELDS)
    skeleton(template)  # functions with arguments that they cannot have are found here
    return template


def _mapping(section: Section) -> Mapping:
    overrides = section.section("overrides")
    found = [_target(label, override) for label, override in overrides.inner()]
    text = section.text("template")
    template = section.made("template", lambda: label_template(text)) if text else None
    section.end()
    targets = tuple(target for target in found if target is not None)
    return Mapping(targets=targets, template=template)


def _target(label: str, section: Section) -> Target | None:
    group, resource = section.text("group"), section.text("resource")
    section.end()
    if not is_label(label):
        what, fix = f"{label!r} is no label", "name the label as Prometheus has it"
    elif not resource:
        what, fix = "no resource is named", "write resource: pod, or whatever the label names"
    else:
        return Target(label=label, resource=resource.lower(), group=group)
    section.fault(RuleError(FaultKind.RESOURCES, what, fix))
    return None


def _adjustment(section: Section) -> Adjustment:
    smallest, largest = section.number("clampMin"), section.number("clampMax")
    made = Adjustment(
        nan_as=section.number("nanAs"),
        smallest=-math.inf if smallest is None else smallest,
        largest=math.inf if largest is None else largest,
        whole=section.flag("round", False),
    )
    if made.smallest > made.largest:
        what = f"clampMin {made.smallest:g} is more than clampMax {made.largest:g}"
        section.fault(RuleError(FaultKind.BAD_VALUE, what, "exchange them"), "clampMin")
    return made


def _namespace(text: str, *, namespaced: bool) -> NamespaceChoice:
    word = text or ("request" if namespaced else "none")
    if word in {"request", "none"}:
        return NamespaceChoice(requested=word == "request")
    if not _NAMESPACE.fullmatch(word):
        raise RuleError(
            FaultKind.BAD_VALUE,
            f"{word!r} is no namespace",
            "write request, none, or the name of one",
        )
    return NamespaceChoice(requested=False, fixed=word)


def _mode(wanted: str, template: Template, mapping: Mapping) -> QueryMode:
    if wanted and wanted not in set(QueryMode):
        raise RuleError(
            FaultKind.QUERY_MODE,
            f"{wanted!r} is no mode{choices(wanted, QueryMode)}",
            "leave it out: grouped is chosen wherever it gives the same values",
        )
    if wanted == QueryMode.EXACT:
        return QueryMode.EXACT
    why = why_not_grouped(template, [target.label for target in mapping.targets])
    if why and wanted:
        raise RuleError(FaultKind.QUERY_MODE, f"this query cannot be grouped: {why}", "remove it")
    return QueryMode.EXACT if why else QueryMode.GROUPED


def _check_taken(series: SeriesSelector, names: Naming) -> None:
    if series.name is not None and names.metric(series.name) is None:
        raise RuleError(
            FaultKind.SERIES,
            f"seriesQuery selects {series.name} only, which seriesFilters and name leave out",
            "change one of them",
        )


def _check_namespace(mapping: Mapping, namespace: NamespaceChoice) -> None:
    """Refuse what every question would fail on: no label for the objects, or their namespace."""
    if not mapping.targets and mapping.template is None:
        raise RuleError(
            FaultKind.RESOURCES,
            "nothing says which label names the objects",
            "add overrides: {namespace: {resource: namespace}, pod: {resource: pod}}",
        )
    namespaced = any(not target.is_root_scoped for target in mapping.targets)
    if namespaced and namespace.of("any") and mapping.namespace_label is None:
        raise RuleError(
            FaultKind.RESOURCES,
            "no label has the namespace, so that objects of others would be counted in",
            "add its label to overrides, as in namespace: {resource: namespace}, or set "
            "namespace: none on the rule",
        )
