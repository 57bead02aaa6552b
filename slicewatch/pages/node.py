"""From a layout and a snapshot to the state of a node, as its page draws it.

The exporter has all columns; the adapter those that it asks for. What is not there is absent.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from slicewatch.hardware import memory_slices
from slicewatch.pages.findings import findings_of
from slicewatch.pages.history import Values
from slicewatch.pages.message import (
    DeviceState,
    Finding,
    GpuState,
    Health,
    Lines,
    NodeState,
    TenantState,
)
from slicewatch.wire.layout import Device, Layout, Tenant
from slicewatch.wire.snapshot import Column, Snapshot

LinesOf = Callable[[str], Lines]
"""Returns the sparklines of a device, by its uuid."""

REASONS: Final = {
    "utilization": "gpu_utilization",
    "memory_used_bytes": "gpu_memory_used_bytes",
    "contention_ratio": "gpu_contention_ratio",
}


def node_state(
    layout: Layout,
    snapshot: Snapshot,
    *,
    lines: LinesOf = lambda _: Lines(),
    wall_seconds: float | None = None,
    passed_seconds: float = 0.0,
    step_seconds: float | None = None,
) -> NodeState:
    """Return the state of a node.

    Args:
        layout: the devices and tenants.
        snapshot: their values.
        lines: what is known of the last minutes.
        wall_seconds: now, in seconds since 1970, to tell what was reported lately; None where the
            clocks of sender and reader may differ.
        passed_seconds: how long ago the snapshot was taken.
        step_seconds: between two points of the lines.
    """
    rows = Rows(layout, snapshot)
    gpus = tuple(
        _gpu(rows, row, device, lines, wall_seconds, passed_seconds)
        for row, device in enumerate(layout.devices)
        if not device.is_mig
    )
    return NodeState(
        node=layout.node,
        health=worst([gpu.health for gpu in gpus]),
        driver=layout.driver,
        age_seconds=passed_seconds,
        window_seconds=layout.window_seconds,
        step_seconds=step_seconds,
        gpus=gpus,
    )


def tracked(layout: Layout, snapshot: Snapshot) -> dict[str, Values]:
    """Return what sparklines are made of, by the uuid of each device."""
    rows = Rows(layout, snapshot)
    return {
        device.uuid: (
            rows.value("gpu_utilization", row),
            rows.value("gpu_memory_utilization", row),
            rows.value("gpu_power_usage_watts", row),
            rows.value("gpu_contention_ratio", row),
        )
        for row, device in enumerate(layout.devices)
    }


def worst(healths: Sequence[Health]) -> Health:
    """Return the worst of some; of none it is unknown."""
    return min(healths, key=list(Health).index, default=Health.UNKNOWN)


class Rows:
    """The values of a snapshot by family, device and tenant."""

    def __init__(self, layout: Layout, snapshot: Snapshot) -> None:
        self.layout = layout
        self.snapshot = snapshot
        self._columns: Mapping[str, Column] = snapshot.values | snapshot.means
        self._labelled: dict[str, list[tuple[str, Column]]] = defaultdict(list)
        for name, column in snapshot.values.items():
            family, brace, labels = name.partition("{")
            if brace:
                self._labelled[family].append((labels.rstrip("}"), column))
        self._tenants: dict[str, list[int]] = defaultdict(list)
        for place, tenant in enumerate(layout.tenants):
            self._tenants[tenant.device].append(place)

    def value(self, family: str, row: int) -> float | None:
        """Return the published value of a family without labels; None if it is not known."""
        column = self._columns.get(family)
        return None if column is None else column[row]

    def labelled(self, family: str, row: int) -> dict[str, float]:
        """Return the known values of a family by the text of its labels, as ``xid="79"``."""
        found = {labels: column[row] for labels, column in self._labelled.get(family, ())}
        return {labels: value for labels, value in found.items() if value is not None}

    def tenants(self, uuid: str) -> tuple[TenantState, ...]:
        """Return the tenants of a device, each container once, the busiest first."""
        found: dict[tuple[str, str, str], TenantState] = {}
        for place in self._tenants.get(uuid, ()):
            state = self._tenant(place, self.layout.tenants[place])
            key = (state.namespace, state.pod, state.container)
            before = found.get(key)
            if before is not None:
                state = _together(before, state)
            found[key] = state
        return tuple(sorted(found.values(), key=_rank))

    def _tenant(self, place: int, tenant: Tenant) -> TenantState:
        def value(family: str) -> float | None:
            column = self.snapshot.tenant_values.get(family)
            return None if column is None else column[place]

        return TenantState(
            namespace=tenant.namespace,
            pod=tenant.pod,
            container=tenant.container,
            workload=tenant.workload,
            replicas=int(tenant.allocated),
            busy_ratio=value("gpu_tenant_busy_ratio"),
            contention_ratio=value("gpu_tenant_contention_ratio"),
            memory_used_bytes=value("gpu_tenant_memory_used_bytes"),
        )


def _together(one: TenantState, other: TenantState) -> TenantState:
    """Return a container that holds several replicas of one device; its values are of all."""
    return TenantState(
        namespace=one.namespace,
        pod=one.pod,
        container=one.container,
        workload=one.workload or other.workload,
        replicas=one.replicas + other.replicas,
        busy_ratio=one.busy_ratio,
        contention_ratio=one.contention_ratio,
        memory_used_bytes=one.memory_used_bytes,
    )


def _rank(tenant: TenantState) -> tuple[float, str, str, str]:
    return (-(tenant.busy_ratio or 0.0), tenant.namespace, tenant.pod, tenant.container)


def _gpu(
    rows: Rows,
    row: int,
    gpu: Device,
    lines: LinesOf,
    wall_seconds: float | None,
    passed_seconds: float,
) -> GpuState:
    up, age = rows.snapshot.up[row], rows.snapshot.ages[row]
    found = findings_of(rows, row, wall_seconds)
    return GpuState(
        uuid=gpu.uuid,
        index=gpu.gpu,
        model=gpu.model,
        up=up,
        health=_health(found, up=up, known=age is not None),
        findings=found,
        mig=gpu.mig_enabled,
        memory_slices=_slices(rows, gpu) if gpu.mig_enabled else None,
        age_seconds=None if age is None else age + passed_seconds,
        power_watts=rows.value("gpu_power_usage_watts", row),
        power_limit_watts=rows.labelled("gpu_power_limit_watts", row).get('limit="enforced"'),
        temperature_celsius=rows.value("gpu_temperature_celsius", row),
        memory_used_bytes=rows.value("gpu_memory_used_bytes", row),
        memory_total_bytes=rows.value("gpu_memory_total_bytes", row),
        lines=lines(gpu.uuid),
        devices=_devices(rows, row, gpu, lines),
    )


def _health(found: Sequence[Finding], *, up: bool, known: bool) -> Health:
    if found:
        return worst([finding.health for finding in found])
    return Health.GOOD if up and known else Health.UNKNOWN


def _slices(rows: Rows, gpu: Device) -> int | None:
    """Return how many memory slices the GPU has; of an unknown model as many as are in use."""
    known = memory_slices(gpu.model)
    if known:
        return known
    ends = [
        one.placement_start + one.placement_size
        for one in rows.layout.devices
        if one.parent == gpu.uuid and one.placement_start is not None and one.placement_size
    ]
    return max(ends, default=None)


def _devices(rows: Rows, row: int, gpu: Device, lines: LinesOf) -> tuple[DeviceState, ...]:
    if not gpu.mig_enabled:
        return (_device(rows, row, gpu, lines),)
    parts = [
        (place, one) for place, one in enumerate(rows.layout.devices) if one.parent == gpu.uuid
    ]
    parts.sort(key=lambda part: (part[1].placement_start or 0, part[1].compute_instance or 0))
    return tuple(_device(rows, place, one, lines) for place, one in parts)


def _device(rows: Rows, row: int, device: Device, lines: LinesOf) -> DeviceState:
    replicas = rows.value("gpu_sharing_replicas", row)
    support = rows.layout.support
    reasons = {
        field: support[family][row] for field, family in REASONS.items() if family in support
    }
    return DeviceState(
        uuid=device.uuid,
        profile=device.profile,
        gpu_instance=device.gpu_instance,
        compute_instance=device.compute_instance,
        placement_start=device.placement_start,
        placement_size=device.placement_size,
        utilization=rows.value("gpu_utilization", row),
        memory_used_bytes=rows.value("gpu_memory_used_bytes", row),
        memory_total_bytes=rows.value("gpu_memory_total_bytes", row),
        contention_ratio=rows.value("gpu_contention_ratio", row),
        pressure_ratio=rows.value("gpu_pressure_ratio", row),
        replicas=None if replicas is None else int(replicas),
        tenants=rows.tenants(device.uuid),
        tenants_known=rows.layout.tenants_known,
        reasons={field: reason for field, reason in reasons.items() if reason},
        lines=lines(device.uuid),
    )
