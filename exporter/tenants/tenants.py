"""The tenants of the devices, as far as they are known.

Remembers the kubelet's last answer, and its age, however long the kubelet is silent after that: a
tenant does not lose its device because a question failed.

Turning allocations into tenants is pure and takes them as they are. Pods that have finished but
are still listed are removed by the reader who joins the tenants with pods.
"""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from exporter.tenants.device_ids import DeviceIds, concerns_gpus
from exporter.tenants.protocol import Allocation
from slicewatch.service import logs
from slicewatch.wire.layout import Device, Tenant

log = logs.logger(__name__)

# A kubelet may list any number of ids that nobody here knows.
LOGGED_IDS = 5


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Unresolved:
    """A device id allocated by the kubelet that matches none of the devices."""

    resource: str
    device_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """Who holds the devices, by the kubelet's last answer.

    Attributes:
        tenants: sorted; see ``tenants_of``.
        unresolved: ids that match none of the devices, sorted.
        known: the kubelet has answered; if not, no tenants does not mean free devices.
        age_seconds: how long ago it last answered; None if it never did.
    """

    tenants: tuple[Tenant, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    known: bool = False
    age_seconds: float | None = None


def tenants_of(devices: tuple[Device, ...], allocations: Iterable[Allocation]) -> Holders:
    """Assign allocations to devices.

    The tenants are in the order of the devices, then by namespace, pod and container, one per
    container and device: a container that holds several replicas of a device is one tenant, whose
    ``replica`` lists them all, separated by commas. The order of the allocations does not matter.
    """
    ids = DeviceIds(devices)
    held: dict[tuple[str, str, str, str], _Held] = {}
    unresolved: set[Unresolved] = set()
    for a in allocations:
        match = ids.find(a.resource, a.device_id)
        if match is None:
            unresolved.add(Unresolved(resource=a.resource, device_id=a.device_id))
            continue
        key = (match.device.uuid, a.namespace, a.pod, a.container)
        held.setdefault(key, _Held(set(), set())).add(a.resource, match.replica or a.share)
    order = {device.uuid: row for row, device in enumerate(devices)}
    rows = sorted(held, key=lambda key: (order[key[0]], *key[1:]))
    return Holders(
        tenants=tuple(_tenant(key, held[key]) for key in rows),
        unresolved=tuple(sorted(unresolved)),
        known=True,
    )


@dataclass(frozen=True, slots=True)
class _Held:
    """By which resources and replicas one container holds one device."""

    resources: set[str]
    replicas: set[str]

    def add(self, resource: str, replica: str) -> None:
        self.resources.add(resource)
        if replica:
            self.replicas.add(replica)


def _tenant(key: tuple[str, str, str, str], held: _Held) -> Tenant:
    device, namespace, pod, container = key
    return Tenant(
        device=device,
        namespace=namespace,
        pod=pod,
        container=container,
        resource=",".join(sorted(held.resources)),
        replica=",".join(sorted(held.replicas, key=lambda replica: (len(replica), replica))),
    )


class TenantMap:
    """The kubelet's last good answer. Belongs to one event loop and is not locked.

    Attributes:
        version: counts up with every answer that differs from the previous one, the first
            included; while it and the devices stay the same, so do the tenants.
        devices_changed: set when ``resolve`` sees other devices than before, so that the kubelet
            is polled again: allocations may have changed with them.
    """

    def __init__(self) -> None:
        self.version = 0
        self.devices_changed = asyncio.Event()
        self._allocations: frozenset[Allocation] | None = None
        self._answered_at: float | None = None
        self._devices: tuple[Device, ...] = ()
        self._resolved_version = 0
        self._holders = Holders()
        self._said: frozenset[Unresolved] = frozenset()

    @property
    def known(self) -> bool:
        """Tell whether the kubelet ever answered; if not, the devices need not be free."""
        return self._allocations is not None

    @property
    def unresolved(self) -> tuple[Unresolved, ...]:
        """Return the ids that the last ``resolve`` could not match with a device."""
        return self._holders.unresolved

    def age_seconds(self, now: float) -> float | None:
        """Return how long ago the kubelet last answered; None if it never did.

        Args:
            now: on the clock that ``take`` was given.
        """
        return None if self._answered_at is None else max(0.0, now - self._answered_at)

    def take(self, allocations: Collection[Allocation], now: float) -> None:
        """Replace the answer. Devices of other vendors are ignored.

        Args:
            allocations: everything that is allocated on the node.
            now: when that was the case, in seconds of a clock that never goes back.
        """
        held = frozenset(a for a in allocations if concerns_gpus(a.resource))
        self._answered_at = now
        if held != self._allocations:
            self._allocations = held
            self.version += 1

    def resolve(self, devices: tuple[Device, ...]) -> tuple[Tenant, ...]:
        """Return who holds these devices, by the last answer; empty while nothing is known.

        Costs one comparison while neither the answer nor the devices have changed.
        """
        if devices != self._devices:
            self._devices = devices
            self.devices_changed.set()
        elif self.version == self._resolved_version:
            return self._holders.tenants
        self._resolved_version = self.version
        self._holders = tenants_of(devices, self._allocations or ())
        self._say_unresolved()
        return self._holders.tenants

    def holders(self, devices: tuple[Device, ...], now: float) -> Holders:
        """Return what is known about who holds these devices, at a time of ``take``'s clock."""
        self.resolve(devices)
        return replace(self._holders, known=self.known, age_seconds=self.age_seconds(now))

    def _say_unresolved(self) -> None:
        # Without a driver there is nothing to resolve against, which is logged elsewhere.
        if not self._devices:
            return
        now = frozenset(self._holders.unresolved)
        if new := sorted(now - self._said):
            examples = [f"{one.resource} {one.device_id}" for one in new[:LOGGED_IDS]]
            log.warning("the kubelet allocated unknown devices", count=len(new), examples=examples)
        self._said = now
