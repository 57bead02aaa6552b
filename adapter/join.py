"""What a pod, a node or a namespace gets of a metric: layout, snapshot and pods in, values out.

Pure, and blind to time: ages are those at sending, and the caller compares them with its clock.
One object on one node at a time; the caller combines a namespace's parts.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapter.allocation import Allocation, Holder, PodKey
from adapter.outcome import Absence, Outcome, Part, Rule, Shares
from slicewatch.catalog.model import Attribution, Combine, Label, Limits, Metric, Serve
from slicewatch.kube.workloads import Workload
from slicewatch.wire.layout import Device, Layout
from slicewatch.wire.snapshot import Column, Snapshot

BUSY_RATIO = "gpu_tenant_busy_ratio"
BUSY_LIMITS = Limits(low=0, high=1)

Keep = Callable[[Device], bool]
"""Which devices a metric selector includes."""


def everything(_: Device) -> bool:
    """Include every device."""
    return True


def tenant_metric(metric: Metric[Any]) -> str:
    """Return the name of the same quantity for a single tenant."""
    return metric.name.replace("gpu_", "gpu_tenant_", 1)


def labels_of(layout: Layout, device: Device) -> dict[str, str]:
    """Return the labels that a metric selector is matched against: those of the device's series."""
    labels: dict[Label, object] = {
        Label.GPU: device.gpu,
        Label.UUID: device.uuid,
        Label.MODEL: device.model,
        Label.NODE: layout.node,
        Label.GPU_INSTANCE: device.gpu_instance,
        Label.COMPUTE_INSTANCE: device.compute_instance,
        Label.PROFILE: device.profile,
    }
    known = {str(name): str(value) for name, value in labels.items() if value not in {None, ""}}
    return layout.labels | known


