"""Checks of ``metricsQuery``: does its result name the objects, and is it a number when idle?"""

from collections.abc import Iterator, Sequence
from typing import Final

from advisor.rules.check import Check, Need, Problem, Severity
from advisor.rules.subject import Subject
from slicewatch.promrules.grouping import GROUP_BY, MATCHERS, skeleton
from slicewatch.promrules.promql import (
    Aggregation,
    Token,
    aggregations,
    closing,
    windows,
)
from slicewatch.promrules.rule import CustomRule, ExternalRule

_RATES: Final = frozenset({"delta", "deriv", "idelta", "increase", "irate", "rate"})
_COMPARISONS: Final = frozenset({"==", ">", "<", ">=", "<="})
_LABEL_FREE: Final = frozenset({"scalar", "vector"})
_JOINS: Final = frozenset({"group_left", "group_right"})
# Fewer samples than two make no rate, and a scrape may come late.
FEWEST_INTERVALS: Final = 2


def _without_object_label(subject: Subject) -> Iterator[Problem]:
    for rule in subject.custom():
        query = skeleton(rule.template)
        labels = _object_labels(rule)
        found = [each for each in aggregations(query) if not _inside_scalar(query, each)]
        lost = [each for each in found if not _keeps_one(each, labels)]
        joined = any(token.text in _JOINS for token in query)
        if lost and not (joined and len(lost) < len(found)):
            wanted = " or ".join(labels) or "of the object"
            yield Problem(
                place=rule.place,
                what=f"the result has no label {wanted}, since {lost[0].operator} drops it",
                fix=f"write {lost[0].operator}(...) by (<<.GroupBy>>)",
            )


def _object_labels(rule: CustomRule) -> list[str]:
    """Return the labels that name objects; that of the namespace only if there is no other."""
    named = [target.label for target in rule.targets if not target.is_namespace]
    return named or [target.label for target in rule.targets]


def _keeps_one(aggregation: Aggregation, labels: Sequence[str]) -> bool:
    if aggregation.without:
        return all(map(aggregation.keeps, (GROUP_BY, *labels)))
    return any(map(aggregation.keeps, (GROUP_BY, *labels)))


def _inside_scalar(query: Sequence[Token], aggregation: Aggregation) -> bool:
    for at, token in enumerate(query):
        close = closing(query, at + 1) if token.text in _LABEL_FREE else None
        if close is not None and at < aggregation.body[0] < close:
            return True
    return False


def _without_matchers(subject: Subject) -> Iterator[Problem]:
    for rule in subject.rules():
        words = {token.text for token in skeleton(rule.template)}
        if MATCHERS not in words and "LabelValuesByName" not in rule.template.text:
            asks_for = "namespace and objects" if isinstance(rule, CustomRule) else "selector"
            yield Problem(
                place=rule.place,
                what=f"the query ignores what the request asks for: its {asks_for}",
                fix="put <<.LabelMatchers>> into the braces of its series",
            )


def _short_windows(subject: Subject) -> Iterator[Problem]:
    for rule in subject.rules():
        interval = subject.interval_seconds(rule)
        if interval is None:
            continue
        for window in windows(skeleton(rule.template)):
            if window.function in _RATES and window.seconds < FEWEST_INTERVALS * interval:
                yield Problem(
                    place=rule.place,
                    what=f"{window.function} over {window.seconds:g} s sees fewer than two "
                    f"samples now and then, since they come every {interval:g} s",
                    fix=f"make the window {4 * interval:g}s, and at least "
                    f"{FEWEST_INTERVALS * interval:g}s",
                )


def _short_max_age(subject: Subject) -> Iterator[Problem]:
    for rule in subject.rules():
        interval = subject.interval_seconds(rule)
        age = rule.max_age_seconds
        if interval is not None and age is not None and age < FEWEST_INTERVALS * interval:
            yield Problem(
                place=rule.place,
                what=f"maxAge of {age:g} s refuses values after one late scrape, since they come "
                f"every {interval:g} s",
                fix=f"set it to {FEWEST_INTERVALS * interval:g}s or more",
            )


