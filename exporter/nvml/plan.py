"""Which reads of a device the families need that somebody wants to see."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from slicewatch.catalog import CATALOG
from slicewatch.catalog.index import reads_of
from slicewatch.catalog.model import Metric, Probe, Scope
from slicewatch.wire.layout import Device

_numbers = count()


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

    Attributes:
        number: greater than that of each plan that was made before.
    """

    gpu: ScopePlan
    mig: ScopePlan
    number: int = field(default_factory=_numbers.__next__, compare=False)

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
