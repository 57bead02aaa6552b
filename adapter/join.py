"""What a pod, a node and a namespace get of a metric: layout, snapshot and pods in, values out.

Pure, and blind to time: ages are those at sending; who serves a value holds them against the
clock. One object of one node at a time; a namespace's parts are put together by its caller.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from adapter.allocation import Allocation, Holder, PodKey
from adapter.outcome import Absence, Outcome, Part, Rule, Shares
from slicewatch.catalog.model import Attribution, Combine, Label, Metric, Serve
from slicewatch.wire.layout import Device, Layout
from slicewatch.wire.snapshot import Column, Snapshot

BUSY_RATIO = "gpu_tenant_busy_ratio"

Keep = Callable[[Device], bool]
"""Which devices a metric selector lets count."""


def everything(_: Device) -> bool:
    """Let every device count."""
    return True


def tenant_metric(metric: Metric[Any]) -> str:
    """Return the name of the same quantity of a single tenant."""
    return metric.name.replace("gpu_", "gpu_tenant_", 1)


def labels_of(layout: Layout, device: Device) -> dict[str, str]:
    """Return the labels that a metric selector may ask of a device: those of its series."""
    labels: dict[Label, object] = {
        Label.GPU: device.gpu,
        Label.UUID: device.uuid,
        Label.MODEL: device.model,
        Label.NODE: layout.node,
        Label.GPU_INSTANCE: device.gpu_instance,
        Label.COMPUTE_INSTANCE: device.compute_instance,
        Label.PROFILE: device.profile,
    }
    present = {str(name): str(value) for name, value in labels.items() if value not in {None, ""}}
    return layout.labels | present


def combine(parts: Sequence[Part], how: Combine) -> Outcome:
    """Make one value of the parts, each of another device.

    One part without a value leaves the whole without: the mean or sum of the rest would look
    like a drop, and an autoscaler would act on it.
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


class Join:
    """One snapshot of one node, joined with who holds its devices."""

    def __init__(self, allocation: Allocation, snapshot: Snapshot) -> None:
        self.allocation = allocation
        self.layout = allocation.layout
        self.snapshot = snapshot

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
        """Return the value of the node, each of its devices counted once."""
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
        """Return the parts of the devices here that pods of a namespace hold, once each."""
        rows = self.allocation.devices_in(namespace)
        return [
            self._of_namespace(row, namespace, metric)
            for row in rows
            if keep(self.layout.devices[row])
        ]

    def _units(self, metric: Metric[Any]) -> Iterable[int]:
        """Yield whole GPUs; for a partitioned one that has no value of its own, its parts."""
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
        return None, ""

    def _of_pod(self, row: int, key: PodKey, metric: Metric[Any]) -> Part:
        holders = self.allocation.holders[row]
        if all(holder.pod == key for holder in holders):
            return self._whole(row, metric, Rule.ALONE)
        own = [holder for holder in holders if holder.pod == key]
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
        """Return what some of the containers on a device use, if it is known of each."""
        whole = self._whole(row, metric)
        if whole.absence in {Absence.DOWN, Absence.UNSUPPORTED}:
            return whole
        column = self.snapshot.tenant_values.get(tenant_metric(metric))
        values = [] if column is None else [_first(column, holder.rows) for holder in own]
        known = [value for value in values if value is not None]
        if whole.age_seconds is None or len(known) < len(own):
            return _replaced(whole, None, None, absence=Absence.NOT_ATTRIBUTABLE)
        return _replaced(whole, sum(known), Rule.TENANT)

    def _share(self, row: int, one: Holder, metric: Metric[Any]) -> Part:
        """Return the share of the workload that ``one`` belongs to, on a device with others."""
        holders = self.allocation.holders[row]
        own = [h for h in holders if h.workload is not None and h.workload == one.workload]
        if len(own) == len(holders):
            return self._whole(row, metric, Rule.WORKLOAD_ALONE)
        whole = self._whole(row, metric, Rule.SHARES_UNKNOWN)
        shares = self._shares(row, own)
        if shares is None or whole.absence is Absence.DOWN or whole.age_seconds is None:
            return whole
        return _replaced(whole, shares.percent(), Rule.WORKLOAD_SHARE, shares)

    def _shares(self, row: int, own: Sequence[Holder]) -> Shares | None:
        column = self.snapshot.tenant_values.get(BUSY_RATIO)
        if not self.snapshot.shares or column is None:
            return None
        holders = self.allocation.holders[row]
        busy = {holder: _first(column, holder.rows) for holder in holders}
        if any(value is None for value in busy.values()):
            return None
        known = {holder: value for holder, value in busy.items() if value is not None}
        hosts = sum(column[r] or 0.0 for r in self.allocation.hosts[row])
        return Shares(
            own=sum(known[holder] for holder in own),
            total=min(1.0, sum(known.values()) + hosts),
            holders=len(own),
            tenants=len(holders),
        )


def serve_of(metric: Metric[Any]) -> Serve:
    """Return how a metric is served; raise ``ValueError`` if it is not."""
    if metric.serve is None:
        raise ValueError(f"{metric.name} is not served")
    return metric.serve


def _first(column: Column, rows: Sequence[int]) -> float | None:
    """Return the value of a container: its rows repeat it, one for each replica it was given."""
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
