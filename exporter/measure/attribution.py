"""Who uses the devices of the node: from the passes of a tick to tenants and their values.

The kubelet says who was given a device; processes say who works on it. Both together are the
tenants: a container may hold a device and not use it, and use one that it was not given.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from exporter.measure.device_uses import DeviceUses, Known, Values, believed
from exporter.measure.usage import Usage
from exporter.nvml.plan import Plan, ScopePlan
from exporter.nvml.protocol import Outcome, Value
from exporter.nvml.reader import Cycle
from exporter.tenants.owners import Processes
from exporter.tenants.tenants import Holders
from slicewatch.catalog import sharing
from slicewatch.catalog.model import Metric
from slicewatch.catalog.processes import PROCESS_UTILIZATION, PROCESSES
from slicewatch.catalog.vgpu import VGPUS
from slicewatch.wire.layout import Device, Tenant
from slicewatch.wire.snapshot import Column

# How the shares of tenants were found, for readers of the snapshot.
METHOD = "process_samples"

# What is taken of each pass.
READ = (VGPUS, PROCESSES, PROCESS_UTILIZATION)
# What is unknown wherever the shares of a device's tenants are, as the support of metrics says.
OF_SHARES = ("gpu_contention_ratio", "gpu_contended_seconds_total")
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
    """Who uses the devices of the node, tick by tick.

    Args:
        processes: knows whose a process is.
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
        self._uses: dict[str, DeviceUses] = {}
        self._tenants: tuple[Tenant, ...] = ()
        self._holders: tuple[Tenant, ...] = ()
        self._holders_of: dict[str, tuple[Tenant, ...]] = {}
        self._plan: Plan | None = None
        # By whether a device is a MIG instance: where in its pass the probes are.
        self._places: dict[bool, tuple[int | None, ...]] = {}

    def take(self, cycles: Iterable[Cycle], holders: Holders) -> None:
        """Take the passes that came in since the last tick."""
        self._processes.refresh()
        self._group(holders.tenants)
        for cycle in cycles:
            if isinstance(cycle.devices, Value):
                self._follow(cycle.plan)
                for device, outcomes in zip(cycle.devices.value, cycle.readings, strict=True):
                    self._take(cycle, device, outcomes)

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
        self._group(holders.tenants)
        self._forget_gone(devices)
        uses = [
            self._device_uses(device, holders, room, is_up=is_up)
            for device, is_up, room in zip(devices, up, capacity, strict=True)
        ]
        of_tenants = _columns(sharing.OF_TENANTS, [row for of in uses for row in of.tenant_rows])
        of_devices = _columns(sharing.OF_DEVICES, [of.row for of in uses])
        of_devices[sharing.PRESSURE.name] = [
            believed(sharing.PRESSURE, _pressure(of.crowd, busy), self._reject)
            for of, busy in zip(uses, pressure, strict=True)
        ]
        known = any(ratio is not None for ratio in of_tenants["gpu_tenant_busy_ratio"])
        return Uses(
            tenants=self._all_tenants(uses),
            of_tenants=of_tenants,
            of_devices=of_devices,
            shares=METHOD if known else "",
            reasons=self._reasons(devices),
        )

    def _group(self, tenants: tuple[Tenant, ...]) -> None:
        if tenants is self._holders:
            return
        self._holders = tenants
        grouped: dict[str, list[Tenant]] = {}
        for tenant in tenants:
            grouped.setdefault(tenant.device, []).append(tenant)
        self._holders_of = {uuid: tuple(found) for uuid, found in grouped.items()}

    def _follow(self, plan: Plan) -> None:
        if plan is not self._plan:
            self._plan = plan
            self._places = {False: _places(plan.gpu), True: _places(plan.mig)}

    def _take(self, cycle: Cycle, device: Device, outcomes: Sequence[Outcome[Any] | None]) -> None:
        vgpus, listed, shares = (
            None if place is None else outcomes[place] for place in self._places[device.is_mig]
        )
        usage = self._usage(device)
        if vgpus is not None:
            usage.hosts_vgpus = isinstance(vgpus, Value)
        usage.take_list(listed)
        usage.take_shares(
            shares,
            self._holders_of.get(device.uuid, ()),
            self._processes,
            cycle.at,
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
        kept = {device.uuid for device in devices}
        if self._usages.keys() - kept:
            self._usages = {uuid: u for uuid, u in self._usages.items() if uuid in kept}
            self._uses = {uuid: u for uuid, u in self._uses.items() if uuid in kept}

    def _device_uses(
        self, device: Device, holders: Holders, capacity: float | None, *, is_up: bool
    ) -> DeviceUses:
        usage = self._usages.get(device.uuid)
        held = self._holders_of.get(device.uuid, ())
        # By place: it is made for every device in every tick, and most of them are idle.
        known = Known(
            device,
            usage,
            usage.state if usage else None,
            usage.reason if usage else "",
            usage.owners(self._processes) if usage and is_up else None,
            held,
            capacity,
            len(held) if holders.known else None,
            holders.replicas.get(device.uuid),
            usage is not None and usage.is_listed and not self._processes.fault,
        )
        before = self._uses.get(device.uuid)
        if before is None or not before.known.is_same(known):
            before = self._uses[device.uuid] = DeviceUses(known, self._reject)
        return before

    def _all_tenants(self, uses: Iterable[DeviceUses]) -> tuple[Tenant, ...]:
        tenants = tuple(tenant for of in uses for tenant in of.tenants)
        if tenants != self._tenants:
            self._tenants = tenants
        return self._tenants

    def _reasons(self, devices: Sequence[Device]) -> dict[str, tuple[str | None, ...]]:
        reasons = tuple(
            ON_MIG if device.is_mig
            else (usage.reason or None) if (usage := self._usages.get(device.uuid))
            else None
            for device in devices
        )  # fmt: skip
        return dict.fromkeys(OF_SHARES, reasons) if any(reasons) else {}


def _places(plan: ScopePlan) -> tuple[int | None, ...]:
    return tuple(plan.probes.index(p) if p in plan.probes else None for p in READ)


def _columns(metrics: Sequence[Metric[Any]], rows: Sequence[Values]) -> dict[str, Column]:
    columns = map(list, zip(*rows, strict=True)) if rows else ([] for _ in metrics)
    return {metric.name: column for metric, column in zip(metrics, columns, strict=True)}


def _pressure(crowd: int | None, busy: float | None) -> float | None:
    """Return the pressure of tenants that run at the same time; one alone is under none."""
    if crowd is None or busy is None:
        return None
    return busy if crowd >= 2 else 0.0