def _nan_when_idle(subject: Subject) -> Iterator[Problem]:
    for rule in subject.rules():
        query = skeleton(rule.template)
        texts = {token.text for token in query}
        cause = _cause_of_nan(query)
        if cause and rule.adjustment.nan_as is None and not texts & _COMPARISONS:
            yield Problem(
                place=rule.place,
                what=f"{cause} is NaN without traffic, which is left out: once every pod is "
                "idle, the autoscaler keeps the replicas of the peak",
                fix="set nanAs: 0 if idle means 0; or vector(0) does not help, since NaN is a "
                "value",
            )


def _cause_of_nan(query: Sequence[Token]) -> str:
    for at, token in enumerate(query):
        if token.text == "histogram_quantile":
            return token.text
        divisor = {each.text for each in query[at + 1 :]} if token.text == "/" else set()
        if divisor & _RATES:
            return "a ratio of rates"
    return ""


def _many_series(subject: Subject) -> Iterator[Problem]:
    for metric in subject.metrics:
        for rule in subject.external_rules_of(metric):
            result = subject.results.get(metric.place)
            if result is not None and result.series <= 1:
                continue
            labels = _open_labels(rule, {each.key for each in metric.requirements})
            if result is not None:
                what = f"{rule.name} answers it with {result.series} series now"
            elif labels is None:
                what = f"the query of {rule.name} aggregates nothing: it may have several series"
            elif labels:
                what = f"{rule.name} answers it with one series per {', '.join(labels)}"
            else:
                continue
            yield Problem(
                place=metric.place,
                what=f"{what}, and the autoscaler adds them up",
                fix="add a selector for one of them, or an aggregation such as max(...) around "
                "the query",
            )


def _open_labels(rule: ExternalRule, chosen: set[str]) -> list[str] | None:
    """Return the labels that make several series of the result; None if it is not aggregated."""
    query = skeleton(rule.template)
    outermost = next(iter(aggregations(query)), None)
    if outermost is None or outermost.without:
        return None
    return [each for each in outermost.labels or () if each not in {GROUP_BY, *chosen}]


def _refused(subject: Subject) -> Iterator[Problem]:
    for place, said in subject.refusals.items():
        yield Problem(
            place=place,
            what=f"the backend refuses the query: {said}",
            fix="try it in the backend's own user interface",
        )


CHECKS: Final = (
    Check(
        id="refused-query",
        title="The backend refuses a query.",
        severity=Severity.ERROR,
        judge=_refused,
        needs=frozenset({Need.RULES, Need.BACKEND}),
    ),
    Check(
        id="no-object-label",
        title="The result of a query does not say which object a value belongs to.",
        severity=Severity.ERROR,
        judge=_without_object_label,
        needs=frozenset({Need.RULES}),
    ),
    Check(
        id="no-label-matchers",
        title="A query has no `<<.LabelMatchers>>`.",
        severity=Severity.ERROR,
        judge=_without_matchers,
        needs=frozenset({Need.RULES}),
    ),
    Check(
        id="short-window",
        title="A rate is taken over less than two scrape intervals.",
        severity=Severity.ERROR,
        judge=_short_windows,
        needs=frozenset({Need.RULES, Need.INTERVAL}),
    ),
    Check(
        id="short-max-age",
        title="`maxAge` is less than two scrape intervals.",
        severity=Severity.WARNING,
        judge=_short_max_age,
        needs=frozenset({Need.RULES, Need.INTERVAL}),
    ),
    Check(
        id="nan-when-idle",
        title="A query is NaN without traffic, and nothing says what that means.",
        severity=Severity.WARNING,
        judge=_nan_when_idle,
        needs=frozenset({Need.RULES}),
    ),
    Check(
        id="summed-series",
        title="An external metric has several series, which the autoscaler adds up.",
        severity=Severity.WARNING,
        judge=_many_series,
        needs=frozenset({Need.RULES, Need.AUTOSCALERS}),
        sharper_with=frozenset({Need.BACKEND}),
    ),
)
