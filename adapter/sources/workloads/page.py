"""Pages of metrics, read for the few series that are wanted.

Understands what Prometheus' text format (0.0.4) and OpenMetrics have in common, which is every
line that holds a sample. All other lines are skipped before they are looked into: a page has
thousands, of which a handful is wanted. No page holds up everyone else for long, whatever is in
it, since a pod belongs to whoever deployed it. Times in a page are not used, since they are of another
machine's clock: a sample is as old as the page.
"""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from adapter.sources.workloads.declaration import Labels, Type, WorkloadMetric

Parts = dict[str, float]
"""Samples of one series: by bound of a histogram's buckets, by ``sum`` and ``count`` of an
average, and else the only one, whose name is empty."""

MOST_SERIES: Final = 1000
MOST_NAMES: Final = 1000
# Samples that are looked into, each once for every metric that is made of it: 0.1 s of them.
MOST_SAMPLES: Final = 10_000
_LONGEST_LABELS: Final = 4096
_LONGEST_KEPT: Final = 512
_LONGEST_NUMBER: Final = 100

_QUOTED: Final = rb'"(?:[^"\\]|\\.)*+"'
_SAMPLE: Final = re.compile(
    rb"[ \t]*(?P<name>[A-Za-z_:][A-Za-z0-9_:]*+)"
    rb"(?:[ \t]*\{(?P<labels>(?:[^\"}]|" + _QUOTED + rb")*+)\}[ \t]*+|[ \t]++)"
    rb"(?P<value>[^ \t\r#]++)"
    rb"(?:[ \t]++[-+0-9.eE]++)?[ \t\r]*+(?:#.*)?",
    re.DOTALL,
)
_LABEL: Final = re.compile(
    rb"[ \t]*(?P<name>[A-Za-z_][A-Za-z0-9_]*+|" + _QUOTED + rb")[ \t]*=[ \t]*"
    rb"(?P<value>" + _QUOTED + rb")[ \t]*(?:,|\Z)"
)
_ESCAPE: Final = re.compile(rb'\\([\\"n])')
_NAME_OF_LINE: Final = re.compile(rb"^[A-Za-z_:][A-Za-z0-9_:]*+", re.MULTILINE)
_LINE: Final = re.compile(rb"^([A-Za-z_:][A-Za-z0-9_:]*+)[^\n]*+", re.MULTILINE)
_ANNOUNCEMENT: Final = re.compile(rb"^# TYPE ([^ \t\n]++)[ \t]", re.MULTILINE)
_INDENTED: Final = re.compile(rb"^[ \t]+", re.MULTILINE)
_NUMBER: Final = re.compile(
    rb"[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|inf(?:inity)?|nan)",
    re.IGNORECASE,
)


class _LineError(ValueError):
    """A line does not hold a sample that can be used; says why."""


