"""What a pod, a node or a namespace gets of a metric: layout, snapshot and pods in, values out.

Pure, and blind to time: ages are those at sending, and the caller compares them with its clock.
One object on one node at a time; the caller combines a namespace's parts.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapter.allocation import Allocation, Holder, PodKey
from adapter.outcome import Absence, Outcome, Part, Rule, Shares, combine, folded
from adapter.served import BUSY, Served
from slicewatch.catalog.dcgm import OnMig
from slicewatch.catalog.model import RATIO, Attribution, Label, Limits
from slicewatch.kube.workloads import Workload
from slicewatch.wire.layout import Device, Layout
from slicewatch.wire.snapshot import Column, Snapshot

NOT_ON_MIG: Final = "dcgm-exporter has it of whole GPUs only"

Keep = Callable[[Device], bool]
"""Which devices a metric selector includes."""


def everything(_: Device) -> bool:
    """Include every device."""
    return True


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

    def pod(self, key: PodKey, served: Served, keep: Keep = everything) -> Outcome:
        """Return the value of a pod that runs on this node."""
        if not self.layout.tenants_known:
            return Outcome(absence=Absence.TENANTS_UNKNOWN)
        if missing := self.allocation.missing_of(key):
            return Outcome(absence=Absence.NO_VALUE, detail=f"{missing[0]} is not reported")
        rows = self.allocation.devices_of(key)
        if not rows:
            return Outcome(absence=Absence.NO_DEVICE)
        parts = [self._of_pod(row, key, served) for row in rows if keep(self.layout.devices[row])]
        return combine(parts, served.combine)

    def node(self, served: Served, keep: Keep = everything) -> Outcome:
        """Return the value of the node, counting each of its devices once."""
        if not self.layout.devices:
            return Outcome(absence=Absence.NO_DEVICE)
        parts = [
            self._whole(row, served)
            for row in self._units(served)
            if keep(self.layout.devices[row])
        ]
        return combine(parts, served.combine)

    def namespace(self, namespace: str, served: Served, keep: Keep = everything) -> Outcome:
        """Return the value of what pods of a namespace hold here, counting each device once."""
        rows = self.allocation.devices_in(namespace)
        if not rows:
            return Outcome(absence=Absence.NO_DEVICE)
        parts = [
            self._of_namespace(row, namespace, served)
            for row in rows
            if keep(self.layout.devices[row])
        ]
        return combine(parts, served.combine)

    def _units(self, served: Served) -> Iterable[int]:
        """Yield whole GPUs, or the MIG devices of one that has no value of its own."""
        column = self._column(served)
        for row, device in enumerate(self.layout.devices):
            if device.is_mig:
                continue
            split = device.mig_enabled and (column is None or column[row] is None)
            slices = [
                r for r, d in enumerate(self.layout.devices) if split and d.parent == device.uuid
            ]
            yield from slices or [row]

    def _column(self, served: Served) -> Column | None:
        """Return the means of the devices, or what is no mean, or is one as it is read."""
        means = self.snapshot.means.get(served.column)
        return self.snapshot.values.get(served.column) if means is None else means

    def _whole(self, row: int, served: Served, rule: Rule = Rule.DEVICE) -> Part:
        """Return the device's own value as a part, whoever holds it."""
        device, at = self.layout.devices[row], row
        if served.on_mig is not OnMig.OWN and device.is_mig:
            if served.on_mig is OnMig.NOTHING:
                return Part(device=device, absence=Absence.UNSUPPORTED, detail=NOT_ON_MIG)
            at = self._parent(row)
        column = self._column(served)
        value = None if column is None else column[at]
        age = self.snapshot.ages[at]
        absence, detail = self._absence(at, served, value, age)
        if absence is Absence.NO_VALUE and column is None and served.column:
            absence, detail = Absence.NOT_READ, served.column
        value = None if value is None else value * served.factor
        return Part(
            device=device,
            age_seconds=age,
            device_value=value,
            value=value if absence is None else None,
            rule=rule if absence is None else None,
            absence=absence,
            detail=detail,
        )

    def _parent(self, row: int) -> int:
        """Return the row of the GPU that a MIG device is part of, or its own if that is missing."""
        devices = self.layout.devices
        return next((r for r, d in enumerate(devices) if d.uuid == devices[row].parent), row)

    def _absence(
        self, row: int, served: Served, value: float | None, age: float | None
    ) -> tuple[Absence | None, str]:
        if not self.snapshot.up[row]:
            return Absence.DOWN, ""
        if value is None and (reason := self._reason(row, served)):
            return Absence.UNSUPPORTED, reason
        if value is None or age is None:
            return Absence.NO_VALUE, ""
        if not _possible(value, served.metric.limits):
            return Absence.IMPOSSIBLE, f"{value:g}"
        return None, ""

    def _reason(self, row: int, served: Served) -> str | None:
        reasons = self.layout.support.get(served.reasons)
        return None if reasons is None else reasons[row]

    def _of_pod(self, row: int, key: PodKey, served: Served) -> Part:
        own = self.allocation.held_by(row, key)
        alone = len(own) == len(self.allocation.holders[row])
        if served.attribution is Attribution.DEVICE:
            return self._whole(row, served)
        if served.attribution is Attribution.OWN_PART:
            # What only tenants have is their own part also of a device that is all theirs.
            if alone and served.column:
                return self._whole(row, served, Rule.ALONE)
            return self._tenants(row, own, served)
        if alone and not self._lingers(row):
            return self._whole(row, served, Rule.ALONE)
        return self._share(row, own[0], served)

    def _of_namespace(self, row: int, namespace: str, served: Served) -> Part:
        own = [h for h in self.allocation.holders[row] if h.pod[0] == namespace]
        whole = len(own) == len(self.allocation.holders[row])
        if whole or served.attribution is not Attribution.OWN_PART:
            return self._whole(row, served)
        return self._tenants(row, own, served)

    def _tenants(self, row: int, own: Sequence[Holder], served: Served) -> Part:
        """Return what some of the containers on a device have of it, if that is known of each."""
        whole = self._whole(row, served)
        if whole.absence in {Absence.DOWN, Absence.UNSUPPORTED, Absence.IMPOSSIBLE}:
            return whole
        column = self.snapshot.tenant_values.get(served.tenant_column)
        values = [] if column is None else [_first(column, holder.rows) for holder in own]
        known = [v for v in values if v is not None and _possible(v, served.metric.limits)]
        if whole.age_seconds is None or len(known) < len(own):
            absence = Absence.NOT_ATTRIBUTABLE if served.column else Absence.NO_SHARES
            return _replaced(whole, None, None, absence=absence)
        return _replaced(whole, folded(known, served.fold), Rule.TENANT)

    def _share(self, row: int, one: Holder, served: Served) -> Part:
        """Return the share of the workload of ``one`` on a device that it shares with others."""
        workload = one.workload
        alone = self.allocation.workloads[row][workload] == len(self.allocation.holders[row])
        if alone and not self._lingers(row):
            return self._whole(row, served, Rule.WORKLOAD_ALONE)
        whole = self._whole(row, served, Rule.SHARES_UNKNOWN)
        shares = self._shares(row, workload)
        unusable = whole.absence in {Absence.DOWN, Absence.IMPOSSIBLE}
        if shares is None or unusable or whole.age_seconds is None:
            return whole
        return _replaced(whole, shares.percent(), Rule.WORKLOAD_SHARE, shares)

    def _lingers(self, row: int) -> bool:
        """Tell whether the device's mean still contains work of a pod that has ended."""
        leavers = self.allocation.leavers[row]
        column = self.snapshot.tenant_values.get(BUSY) if leavers else None
        return column is not None and any(column[r] for r in leavers)

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
        column = self.snapshot.tenant_values.get(BUSY)
        if not self.snapshot.shares or column is None:
            return None
        holders = self.allocation.holders[row]
        values = [_first(column, holder.rows) for holder in holders]
        others = (*self.allocation.guests[row], *self.allocation.leavers[row])
        values += [column[r] or 0.0 for r in others]
        known = [v for v in values if v is not None and _possible(v, RATIO)]
        if len(known) < len(values):
            return None
        sums: dict[Workload | None, float] = defaultdict(float)
        for holder, value in zip(holders, known, strict=False):
            sums[holder.workload] += value
        return Busy(workloads=sums, total=min(1.0, sum(known)))


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
