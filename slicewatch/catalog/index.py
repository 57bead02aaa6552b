"""The index of all metrics, which checks each declaration against the rules of the catalog."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from slicewatch.catalog.model import Derived, Kind, Metric, Probe, Publish, Unit


class CatalogError(ValueError):
    """A declaration contradicts a rule of the catalog."""


@dataclass(frozen=True)
class Catalog:
    """All metrics by name, in order of declaration. Checks itself when it is built."""

    metrics: tuple[Metric[Any], ...]
    _by_name: Mapping[str, Metric[Any]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        by_name: dict[str, Metric[Any]] = {}
        for metric in self.metrics:
            if metric.name in by_name:
                raise CatalogError(f"{metric.name} is declared twice")
            _check(metric)
            by_name[metric.name] = metric
        object.__setattr__(self, "_by_name", by_name)

    def __getitem__(self, name: str) -> Metric[Any]:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Metric[Any]]:
        return iter(self.metrics)

    def of(self, *origins: type) -> tuple[Metric[Any], ...]:
        """Return the metrics whose origin is of one of these classes."""
        return tuple(m for m in self.metrics if isinstance(m.origin, origins))

    def probes(self) -> tuple[Probe[Any], ...]:
        """Return every probe that a metric is made or derived from, once each."""
        return tuple(dict.fromkeys(probe for metric in self.metrics for probe in reads_of(metric)))

    def served(self) -> tuple[Metric[Any], ...]:
        """Return the metrics that the adapter serves."""
        return tuple(m for m in self.metrics if m.serve is not None)


def reads_of(metric: Metric[Any]) -> tuple[Probe[Any], ...]:
    """Return the probes that have to be read for a metric."""
    origin = metric.origin
    if isinstance(origin, Probe):
        return (origin,)
    return origin.reads if isinstance(origin, Derived) else ()


# Names that users already had in their configuration: kept exactly, whatever the rules say.
NAMES_OF_THE_USERS = frozenset({
    "gpu_utilization", "gpu_memory_utilization", "gpu_memory_used_bytes", "gpu_memory_total_bytes",
    "gpu_power_usage_watts", "gpu_temperature_celsius", "gpu_sm_clock_mhz", "gpu_mem_clock_mhz",
})  # fmt: skip


def _check(metric: Metric[Any]) -> None:
    for rule, broken in (*_broken_names(metric), *_broken_facts(metric)):
        if broken:
            raise CatalogError(f"{metric.name}: {rule}")


def _broken_names(metric: Metric[Any]) -> Iterable[tuple[str, bool]]:
    name, unit = metric.name, metric.unit
    stem = name.removesuffix("_total")
    units = [u for u in Unit if u is not Unit.NONE and stem.endswith(f"_{u}")]
    yield "a name is lower-case words joined by _", not _NAME.fullmatch(name)
    yield (
        "a counter's name ends in _total",
        (metric.kind is Kind.COUNTER) != name.endswith("_total"),
    )
    yield (
        "an info family's name ends in _info",
        (metric.kind is Kind.INFO) != name.endswith("_info"),
    )
    yield (
        "the unit comes last in the name",
        unit is not Unit.NONE and not _states_unit(name, unit) and unit not in units,
    )
    yield "a name that ends in a unit has that unit", units not in ([], [unit])


def _states_unit(name: str, unit: Unit) -> bool:
    """Tell whether a name is the users', or a percentage named as theirs are."""
    return name in NAMES_OF_THE_USERS or (unit is Unit.PERCENT and name.endswith("_utilization"))


def _broken_facts(metric: Metric[Any]) -> Iterable[tuple[str, bool]]:
    limits, buckets = metric.limits, metric.buckets
    yield (
        "the help is one sentence",
        not _SENTENCE.fullmatch(metric.help) or ". " in metric.help,
    )
    yield "no label comes twice", len(set(metric.labels)) != len(metric.labels)
    yield "limits are a finite range", not -math.inf < limits.low < limits.high < math.inf
    yield "a counter is never below 0", metric.kind is Kind.COUNTER and limits.low < 0
    yield "a histogram has buckets, others none", (metric.kind is Kind.HISTOGRAM) != bool(buckets)
    yield "buckets rise", list(buckets) != sorted(set(buckets))
    yield (
        "a labelled metric is neither windowed, served nor accumulated",
        isinstance(metric.origin, Probe)
        and bool(metric.labels)
        and (metric.windowed or metric.serve is not None or metric.publish is not Publish.LATEST),
    )
    yield "a core metric is never optional", metric.core and metric.optional
    yield "only windowed metrics are served", metric.serve is not None and not metric.windowed


_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_SENTENCE = re.compile(r"[A-Z0-9][^\n]*[^.\n]\.")
