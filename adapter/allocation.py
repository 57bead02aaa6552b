"""Who holds which device of a node: the exporter's tenants, held against the pods that exist.

Changes only with the layout or the pods of the node, not with the ticks. Pure.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from adapter.cluster.workloads import Workload, workload
from slicewatch.kube.objects import Pod
from slicewatch.wire.layout import Layout, Tenant

PodKey = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """One container on one device, however many replicas of the device it was given.

    Attributes:
        rows: of the layout's tenants; their values describe the same container.
        workload: None while the pod is not known, which makes it a stranger to all.
    """

    pod: PodKey
    container: str
    rows: tuple[int, ...]
    workload: Workload | None


class Allocation:
    """The holders of each device of a layout, and the devices of each pod.

    A tenant whose pod has finished, or was replaced by another of the same name, holds nothing
    any more, whatever the kubelet still says. One whose pod is not known (a watch may lag, a pod
    may be deleted by force) still occupies its device, but gets no value of its own.

    Attributes:
        holders: per device row.
        hosts: per device row, the tenant rows of processes outside of all containers.
    """

    def __init__(self, layout: Layout, pods: Mapping[PodKey, Pod]) -> None:
        self.layout = layout
        self._rows = {device.uuid: row for row, device in enumerate(layout.devices)}
        self.hosts: list[tuple[int, ...]] = [() for _ in layout.devices]
        self.holders: list[tuple[Holder, ...]] = [() for _ in layout.devices]
        self._devices: dict[PodKey, tuple[int, ...]] = {}
        self._missing: dict[PodKey, tuple[str, ...]] = {}
        self._namespaces: dict[str, set[int]] = defaultdict(set)
        self._assign(_by_container(layout.tenants), pods)

    def devices_of(self, pod: PodKey) -> tuple[int, ...]:
        """Return the device rows that a pod holds, in the order of the layout."""
        return self._devices.get(pod, ())

    def missing_of(self, pod: PodKey) -> tuple[str, ...]:
        """Return the uuids that a pod holds and the layout does not have."""
        return self._missing.get(pod, ())

    def devices_in(self, namespace: str) -> tuple[int, ...]:
        """Return the device rows that pods of a namespace hold, once each."""
        return tuple(sorted(self._namespaces.get(namespace, ())))

    @property
    def namespaces(self) -> frozenset[str]:
        """Return the namespaces that hold devices here."""
        return frozenset(self._namespaces)

    def row_of(self, uuid: str) -> int | None:
        """Return the row of a device."""
        return self._rows.get(uuid)

    def _assign(
        self,
        containers: Mapping[tuple[str, PodKey, str], tuple[int, ...]],
        pods: Mapping[PodKey, Pod],
    ) -> None:
        for (uuid, key, container), rows in containers.items():
            device = self._rows.get(uuid)
            if key == ("", ""):
                if device is not None:
                    self.hosts[device] += rows
                continue
            pod = pods.get(key)
            uid = next((u for r in rows if (u := self.layout.tenants[r].uid)), "")
            if pod is not None and (pod.finished or uid not in {"", pod.metadata.uid}):
                continue
            if device is None:
                self._missing[key] = (*self._missing.get(key, ()), uuid)
                continue
            self._hold(device, key, container, rows, pod)

    def _hold(
        self, device: int, key: PodKey, container: str, rows: tuple[int, ...], pod: Pod | None
    ) -> None:
        holder = Holder(
            pod=key,
            container=container,
            rows=rows,
            workload=None if pod is None else workload(pod),
        )
        self.holders[device] += (holder,)
        if pod is not None:
            self._devices[key] = tuple(sorted({*self._devices.get(key, ()), device}))
            self._namespaces[key[0]].add(device)


def _by_container(
    tenants: tuple[Tenant, ...],
) -> dict[tuple[str, PodKey, str], tuple[int, ...]]:
    grouped: dict[tuple[str, PodKey, str], tuple[int, ...]] = {}
    for row, tenant in enumerate(tenants):
        key = (tenant.device, (tenant.namespace, tenant.pod), tenant.container)
        grouped[key] = (*grouped.get(key, ()), row)
    return grouped
