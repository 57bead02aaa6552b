"""The section ``workloadMetrics`` of the adapter's files: from what people wrote to declarations.

Pure: the files are read elsewhere.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from adapter.sources.workloads.declaration import (
    INTERVAL_SECONDS,
    Configuration,
    Idle,
    Type,
    WorkloadMetric,
)
from slicewatch.catalog.model import Combine
from slicewatch.promrules.sections import Document, path_text
from slicewatch.service.settings import duration
from slicewatch.suggestion import choices

SECTION: Final = "workloadMetrics"
COMBINES: Final = {"sum": Combine.SUM, "avg": Combine.MEAN, "max": Combine.MAX}

_INTERVALS_SECONDS: Final = (1.0, 60.0)
# What has been counted is kept in memory for as long as the window.
_MOST_WINDOW_SECONDS: Final = 300.0
_MOST_METRICS: Final = 200
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_:.-]*")
_SERIES: Final = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_DERIVED: Final = {Type.AVERAGE: ("_sum", "_count"), Type.QUANTILE: ("_bucket",)}

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")


Path = tuple[str | int, ...]
Locate = Callable[[Path], str]


class WorkloadsError(ValueError):
    """The section cannot be used; one line per fault, with its place and what to do."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


class _Clamp(msgspec.Struct, frozen=True, kw_only=True):
    min: float = -math.inf
    max: float = math.inf


