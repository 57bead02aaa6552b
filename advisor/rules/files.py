"""Files as users have them, sorted out: rules, values of the chart, ConfigMaps, manifests."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

import msgspec
import yaml

from advisor.rules.subject import ScaledMetric, Source, Subject
from slicewatch.kube.autoscaling import HorizontalPodAutoscaler, MetricSpec, MetricTarget
from slicewatch.kube.label_selector import LabelRequirement, LabelSelector
from slicewatch.kube.quantity import number
from slicewatch.promrules.faults import Place
from slicewatch.promrules.loading import RuleFile, load
from slicewatch.promrules.sections import Document, document
from slicewatch.service.documents import DocumentError

RULE_KEYS: Final = frozenset({"rules", "externalRules", "resourceRules"})
OTHER_KEYS: Final = ("backends", "workloadMetrics")
"""Keys of the adapter's file that are not about rules."""
_HAS_RULES: Final = re.compile(rf"^(?:{'|'.join(sorted(RULE_KEYS))}):", re.MULTILINE)
_SEPARATOR: Final = re.compile(r"---(?:\s|$)")
_AS_YAML: Final = "correct it there; texts that have quotes in them stand in single quotes"


@dataclass(slots=True)
class _Found:
    files: list[RuleFile] = field(default_factory=list)
    metrics: list[ScaledMetric] = field(default_factory=list)
    unread: list[tuple[Place, str, str]] = field(default_factory=list)


def subject_of(texts: Iterable[tuple[str, str]]) -> Subject:
    """Return what is in files, given as names and texts; other manifests are passed over."""
    found = _Found()
    for file, text in texts:
        before = len(found.files), len(found.metrics), len(found.unread)
        _read(file, text, found)
        if before == (len(found.files), len(found.metrics), len(found.unread)):
            found.unread.append(
                (
                    Place(file=file, line=1),
                    "there are no rules and no HorizontalPodAutoscalers in it",
                    "give the file that has rules: or externalRules:, or leave this one out",
                )
            )
    return Subject(
        files=tuple(found.files), metrics=tuple(found.metrics), unread=tuple(found.unread)
    )


def _read(file: str, text: str, found: _Found) -> None:
    try:
        for first_line, part in _documents(text):
            _sort(document(part, file=file, first_line=first_line), part, first_line, found)
    except (DocumentError, yaml.YAMLError) as error:
        place = Place(file=file, line=_line_of(error))
        found.unread.append((place, " ".join(str(error).split()), _AS_YAML))


def _line_of(error: Exception) -> int:
    cause = error if isinstance(error, yaml.YAMLError) else error.__cause__
    mark = getattr(cause, "problem_mark", None)
    return 1 if mark is None else mark.line + 1


def _documents(text: str) -> Iterator[tuple[int, str]]:
    """Yield each document of a text with its first line."""
    lines = text.splitlines(keepends=True)
    starts = [at for at, line in enumerate(lines) if _SEPARATOR.match(line)]
    bounds = [0, *(at + 1 for at in starts), len(lines) + 1]
    for start, end in pairwise(bounds):
        part = "".join(lines[start : end - 1])
        if part.strip():
            yield start + 1, part


def _sort(read: Document, text: str, first_line: int, found: _Found) -> None:
    value = read.value
    if not isinstance(value, dict):
        return
    kind = value.get("kind")
    if kind == "HorizontalPodAutoscaler":
        _autoscaler(read, value, found)
    elif kind == "ConfigMap":
        _config_map(read, value, found)
    elif kind is None and value.keys() & {*RULE_KEYS, *OTHER_KEYS}:
        found.files.append(load(text, file=read.file, others=OTHER_KEYS, first_line=first_line))


def _config_map(read: Document, value: dict[str, Any], found: _Found) -> None:
    data = value.get("data")
    for key, text in (data if isinstance(data, dict) else {}).items():
        if isinstance(text, str) and _HAS_RULES.search(text):
            # A block of text begins in the line below its key.
            first_line = read.place(("data", key)).line + 1
            found.files.append(
                load(text, file=read.file, others=OTHER_KEYS, first_line=first_line)
            )


def _autoscaler(read: Document, value: dict[str, Any], found: _Found) -> None:
    if value.get("apiVersion") != "autoscaling/v2":
        found.unread.append(
            (
                read.place(("apiVersion",)),
                f"{value.get('apiVersion')} is no version that has these metrics",
                "write apiVersion: autoscaling/v2",
            )
        )
        return
    try:
        parsed = msgspec.convert(value, HorizontalPodAutoscaler)
    except msgspec.ValidationError as error:
        what = f"it is no HorizontalPodAutoscaler: {error}"
        found.unread.append((read.place(()), what, "correct this field"))
        return
    for at, metric in enumerate(parsed.spec.metrics):
        place = read.place(("spec", "metrics", at))
        made = _metric(metric, place, parsed.metadata.namespace)
        if made is not None:
            found.metrics.append(made)


def _metric(metric: MetricSpec, place: Place, namespace: str) -> ScaledMetric | None:
    """Return an entry as it matters here; None for CPU and memory."""
    resource = "pod"
    if metric.pods is not None:
        source, named, target = Source.PODS, metric.pods.metric, metric.pods.target
    elif metric.object is not None:
        source, named, target = Source.OBJECT, metric.object.metric, metric.object.target
        resource = metric.object.described_object.kind.lower()
    elif metric.external is not None:
        source, named, target = Source.EXTERNAL, metric.external.metric, metric.external.target
        resource = ""
    else:
        return None
    return ScaledMetric(
        place=place,
        namespace=namespace,
        source=source,
        name=named.name,
        target_type=target.type,
        target=_number(target),
        resource=resource,
        requirements=_requirements(named.selector),
    )


def _number(target: MetricTarget) -> Decimal | None:
    written = target.value if target.average_value is None else target.average_value
    try:
        return None if written is None else number(written)
    except ValueError:
        return None  # the API server refuses it with a message of its own


def _requirements(selector: LabelSelector | None) -> tuple[LabelRequirement, ...]:
    if selector is None:
        return ()
    equal = (
        LabelRequirement(key=key, operator="In", values=(value,))
        for key, value in selector.match_labels.items()
    )
    return (*equal, *selector.match_expressions)