@dataclass(slots=True, kw_only=True)
class Reading:
    """What a page says of one metric.

    Attributes:
        series: by their labels, those that carry the declared ones; finite values only.
        announced: the page has the family, although it may have no values in it.
        fault: why it must not be used; empty if it can be.
    """

    series: dict[Labels, Parts] = field(default_factory=dict)
    announced: bool = False
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a page says of every metric.

    Attributes:
        readings: in the order in which the metrics were given.
        names: of samples in the page, if some metric was not found in it.
    """

    readings: tuple[Reading, ...]
    names: frozenset[str] = frozenset()


class PageReader:
    """Reads pages for a fixed set of metrics."""

    def __init__(self, metrics: Sequence[WorkloadMetric]) -> None:
        self._metrics = tuple(metrics)
        self._uses: dict[bytes, list[tuple[int, str]]] = defaultdict(list)
        for number, metric in enumerate(self._metrics):
            for sample in metric.samples:
                part = sample.removeprefix(f"{metric.series}_") if _averages(metric) else ""
                self._uses[sample.encode()].append((number, part))
        self._announcements = [_announcements(metric) for metric in self._metrics]

    def read(self, page: bytes) -> Page:
        """Return what a page says. What cannot be read costs the metrics that need it only."""
        if b"\n " in page or b"\n\t" in page or page[:1] in b" \t":
            page = _INDENTED.sub(b"", page)
        readings = [Reading() for _ in self._metrics]
        self._take_all(readings, page)
        missing = [number for number, reading in enumerate(readings) if not reading.series]
        announced = set(_ANNOUNCEMENT.findall(page)) if missing else set()
        for number in missing:
            readings[number].announced |= not announced.isdisjoint(self._announcements[number])
        known = not missing or all(readings[number].announced for number in missing)
        return Page(readings=tuple(readings), names=frozenset() if known else _names(page))

    def _take_all(self, readings: Sequence[Reading], page: bytes) -> None:
        taken = 0
        for line in _LINE.finditer(page):
            uses = self._uses.get(line[1])
            if uses is None:
                continue
            taken += len(uses)
            if taken > MOST_SAMPLES:
                for reading in readings:
                    reading.fault = f"there are more than {MOST_SAMPLES} samples to read"
                return
            self._take(readings, line, uses)

    def _take(
        self, readings: Sequence[Reading], line: re.Match[bytes], uses: Sequence[tuple[int, str]]
    ) -> None:
        """Add a line to the readings of all metrics that are made of its sample."""
        found = _SAMPLE.fullmatch(line[0])
        for index, part in uses:
            reading = readings[index]
            reading.announced = True
            if reading.fault:
                continue
            try:
                _add(reading, self._metrics[index], part, found)
            except _LineError as error:
                text = line[0][:100].decode(errors="replace").strip()
                number = line.string.count(b"\n", 0, line.start()) + 1
                reading.fault = f"line {number} cannot be used: {error}: {text}"


def _averages(metric: WorkloadMetric) -> bool:
    return metric.type is Type.AVERAGE


def _add(
    reading: Reading, metric: WorkloadMetric, part: str, found: re.Match[bytes] | None
) -> None:
    """Add one sample to a reading unless its labels are not those declared.

    Raises:
        _LineError: it cannot be read, or its value is none to calculate with.
    """
    if found is None:
        raise _LineError("not a sample")
    histogram = metric.type is Type.QUANTILE
    labels, bound = _labels(found["labels"] or b"", histogram)
    if not all(pair in labels for pair in metric.labels):
        return
    value = _number(found["value"])
    if math.isnan(value):
        return  # A summary of nothing, as when no request came.
    if math.isinf(value):
        raise _LineError(f"the value is {value}")
    parts = reading.series.get(labels)
    if parts is None:
        if len(reading.series) >= MOST_SERIES:
            raise _LineError(f"more than {MOST_SERIES} series; choose some by labels")
        parts = reading.series[labels] = {}
    parts[bound if histogram else part] = value


def _number(text: bytes) -> float:
    # Python's own would take more, such as 1_000.
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        raise _LineError("the value is not a number")
    return float(text)


def _labels(text: bytes, histogram: bool) -> tuple[Labels, str]:
    """Return labels, those of a bucket without its bound, and the bound.

    Raises:
        _LineError: they cannot be read.
    """
    return (_kept if len(text) <= _LONGEST_KEPT else _parsed)(text, histogram)


def _parsed(text: bytes, histogram: bool) -> tuple[Labels, str]:
    if len(text) > _LONGEST_LABELS:
        raise _LineError(f"its labels are longer than {_LONGEST_LABELS} bytes")
    labels: dict[str, str] = {}
    at = 0
    while at < len(text.rstrip()):
        found = _LABEL.match(text, at)
        if found is None:
            raise _LineError("its labels cannot be read")
        labels[_unquoted(found["name"])] = _unquoted(found["value"])
        at = found.end()
    bound = ""
    if histogram:
        # Written 1 by one format and 1.0 by the other.
        bound = repr(_number(labels.pop("le", "").encode(errors="replace")))
    return tuple(sorted(labels.items())), bound


# A page repeats the labels of the one before, and so do the pages of other pods.
_kept = lru_cache(maxsize=8192)(_parsed)


def _unquoted(text: bytes) -> str:
    if text[:1] == b'"':
        text = _ESCAPE.sub(lambda m: b"\n" if m[1] == b"n" else m[1], text[1:-1])
    return text.decode(errors="replace")


def _announcements(metric: WorkloadMetric) -> frozenset[bytes]:
    """Return the names by which a page may declare a metric's family.

    OpenMetrics names a counter there without the ending of its samples.
    """
    names = (metric.series, metric.series.removesuffix("_total"))
    return frozenset(name.encode() for name in names)


def _names(page: bytes) -> frozenset[str]:
    """Return names of samples in a page, to suggest one of them."""
    names: set[bytes] = set()
    for found in _NAME_OF_LINE.finditer(page):
        names.add(found[0])
        if len(names) >= MOST_NAMES:
            break
    return frozenset(name.decode() for name in names)
