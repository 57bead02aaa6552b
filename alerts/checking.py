"""What must hold for every alert: a page that says what to do, and tests of firing and of silence.

``python -m alerts.checking`` says what does not, and exits with 1.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from alerts.index import GROUPS
from alerts.model import Alert, Group, Recording, Source
from alerts.series import KUBE_STATE_METRICS, PROMETHEUS
from alerts.text import SECTIONS, standing
from health.checks.index import CHECKS
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Cluster, Own

CHECKOUT: Final = Path(__file__).parents[1]
RUNBOOKS: Final = "docs/runbooks"
TESTS: Final = "alerts/tests"

_NAME: Final = re.compile(r"(?:GPU|Slicewatch)[A-Z]\w+")
_TEXT: Final = re.compile(r'"(?:\\.|[^"\\])*"')
_MATCHER: Final = re.compile(r'\w+\s*(?:=~|!~|!=|=)\s*""')
# Recorded series have colons in their names.
_SERIES: Final = re.compile(
    r"(?<![\w:])(?:\w+:[\w:]+|(?:gpu|slicewatch|kube|metrics)_\w+|up)(?![\w:])"
)
_BY: Final = re.compile(r"\b(?:by|on|ignoring|without|group_left|group_right)\s*\([^)]*\)")
# Families that Prometheus makes of one histogram.
_PARTS: Final = re.compile(r"_(?:bucket|count|sum)$")


def faults(groups: Sequence[Group], root: Path = CHECKOUT) -> list[str]:
    """Return what is wrong with the rules of the groups, their pages and their tests."""
    rules = [rule for group in groups for rule in group.rules]
    alerts = [rule for rule in rules if isinstance(rule, Alert)]
    recorded = {rule.name: rule.sources for rule in rules if isinstance(rule, Recording)}
    found = [f"{name} is declared {n} times" for name, n in _names(rules).items() if n > 1]
    for group in groups:
        tests = _tests(root / TESTS / f"{group.name}_test.yaml")
        for rule in group.rules:
            about = [*_of_series(rule, recorded)]
            if isinstance(rule, Alert):
                about += [*_of_text(rule), *_of_page(rule, root), *_of_tests(rule, tests)]
            found += [f"{rule.name}: {fault}" for fault in about]
    return [*found, *_strangers(alerts, root)]


def _names(rules: Iterable[Alert | Recording]) -> Counter[str]:
    return Counter(rule.name for rule in rules)


def series_of(expr: str) -> set[str]:
    """Return the names of the series that an expression reads."""
    return set(_SERIES.findall(_MATCHER.sub(" ", _BY.sub(" ", _TEXT.sub('""', expr)))))


def _of_series(
    rule: Alert | Recording, recorded: Mapping[str, frozenset[Source]]
) -> Iterator[str]:
    sources: set[Source] = set()
    for name in sorted(series_of(rule.expr)):
        source = _source(name)
        if source is not None:
            sources.add(source)
        elif name in recorded:
            sources |= recorded[name]
        else:
            yield f"{name} is neither in the catalog nor recorded nor in alerts/series.py"
    if sources != rule.sources:
        named, read = sorted(rule.sources), sorted(sources)
        yield f"its sources are {', '.join(read)}, not {', '.join(named)}"


def _source(name: str) -> Source | None:
    """Return where a series comes from; None if it is not known, or recorded."""
    if name in PROMETHEUS:
        return Source.PROMETHEUS
    if name in KUBE_STATE_METRICS:
        return Source.KUBE_STATE_METRICS
    family = name if name in CATALOG else _PARTS.sub("", name)
    if family not in CATALOG:
        return None
    origin = CATALOG[family].origin
    if isinstance(origin, Own):
        return Source(origin.name)
    return Source.ADAPTER if isinstance(origin, Cluster) else Source.EXPORTER


def _of_text(alert: Alert) -> Iterator[str]:
    if not _NAME.fullmatch(alert.name):
        yield "its name begins neither with GPU nor with Slicewatch"
    for what in ("summary", "description"):
        text: str = getattr(alert, what)
        if not text.endswith(".") or "\n" in text:
            yield f"its {what} is no sentence"
    kept = set(_BY.findall(alert.expr))
    for label in set(re.findall(r"\$labels\.(\w+)", alert.summary + alert.description)):
        if kept and not any(re.search(rf"\b{label}\b", labels) for labels in kept):
            yield f"it speaks of the label {label}, which its expression does not keep"


def _of_page(alert: Alert, root: Path) -> Iterator[str]:
    page = root / RUNBOOKS / f"{alert.name}.md"
    if not page.exists():
        yield f"{RUNBOOKS}/{page.name} is missing"
        return
    lines = page.read_text(encoding="utf-8").splitlines()
    if lines[0] != f"# {alert.name}":
        yield f"{RUNBOOKS}/{page.name} begins with another heading"
    if standing(alert) not in lines:
        yield f"{RUNBOOKS}/{page.name} lacks the line: {standing(alert)}"
    for section in SECTIONS:
        if section not in lines:
            yield f"{RUNBOOKS}/{page.name} lacks the heading: {section}"


def _tests(file: Path) -> list[Mapping[str, Any]]:
    if not file.exists():
        return []
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    return [one for test in document["tests"] for one in test.get("alert_rule_test", ())]


def _of_tests(alert: Alert, tests: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    own = [test for test in tests if test["alertname"] == alert.name]
    if not any(test.get("exp_alerts") for test in own):
        yield f"no test in {TESTS} makes it fire"
    if not any(not test.get("exp_alerts") for test in own):
        yield f"no test in {TESTS} expects it to stay silent"


def _strangers(alerts: Iterable[Alert], root: Path) -> Iterator[str]:
    known = {alert.name for alert in alerts} | {check.id for check in CHECKS} | {"README"}
    for page in sorted((root / RUNBOOKS).glob("*.md")):
        if page.stem not in known:
            yield f"{RUNBOOKS}/{page.name} belongs to no alert and to no check"


if __name__ == "__main__":
    wrong = faults(GROUPS)
    print(*wrong, sep="\n", end="\n" if wrong else "")  # noqa: T201 - what is asked for
    sys.exit(1 if wrong else 0)