def combine(parts: Sequence[Part], how: Combine) -> Outcome:
    """Combine the parts, each of a different device, into one value.

    If any part has no value, neither has the whole: the mean or sum of the rest would look like a
    drop, and an autoscaler would act on it.
    """
    if not parts:
        return Outcome(absence=Absence.NOT_SELECTED)
    for part in parts:
        if part.absence is not None:
            detail = f"{part.device.uuid}: {part.detail}" if part.detail else part.device.uuid
            return Outcome(parts=tuple(parts), absence=part.absence, detail=detail)
    values = [part.value for part in parts if part.value is not None]
    total = sum(values)
    return Outcome(
        parts=tuple(parts),
        value=total / len(values) if how is Combine.MEAN else total,
        age_seconds=max(part.age_seconds or 0.0 for part in parts),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """Busy shares of a device: summed once for all of the pods that hold it."""

    workloads: Mapping[Workload | None, float]
    total: float


class Join:
    """One snapshot of one node, joined with the holders of its devices."""

    def __init__(self, allocation: Allocation, snapshot: Snapshot) -> None:
        self.allocation = allocation
        self.layout = allocation.layout
        self.snapshot = snapshot
        self._busy: dict[int, Busy | None] = {}

    def pod(self, key: PodKey, metric: Metric[Any], keep: Keep = everything) -> Outcome:
        """Return the value of a pod that runs on this node."""
        if not self.layout.tenants_known:
            return Outcome(absence=Absence.TENANTS_UNKNOWN)
        if missing := self.allocation.missing_of(key):
            return Outcome(absence=Absence.NO_VALUE, detail=f"{missing[0]} is not reported")
        rows = self.allocation.devices_of(key)
        if not rows:
            return Outcome(absence=Absence.NO_DEVICE)
        parts = [self._of_pod(row, key, metric) for row in rows if keep(self.layout.devices[row])]
        return combine(parts, serve_of(metric).combine)

    def node(self, metric: Metric[Any], keep: Keep = everything) -> Outcome:
        """Return the value of the node, counting each of its devices once."""
        if not self.layout.devices:
            return Outcome(absence=Absence.NO_DEVICE)
        parts = [
            self._whole(row, metric)
            for row in self._units(metric)
            if keep(self.layout.devices[row])
        ]
        return combine(parts, serve_of(metric).combine)

    def namespace(
        self, namespace: str, metric: Metric[Any], keep: Keep = everything
    ) -> list[Part]:
        """Return the parts of the devices that pods of a namespace hold here, once each."""
        rows = self.allocation.devices_in(namespace)
        return [
            self._of_namespace(row, namespace, metric)
            for row in rows
            if keep(self.layout.devices[row])
        ]

    def _units(self, metric: Metric[Any]) -> Iterable[int]:
        """Yield whole GPUs, or the MIG devices of one that has no value of its own."""
        means = self.snapshot.means.get(metric.name, [])
        for row, device in enumerate(self.layout.devices):
            if device.is_mig:
                continue
            split = device.mig_enabled and (not means or means[row] is None)
            slices = [
                r for r, d in enumerate(self.layout.devices) if split and d.parent == device.uuid
            ]
            yield from slices or [row]

    def _whole(self, row: int, metric: Metric[Any], rule: Rule = Rule.DEVICE) -> Part:
        """Return the device's own value as a part, whoever holds it."""
        device = self.layout.devices[row]
        means = self.snapshot.means.get(metric.name)
        value = None if means is None else means[row]
        age = self.snapshot.ages[row]
        absence, detail = self._absence(row, metric, value, age)
        return Part(
            device=device,
            age_seconds=age,
            device_value=value,
            value=value if absence is None else None,
            rule=rule if absence is None else None,
            absence=absence,
            detail=detail,
        )

    def _absence(
        self, row: int, metric: Metric[Any], value: float | None, age: float | None
    ) -> tuple[Absence | None, str]:
        if not self.snapshot.up[row]:
            return Absence.DOWN, ""
        reasons = self.layout.support.get(metric.name)
        if value is None and reasons is not None and (reason := reasons[row]):
            return Absence.UNSUPPORTED, reason
        if value is None or age is None:
            return Absence.NO_VALUE, ""
        if not _possible(value, metric.limits):
            return Absence.IMPOSSIBLE, f"{value:g}"
        return None, ""

    def _of_pod(self, row: int, key: PodKey, metric: Metric[Any]) -> Part:
        own = self.allocation.held_by(row, key)
        if len(own) == len(self.allocation.holders[row]):
            return self._whole(row, metric, Rule.ALONE)
        if serve_of(metric).attribution is Attribution.OWN_PART:
            return self._tenants(row, own, metric)
        return self._share(row, own[0], metric)

    def _of_namespace(self, row: int, namespace: str, metric: Metric[Any]) -> Part:
        own = [h for h in self.allocation.holders[row] if h.pod[0] == namespace]
        whole = len(own) == len(self.allocation.holders[row])
        if whole or serve_of(metric).attribution is Attribution.WORKLOAD_SHARE:
            return self._whole(row, metric)
        return self._tenants(row, own, metric)

    def _tenants(self, row: int, own: Sequence[Holder], metric: Metric[Any]) -> Part:
        """Return what some of the containers on a device use, if that is known for each."""
        whole = self._whole(row, metric)
        if whole.absence in {Absence.DOWN, Absence.UNSUPPORTED, Absence.IMPOSSIBLE}:
            return whole
        column = self.snapshot.tenant_values.get(tenant_metric(metric))
        values = [] if column is None else [_first(column, holder.rows) for holder in own]
        known = [v for v in values if v is not None and _possible(v, metric.limits)]
        if whole.age_seconds is None or len(known) < len(own):
            return _replaced(whole, None, None, absence=Absence.NOT_ATTRIBUTABLE)
        return _replaced(whole, sum(known), Rule.TENANT)

    def _share(self, row: int, one: Holder, metric: Metric[Any]) -> Part:
        """Return the share of the workload of ``one`` on a device that it shares with others."""
        workload = one.workload
        if self.allocation.workloads[row][workload] == len(self.allocation.holders[row]):
            return self._whole(row, metric, Rule.WORKLOAD_ALONE)
        whole = self._whole(row, metric, Rule.SHARES_UNKNOWN)
        shares = self._shares(row, workload)
        unusable = whole.absence in {Absence.DOWN, Absence.IMPOSSIBLE}
        if shares is None or unusable or whole.age_seconds is None:
            return whole
        return _replaced(whole, shares.percent(), Rule.WORKLOAD_SHARE, shares)

    def _shares(self, row: int, workload: Workload | None) -> Shares | None:
        if row not in self._busy:
            self._busy[row] = self._sum_busy(row)
        busy = self._busy[row]
        if busy is None:
            return None
        return Shares(
            own=busy.workloads[workload],
            total=busy.total,
            holders=self.allocation.workloads[row][workload],
            tenants=len(self.allocation.holders[row]),
        )

    def _sum_busy(self, row: int) -> Busy | None:
        column = self.snapshot.tenant_values.get(BUSY_RATIO)
        if not self.snapshot.shares or column is None:
            return None
        holders = self.allocation.holders[row]
        values = [_first(column, holder.rows) for holder in holders]
        values += [column[r] or 0.0 for r in self.allocation.guests[row]]
        known = [v for v in values if v is not None and _possible(v, BUSY_LIMITS)]
        if len(known) < len(values):
            return None
        sums: dict[Workload | None, float] = defaultdict(float)
        for holder, value in zip(holders, known, strict=False):
            sums[holder.workload] += value
        return Busy(workloads=sums, total=min(1.0, sum(known)))


def serve_of(metric: Metric[Any]) -> Serve:
    """Return how a metric is served; raise ``ValueError`` if it is not."""
    if metric.serve is None:
        raise ValueError(f"{metric.name} is not served")
    return metric.serve


def _possible(value: float, limits: Limits) -> bool:
    """Tell whether a device may read a value; a mean may lie past a limit by a rounding error."""
    return limits.hold(value) or any(
        math.isclose(value, limit, rel_tol=1e-9, abs_tol=1e-6)
        for limit in (limits.low, limits.high)
    )


def _first(column: Column, rows: Sequence[int]) -> float | None:
    """Return a container's value: its rows repeat it, one for each replica it was given."""
    return next((column[row] for row in rows if column[row] is not None), None)


def _replaced(
    whole: Part,
    value: float | None,
    rule: Rule | None,
    shares: Shares | None = None,
    absence: Absence | None = None,
) -> Part:
    return Part(
        device=whole.device,
        age_seconds=whole.age_seconds,
        device_value=whole.device_value,
        value=value,
        rule=rule,
        shares=shares,
        absence=absence,
    )
