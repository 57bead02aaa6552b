"""Which families are published, and which reads of a device they need."""

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from slicewatch.catalog import CATALOG
from slicewatch.catalog.index import reads_of
from slicewatch.catalog.model import Metric, Probe, Scope
from slicewatch.suggestion import did_you_mean
from slicewatch.wire.layout import Device


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopePlan:
    """The reads of one kind of device, and the metrics that each read yields."""

    probes: tuple[Probe[Any], ...]
    metrics: tuple[tuple[Metric[Any], ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is read in every cycle.

    Everything that is not optional is read whatever a user chose to see: snapshots and health
    need it. What is costly or wide is read only for those who asked for it.
    """

    gpu: ScopePlan
    mig: ScopePlan

    @classmethod
    def of(cls, metrics: Iterable[Metric[Any]]) -> "Plan":
        """Return the plan for those who want to see these metrics."""
        wanted = {probe for metric in metrics for probe in reads_of(metric)}
        probes = tuple(p for p in CATALOG.probes() if not p.optional or p in wanted)
        return cls(gpu=_scope_plan(Scope.GPU, probes), mig=_scope_plan(Scope.MIG, probes))

    def of_device(self, device: Device) -> ScopePlan:
        """Return the part that a device needs."""
        return self.mig if device.is_mig else self.gpu

    @property
    def metrics(self) -> frozenset[str]:
        """Return the names of what the reads yield."""
        parts = (*self.gpu.metrics, *self.mig.metrics)
        return frozenset(metric.name for metrics in parts for metric in metrics)


def _scope_plan(scope: Scope, probes: Sequence[Probe[Any]]) -> ScopePlan:
    read = tuple(p for p in probes if scope in p.scopes)
    metrics = tuple(tuple(m for m in CATALOG if m.origin is p and scope in m.scopes) for p in read)
    return ScopePlan(probes=read, metrics=metrics)


def probe_metrics() -> tuple[Metric[Any], ...]:
    """Return the metrics that have a column of device values, in the catalog's order."""
    return CATALOG.of(Probe)


# In a list of families: those that are shown where no list is given.
DEFAULT = "default"


def check_names(patterns: Iterable[str]) -> None:
    """Check a user's list of families against the catalog.

    Raises:
        ValueError: a name is not known, or a pattern matches nothing; names the nearest.
    """
    names = [DEFAULT, *(m.name for m in CATALOG)]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            hint = did_you_mean(pattern, names) or "; see docs/reference/metrics.md"
            raise ValueError(f"no metric is called {pattern!r}{hint}")


def chosen(metrics: Sequence[Metric[Any]], patterns: Sequence[str]) -> tuple[Metric[Any], ...]:
    """Return the core families and those that a pattern names.

    ``default`` names all that are not optional; no pattern means ``default``.
    """
    return tuple(m for m in metrics if m.core or _is_chosen(m, patterns or (DEFAULT,)))


def _is_chosen(metric: Metric[Any], patterns: Sequence[str]) -> bool:
    if DEFAULT in patterns and not metric.optional:
        return True
    return any(fnmatch.fnmatchcase(metric.name, pattern) for pattern in patterns)
