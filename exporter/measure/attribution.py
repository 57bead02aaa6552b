"""Who uses the devices of the node: from the passes of a tick to tenants and their values.

The kubelet says who was given a device; processes say who works on it. Both together are the
tenants: a container may hold a device and not use it, and use one that it was not given.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from exporter.measure.sharing import TenantKey
from exporter.measure.usage import MPS, Usage, key_of
from exporter.nvml.protocol import Outcome, Value
from exporter.nvml.reader import Cycle
from exporter.tenants.owners import Owner, Processes
from exporter.tenants.tenants import Holders
from slicewatch.catalog import sharing
from slicewatch.catalog.model import Metric, Probe
from slicewatch.catalog.processes import PROCESS_UTILIZATION, PROCESSES
from slicewatch.catalog.readings.processes import GpuProcess
from slicewatch.catalog.readings.sharing import DeviceUse, TenantUse
from slicewatch.wire.layout import Device, Tenant
from slicewatch.wire.snapshot import Column

# How the shares of tenants were found, for readers of the snapshot.
METHOD = "process_samples"

# What is unknown wherever the shares of a device's tenants are, as the support of metrics says.
OF_SHARES = ("gpu_contention_ratio", "gpu_contended_seconds_total")
# Of a tenant whose use of a device is not known.
UNKNOWN = TenantUse()
# NVML attributes no time to the processes of an instance.
ON_MIG = "mig_instance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """The tenants of a tick and the values derived from their processes.

    Attributes:
        tenants: sorted by device, then by name; the same object while nothing of it changes.
        of_tenants: columns over ``tenants``.
        of_devices: columns over the devices.
        shares: how the shares were found; empty while none is known.
        reasons: per metric, why it is unknown, per device.
    """

    tenants: tuple[Tenant, ...] = ()
    of_tenants: dict[str, Column] = field(default_factory=dict)
    of_devices: dict[str, Column] = field(default_factory=dict)
    shares: str = ""
    reasons: dict[str, tuple[str | None, ...]] = field(default_factory=dict)


class Attribution:
    """The devices of the node and who uses them.

    Args:
        processes: knows whose a process is; None where nobody does.
        window_seconds: of contention; ``short_window_seconds``: of shares.
        reject: called with the name of a metric whose value could not be true.
    """

    def __init__(
        self,
        processes: Processes,
        *,
        window_seconds: float,
        short_window_seconds: float,
        reject: Callable[[str], None],
    ) -> None:
        self._processes = processes
        self._window_seconds = window_seconds
        self._short_window_seconds = short_window_seconds
        self._reject = reject
        self._usages: dict[str, Usage] = {}
        self._tenants: tuple[Tenant, ...] = ()

    def take(self, cycles: Iterable[Cycle], holders: Holders) -> None:
        """Take the passes that came in since the last tick."""
        self._processes.refresh()
        held: dict[str, list[TenantKey]] = {}
        for tenant in holders.tenants:
            key = (tenant.namespace, tenant.pod, tenant.container)
            held.setdefault(tenant.device, []).append(key)
        for cycle in cycles:
            if not isinstance(cycle.devices, Value):
                continue
            for device, outcomes in zip(cycle.devices.value, cycle.readings, strict=True):
                probes = cycle.plan.of_device(device).probes
                usage = self._usage(device)
                usage.take_list(_outcome(PROCESSES, probes, outcomes))
                shares = _outcome(PROCESS_UTILIZATION, probes, outcomes)
                usage.take_shares(shares, held.get(device.uuid, ()), self._processes, cycle.at)

    def uses(
        self,
        devices: Sequence[Device],
        up: Sequence[bool],
        holders: Holders,
        *,
        capacity: Column,
        pressure: Column,
    ) -> Uses:
        """Return who uses these devices.

        Args:
            devices: the rows of the layout.
            up: which of them answer.
            holders: who was given which of them.
            capacity: their memory, in bytes.
            pressure: how busy the busier of their SMs and memory is, 0 to 1.
        """
        self._forget_gone(devices)
        shown = dict(zip((d.uuid for d in devices), zip(up, capacity, strict=True), strict=True))
        owners = {
            uuid: self._usages[uuid].owners(self._processes)
            for uuid, (is_up, _) in shown.items()
            if is_up and uuid in self._usages
        }
        tenants = self._all_tenants(devices, holders.tenants, owners)
        uses = [
            self._tenant_use(tenant, owners.get(tenant.device), shown[tenant.device])
            for tenant in tenants
        ]
        allocated = _counted(holders)
        device_uses = [
            self._device_use(device, owners.get(device.uuid), allocated, holders, of_device)
            for device, of_device in zip(devices, pressure, strict=True)
        ]
        of_tenants = self._columns(sharing.OF_TENANTS, uses)
        known = any(ratio is not None for ratio in of_tenants["gpu_tenant_busy_ratio"])
        return Uses(
            tenants=tenants,
            of_tenants=of_tenants,
            of_devices=self._columns(sharing.OF_DEVICES, device_uses),
            shares=METHOD if known else "",
            reasons=self._reasons(devices),
        )

    def _usage(self, device: Device) -> Usage:
        usage = self._usages.get(device.uuid)
        if usage is None:
            usage = self._usages[device.uuid] = Usage(
                window_seconds=self._window_seconds,
                short_window_seconds=self._short_window_seconds,
            )
        return usage

    def _forget_gone(self, devices: Sequence[Device]) -> None:
        if self._usages.keys() - {device.uuid for device in devices}:
            kept = {device.uuid for device in devices}
            self._usages = {uuid: u for uuid, u in self._usages.items() if uuid in kept}

    def _all_tenants(
        self,
        devices: Sequence[Device],
        allocated: Sequence[Tenant],
        owners: Mapping[str, Mapping[Owner, object]],
    ) -> tuple[Tenant, ...]:
        """Return who was given a device or works on it; the former know more of themselves."""
        found: dict[tuple[str, TenantKey], Tenant] = {}
        for uuid, of_device in owners.items():
            for owner in of_device:
                found[uuid, key_of(owner)] = Tenant(
                    device=uuid, namespace=owner.namespace, pod=owner.pod,
                    container=owner.container, uid=owner.uid, allocated=False,
                )  # fmt: skip
        for tenant in allocated:
            key = (tenant.device, (tenant.namespace, tenant.pod, tenant.container))
            seen = found.get(key)
            # That of a static pod is the hash of its file, which is no uid to the API server.
            if seen is not None and "-" in seen.uid and not tenant.uid:
                tenant = msgspec.structs.replace(tenant, uid=seen.uid)  # noqa: PLW2901
            found[key] = tenant
        order = {device.uuid: row for row, device in enumerate(devices)}
        rows = sorted((key for key in found if key[0] in order), key=lambda k: (order[k[0]], k[1]))
        tenants = tuple(found[key] for key in rows)
        if tenants != self._tenants:
            self._tenants = tenants
        return self._tenants

    def _tenant_use(
        self,
        tenant: Tenant,
        owners: Mapping[Owner, Sequence[GpuProcess]] | None,
        shown: tuple[bool, float | None],
    ) -> TenantUse:
        if owners is None:
            return UNKNOWN
        usage = self._usages[tenant.device]
        key = (tenant.namespace, tenant.pod, tenant.container)
        shares = UNKNOWN if usage.reason else usage.state.tenants.get(key, UNKNOWN)
        # Several owners are one tenant where the pod of a name was replaced by another.
        held = [p for owner, found in owners.items() if key_of(owner) == key for p in found]
        can_tell = usage.is_listed and not self._processes.fault
        return TenantUse(
            busy_seconds_total=shares.busy_seconds_total,
            foreign_busy_seconds_total=shares.foreign_busy_seconds_total,
            busy_ratio=shares.busy_ratio,
            contention_ratio=shares.contention_ratio,
            memory_used_bytes=_memory(held) if can_tell else None,
            memory_total_bytes=shown[1],
            processes=len(held) if can_tell else None,
        )

    def _device_use(
        self,
        device: Device,
        owners: Mapping[Owner, Sequence[GpuProcess]] | None,
        allocated: Mapping[str, int],
        holders: Holders,
        pressure: float | None,
    ) -> DeviceUse:
        given = allocated.get(device.uuid, 0) if holders.known else None
        replicas = holders.replicas.get(device.uuid)
        usage = self._usages.get(device.uuid)
        if owners is None or usage is None:
            return DeviceUse(tenants_allocated=given, replicas=replicas)
        listed = usage.is_listed and not self._processes.fault
        active = sum(bool(found) for found in owners.values()) if listed else None
        known = DeviceUse(
            tenants_allocated=given,
            tenants_active=active,
            pressure_ratio=_pressure(active, pressure)
            if device.is_mig or usage.reason == MPS
            else None,
            replicas=replicas,
        )
        if usage.reason:
            return known
        state = usage.state
        sampled = state.covered_seconds_total
        return msgspec.structs.replace(
            known,
            contention_ratio=state.contention_ratio,
            unattributed_busy_ratio=state.unattributed_busy_ratio,
            contended_seconds_total=state.contended_seconds_total,
            sampled_seconds_total=sampled or None,
        )

    def _columns(
        self, metrics: Sequence[Metric[Any]], uses: Sequence[object]
    ) -> dict[str, Column]:
        return {metric.name: self._column(metric, uses) for metric in metrics}

    def _column(self, metric: Metric[Any], uses: Sequence[object]) -> Column:
        value_of = metric.value
        if value_of is None:
            return [None] * len(uses)
        # Most of a wide node is unknown: no tenant of a MIG instance has a share.
        return [
            None if (value := value_of(use)) is None else self._believed(metric, value)
            for use in uses
        ]

    def _believed(self, metric: Metric[Any], value: object) -> float | None:
        if not isinstance(value, int | float):
            return None
        if not metric.limits.hold(value):
            self._reject(metric.name)
            return None
        return value

    def _reasons(self, devices: Sequence[Device]) -> dict[str, tuple[str | None, ...]]:
        reasons = tuple(
            ON_MIG if device.is_mig
            else (usage.reason or None) if (usage := self._usages.get(device.uuid))
            else None
            for device in devices
        )  # fmt: skip
        return dict.fromkeys(OF_SHARES, reasons) if any(reasons) else {}


def _outcome(
    probe: Probe[Any], probes: Sequence[Probe[Any]], outcomes: Sequence[Outcome[Any] | None]
) -> Outcome[Any] | None:
    return next((o for p, o in zip(probes, outcomes, strict=True) if p is probe), None)


def _counted(holders: Holders) -> dict[str, int]:
    counted: dict[str, int] = {}
    for tenant in holders.tenants:
        counted[tenant.device] = counted.get(tenant.device, 0) + 1
    return counted


def _memory(processes: Sequence[GpuProcess]) -> int | None:
    """Return what processes hold together; unknown where it is unknown of one of them."""
    total = 0
    for process in processes:
        if process.used_bytes is None:
            return None
        total += process.used_bytes
    return total


def _pressure(active: int | None, pressure: float | None) -> float | None:
    """Return the pressure of tenants that run at the same time; one alone is under none."""
    if active is None or pressure is None:
        return None
    return pressure if active >= 2 else 0.0
