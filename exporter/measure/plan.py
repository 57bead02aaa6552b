"""Which families are published, and which reads of a device they need."""

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from slicewatch.catalog import CATALOG
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

    The families that a user chose are a matter of ``/metrics`` alone: snapshots and health need
    the same reads whatever is shown, so that a plan does not depend on them.
    """

    gpu: ScopePlan
    mig: ScopePlan

    @classmethod
    def of_catalog(cls) -> "Plan":
        """Return the plan that reads every probe of the catalog."""
        return cls(gpu=_scope_plan(Scope.GPU), mig=_scope_plan(Scope.MIG))

    def of(self, device: Device) -> ScopePlan:
        """Return the part that a device needs."""
        return self.mig if device.is_mig else self.gpu


def _scope_plan(scope: Scope) -> ScopePlan:
    probes = tuple(p for p in CATALOG.probes() if scope in p.scopes)
    metrics = tuple(
        tuple(m for m in CATALOG if m.origin is p and scope in m.scopes) for p in probes
    )
    return ScopePlan(probes=probes, metrics=metrics)


def probe_metrics() -> tuple[Metric[Any], ...]:
    """Return the metrics that have a column of device values, in the catalog's order."""
    return CATALOG.of(Probe)


def check_names(patterns: Iterable[str]) -> None:
    """Check a user's list of families against the catalog.

    Raises:
        ValueError: a name is not known, or a pattern matches nothing; names the nearest.
    """
    names = [m.name for m in CATALOG]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            hint = did_you_mean(pattern, names) or "; see docs/reference/metrics.md"
            raise ValueError(f"no metric is called {pattern!r}{hint}")


def chosen(metrics: Sequence[Metric[Any]], patterns: Sequence[str]) -> tuple[Metric[Any], ...]:
    """Return the core families and those that a pattern names; no pattern chooses all."""
    return tuple(
        m
        for m in metrics
        if m.core or not patterns or any(fnmatch.fnmatchcase(m.name, p) for p in patterns)
    )
