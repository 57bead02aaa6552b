"""Who holds which device of a node: the exporter's tenants, checked against the existing pods.

Changes only with the layout or the pods of the node, not with every tick. Pure.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from slicewatch.kube.objects import Pod
from slicewatch.kube.workloads import Workload, workload
from slicewatch.wire.layout import Layout, Tenant

PodKey = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """One container on one device, however many replicas of the device it was given.

    Attributes:
        rows: of the layout's tenants; their values describe the same container.
        workload: None while the pod is unknown, which makes it a stranger to everyone.
    """

    pod: PodKey
    container: str
    rows: tuple[int, ...]
    workload: Workload | None


class Allocation:
    """The holders of each device of a layout, and the devices of each pod.

    A tenant whose pod has finished, or has been replaced by another of the same name, no longer
    holds anything, whatever the kubelet still says. One whose pod is unknown (a watch may lag, a
    pod may be force-deleted) still occupies its device, but gets no value of its own.

    Attributes:
        holders: by device row.
        workloads: by device row, how many of its holders are of each known workload.
        guests: by device row, the tenant rows of those who work on it without holding it:
            processes outside any pod, and containers that were not given the device.
        leavers: by device row, the tenant rows of those who hold it no longer; what they did is
            in the means of the device for as long as these reach back.
    """

    def __init__(self, layout: Layout, pods: Mapping[PodKey, Pod]) -> None:
        self.layout = layout
        self.guests: list[list[int]] = [[] for _ in layout.devices]
        self.leavers: list[list[int]] = [[] for _ in layout.devices]
        self.holders: list[list[Holder]] = [[] for _ in layout.devices]
        self.workloads: list[Counter[Workload | None]] = [Counter() for _ in layout.devices]
        self._held: dict[tuple[int, PodKey], list[Holder]] = defaultdict(list)
        self._devices: dict[PodKey, tuple[int, ...]] = {}
        self._missing: dict[PodKey, list[str]] = defaultdict(list)
        self._namespaces: dict[str, set[int]] = defaultdict(set)
        self._assign(_by_container(layout.tenants), pods)

    def held_by(self, device: int, pod: PodKey) -> Sequence[Holder]:
        """Return the containers of a pod that hold a device."""
        return self._held.get((device, pod), ())

    def devices_of(self, pod: PodKey) -> tuple[int, ...]:
        """Return the device rows that a pod holds, in layout order."""
        return self._devices.get(pod, ())

    def missing_of(self, pod: PodKey) -> Sequence[str]:
        """Return the UUIDs that a pod holds and the layout lacks."""
        return self._missing.get(pod, ())

    def devices_in(self, namespace: str) -> tuple[int, ...]:
        """Return the device rows that pods of a namespace hold, once each."""
        return tuple(sorted(self._namespaces.get(namespace, ())))

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces whose pods hold devices here."""
        return frozenset(self._namespaces)

    def _assign(
        self,
        containers: Mapping[tuple[str, PodKey, str], Sequence[int]],
        pods: Mapping[PodKey, Pod],
    ) -> None:
        devices = {device.uuid: row for row, device in enumerate(self.layout.devices)}
        for (uuid, key, container), rows in containers.items():
            device = devices.get(uuid)
            if not any(self.layout.tenants[row].allocated for row in rows):
                if device is not None:
                    self.guests[device] += rows
                continue
            pod = pods.get(key)
            uid = next((u for r in rows if (u := self.layout.tenants[r].uid)), "")
            if pod is not None and (pod.finished or uid not in {"", pod.metadata.uid}):
                if device is not None:
                    self.leavers[device] += rows
                continue
            if device is None:
                self._missing[key].append(uuid)
                continue
            self._hold(device, key, container, rows, pod)

    def _hold(
        self, device: int, key: PodKey, container: str, rows: Sequence[int], pod: Pod | None
    ) -> None:
        holder = Holder(
            pod=key,
            container=container,
            rows=tuple(rows),
            workload=None if pod is None else workload(pod),
        )
        self.holders[device].append(holder)
        self._held[device, key].append(holder)
        if holder.workload is not None:
            self.workloads[device][holder.workload] += 1
        if pod is not None:
            self._devices[key] = tuple(sorted({*self._devices.get(key, ()), device}))
            self._namespaces[key[0]].add(device)


def _by_container(tenants: Iterable[Tenant]) -> dict[tuple[str, PodKey, str], list[int]]:
    grouped: dict[tuple[str, PodKey, str], list[int]] = defaultdict(list)
    for row, tenant in enumerate(tenants):
        key = (tenant.device, (tenant.namespace, tenant.pod), tenant.container)
        grouped[key].append(row)
    return grouped