class _Metric(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    series: str
    type: str
    name: str = ""
    labels: dict[str, str] = {}
    window: str | float | None = None
    combine: str | None = None
    quantile: float | None = None
    scale: float = 1.0
    idle: str = str(Idle.ABSENT)
    max_age: str | float | None = None
    clamp: _Clamp = _Clamp()


class _Section(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    metrics: list[Any]
    interval: str | float = INTERVAL_SECONDS
    insecure_skip_verify: bool = False


def _in_section(path: Path) -> str:
    return path_text((SECTION, *path))


def of_documents(documents: Iterable[Document]) -> Configuration:
    """Return what the section says in whichever of some files has it; without one, nothing.

    Raises:
        WorkloadsError: with every fault that was found, each with its file and line.
    """
    having = [d for d in documents if isinstance(d.value, dict) and SECTION in d.value]
    if not having:
        return Configuration()
    first, *others = having
    if others:
        raise WorkloadsError(
            f"{other.place((SECTION,))}: is in {first.place((SECTION,))} too; keep it in one file"
            for other in others
        )
    content = first.value[SECTION] if isinstance(first.value, dict) else None
    return of_section(content, lambda path: str(first.place((SECTION, *path))))


def of_section(content: object, locate: Locate = _in_section) -> Configuration:
    """Return what a section says.

    Args:
        content: the value of the key ``workloadMetrics``, as YAML or JSON gave it.
        locate: returns how a path below that key is called in messages.

    Raises:
        WorkloadsError: with every fault that was found.
    """
    section = _struct(content, _Section, locate, ())
    reading = _Reading(locate)
    if len(section.metrics) > _MOST_METRICS:
        raise WorkloadsError([f"{locate(('metrics',))}: most are {_MOST_METRICS}; remove some"])
    interval = reading.seconds(("interval",), section.interval, _INTERVALS_SECONDS)
    metrics: dict[str, WorkloadMetric] = {}
    for number, given in enumerate(section.metrics):
        metric = reading.metric(("metrics", number), given, interval)
        if metric is not None and metric.name in metrics:
            reading.fault(("metrics", number), "the name is there twice; choose another")
        elif metric is not None:
            metrics[metric.name] = metric
    if reading.faults:
        raise WorkloadsError(reading.faults)
    return Configuration(
        metrics=tuple(metrics.values()),
        interval_seconds=interval,
        insecure_skip_verify=section.insecure_skip_verify,
    )


class _Reading:
    """One reading of one section; notes faults on the way."""

    def __init__(self, locate: Locate) -> None:
        self._locate = locate
        self.faults: list[str] = []

    def fault(self, path: Path, fault: str) -> None:
        self.faults.append(f"{self._locate(path)}: {fault}")

    def metric(self, path: Path, content: object, interval: float) -> WorkloadMetric | None:
        """Return the metric that somebody wrote down; None, and its faults, if it is none."""
        before = len(self.faults)
        try:
            given = _struct(content, _Metric, self._locate, path)
        except WorkloadsError as error:
            self.faults += error.faults
            return None
        kind = self._chosen((*path, "type"), given.type, {str(t): t for t in Type})
        idle = self._chosen((*path, "idle"), given.idle, {str(i): i for i in Idle})
        combine = None
        if given.combine is not None:
            combine = self._chosen((*path, "combine"), given.combine, COMBINES)
        # A window between two scrapes holds no growth.
        windows, ages = (2 * interval, _MOST_WINDOW_SECONDS), (2 * interval, math.inf)
        window = self.seconds((*path, "window"), given.window or max(30.0, windows[0]), windows)
        max_age = self.seconds((*path, "maxAge"), given.max_age or 3 * interval, ages)
        for key, fault in _misfits(given, kind):
            self.fault((*path, key), fault)
        if len(self.faults) > before or kind is None or idle is None:
            return None
        return WorkloadMetric(
            name=given.name or given.series,
            series=given.series,
            type=kind,
            labels=tuple(sorted(given.labels.items())),
            window_seconds=window,
            combine=Combine.SUM if kind is Type.RATE and combine is None else combine,
            quantile=0.5 if given.quantile is None else given.quantile,
            scale=given.scale,
            idle=idle,
            max_age_seconds=max_age,
            low=given.clamp.min,
            high=given.clamp.max,
        )

    def seconds(self, path: Path, value: str | float, limits: tuple[float, float]) -> float:
        """Return a duration within the limits; where it is none, or outside, note that."""
        low, high = limits
        try:
            seconds = duration(value)
        except ValueError as error:
            self.fault(path, str(error))
            return low
        if not low <= seconds <= high:
            most = "" if math.isinf(high) else f" and at most {high:g}s"
            self.fault(path, f"{value} is out of range; write at least {low:g}s{most}")
        return min(high, max(low, seconds))

    def _chosen(self, path: Path, text: str, known: Mapping[str, T]) -> T | None:
        if text not in known:
            self.fault(path, f"{text!r} is none of {', '.join(known)}")
        return known.get(text)


def _struct(content: object, kind: type[S], locate: Locate, path: Path) -> S:
    """Return a mapping as a struct.

    Raises:
        WorkloadsError: it has another shape, or unknown keys.
    """
    if not isinstance(content, dict):
        raise WorkloadsError([f"{locate(path)}: must map keys to values, not be {content!r}"])
    known = kind.__struct_encode_fields__
    unknown = [key for key in content if key not in known]
    if unknown:
        raise WorkloadsError(
            f"{locate((*path, str(key)))}: unknown key{choices(str(key), known)}"
            for key in unknown
        )
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise WorkloadsError([f"{locate(path)}: {str(error).replace('$.', '')}"]) from error


def _misfits(given: _Metric, kind: Type | None) -> Iterator[tuple[str, str]]:
    """Yield keys whose values do not fit, to others or to the type, with what is wrong."""
    name = given.name or given.series
    if not _SERIES.fullmatch(given.series):
        fault = "is not the name of a series; write it as in the page, with dots replaced by _"
        yield "series", f"{given.series!r} {fault}"
    elif not _NAME.fullmatch(name):
        yield "name", f"{name!r} cannot stand in a path; use letters, digits and _ : . -"
    for ending in _DERIVED.get(kind, ()) if kind else ():
        if given.series.endswith(ending):
            yield "series", f"leave out {ending}, which is added for the type {kind}"
    if kind is not None:
        yield from _misfits_of_type(given, kind)
    if not math.isfinite(given.scale) or given.scale == 0:
        yield "scale", f"{given.scale:g} makes no value; write a number other than 0"
    if not given.clamp.min <= given.clamp.max:
        yield "clamp", f"min {given.clamp.min:g} is above max {given.clamp.max:g}"


def _misfits_of_type(given: _Metric, kind: Type) -> Iterator[tuple[str, str]]:
    if kind is Type.QUANTILE:
        if given.quantile is None:
            yield "quantile", "missing; write which one, such as 0.95"
        elif not 0 <= given.quantile <= 1:
            yield "quantile", f"{given.quantile:g} is not between 0 and 1"
    elif given.quantile is not None:
        yield "quantile", f"of no use for the type {kind}; remove it, or write type: quantile"
    if kind in _DERIVED and given.combine is not None:
        yield "combine", f"of no use for the type {kind}, which is of all requests; remove it"
    if kind is Type.GAUGE and given.window is not None:
        yield "window", "of no use for a gauge, which is served as it was read last; remove it"
