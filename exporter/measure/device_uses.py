"""Who uses one device: its tenants and the values derived from their processes.

Worked out anew only when something that it is made of has changed: on a node of MIG instances,
where the driver attributes no time to processes, that is when a process starts or ends.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple

import msgspec

from exporter.measure.sharing import TenantKey
from exporter.measure.usage import MPS, Usage, key_of
from exporter.tenants.owners import Owner
from slicewatch.catalog import sharing
from slicewatch.catalog.model import Metric
from slicewatch.catalog.readings.processes import GpuProcess
from slicewatch.catalog.readings.sharing import DeviceUse, TenantUse
from slicewatch.wire.layout import Device, Tenant

# Of a tenant whose use of a device is not known.
UNKNOWN = TenantUse()

Reject = Callable[[str], None]
Values = tuple[float | None, ...]


class Known(NamedTuple):
    """What the uses of a device are made of; the same only if every part is the same object.

    Attributes:
        owners: whose processes there are; None of a device that does not answer.
        holders: who was given the device.
        capacity: its memory in bytes.
        given: how many hold it, if that is known.
        replicas: as how many devices it is offered, if that is known.
        can_tell: the driver lists its processes, and they can be mapped to containers.
    """

    device: Device
    usage: Usage | None
    state: object
    reason: str
    owners: Mapping[Owner, Sequence[GpuProcess]] | None
    holders: tuple[Tenant, ...]
    capacity: float | None
    given: int | None
    replicas: int | None
    can_tell: bool

    def is_same(self, other: "Known") -> bool:
        """Tell whether nothing has changed."""
        return all(map(is_, self, other))


class DeviceUses:
    """The uses of one device.

    Attributes:
        tenants: by name; those who were given it know more of themselves.
        tenant_rows: per tenant, a value for each of ``sharing.OF_TENANTS``.
        row: a value for each of ``sharing.OF_DEVICES``.
        crowd: how many tenants use it at the same time; None where they take turns, or where
            that is not known.
    """

    def __init__(self, known: Known, reject: Reject) -> None:
        self.known = known
        by_tenant = _by_tenant(known.owners or {})
        self.tenants = _tenants(known)
        self.tenant_rows = [
            _believed(sharing.OF_TENANTS, self._tenant_use(tenant, by_tenant), reject)
            for tenant in self.tenants
        ]
        self.row = _believed(sharing.OF_DEVICES, self._device_use(), reject)
        at_once = known.device.is_mig or known.reason == MPS
        self.crowd = self._active() if at_once else None

    def _tenant_use(
        self, tenant: Tenant, held: Mapping[TenantKey, Sequence[GpuProcess]]
    ) -> TenantUse:
        known = self.known
        if known.owners is None or known.usage is None:
            return UNKNOWN
        key = key_of(tenant)
        shares = UNKNOWN if known.reason else known.usage.state.tenants.get(key)
        processes = held.get(key, ())
        return msgspec.structs.replace(
            UNKNOWN if shares is None else shares,
            memory_used_bytes=_memory(processes) if known.can_tell else None,
            memory_total_bytes=known.capacity,
            processes=len(processes) if known.can_tell else None,
        )

    def _device_use(self) -> DeviceUse:
        known = self.known
        use = DeviceUse(
            tenants_allocated=known.given, tenants_active=self._active(), replicas=known.replicas
        )
        if known.owners is None or known.usage is None or known.reason:
            return use
        state = known.usage.state
        return msgspec.structs.replace(
            use,
            contention_ratio=state.contention_ratio,
            unattributed_busy_ratio=state.unattributed_busy_ratio,
            contended_seconds_total=state.contended_seconds_total,
            sampled_seconds_total=state.covered_seconds_total or None,
        )

    def _active(self) -> int | None:
        owners = self.known.owners
        if owners is None or not self.known.can_tell:
            return None
        return sum(bool(found) for found in owners.values())


def _tenants(known: Known) -> tuple[Tenant, ...]:
    """Return who was given the device or works on it."""
    uuid = known.device.uuid
    found = {
        key_of(owner): Tenant(
            device=uuid, namespace=owner.namespace, pod=owner.pod, container=owner.container,
            uid=owner.uid, allocated=False,
        )
        for owner in known.owners or ()
    }  # fmt: skip
    for tenant in known.holders:
        key = key_of(tenant)
        seen = found.get(key)
        # That of a static pod is the hash of its file, which is no uid to the API server.
        add = seen is not None and "-" in seen.uid and not tenant.uid
        found[key] = msgspec.structs.replace(tenant, uid=seen.uid) if add and seen else tenant
    return tuple(found[key] for key in sorted(found))


def _believed(metrics: Sequence[Metric[Any]], use: object, reject: Reject) -> Values:
    return tuple([believed(metric, metric.value(use), reject) for metric in metrics])  # type: ignore[misc]  # each of them has one


def believed(metric: Metric[Any], value: object, reject: Reject) -> float | None:
    """Return a value that can be true; reject one that cannot."""
    if not isinstance(value, int | float):
        return None
    if not metric.limits.hold(value):
        reject(metric.name)
        return None
    return value


def _by_tenant(
    owners: Mapping[Owner, Sequence[GpuProcess]],
) -> dict[TenantKey, list[GpuProcess]]:
    """Join the owners that are one tenant, as where a pod was replaced by another of its name."""
    held: dict[TenantKey, list[GpuProcess]] = {}
    for owner, found in owners.items():
        held.setdefault(key_of(owner), []).extend(found)
    return held


def _memory(processes: Sequence[GpuProcess]) -> int | None:
    """Return what processes hold together; unknown where it is unknown of one of them."""
    total = 0
    for process in processes:
        if process.used_bytes is None:
            return None
        total += process.used_bytes
    return total
