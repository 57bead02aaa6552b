"""The tenants of the devices, as far as they are known.

Remembers the kubelet's last answer, and its age, however long the kubelet is silent after that: a
tenant does not lose its device because a question failed.

Turning allocations into tenants is pure. What the API server says is added where it is known, and
a pod that it calls finished is left out though the kubelet may still list it; a pod that it says
nothing about is taken as it is.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from exporter.tenants.device_ids import DeviceIds, PoolDevice, Published, concerns_gpus
from exporter.tenants.offers import Offers
from exporter.tenants.protocol import Allocation, PodFacts, PodName, Versioned
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
        replicas: by uuid, as how many devices the device plugin offers a device; without those
            of which it is not known.
    """

    tenants: tuple[Tenant, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    known: bool = False
    age_seconds: float | None = None
    replicas: Mapping[str, int] = field(default_factory=dict)


_NO_FACTS: Mapping[PodName, PodFacts] = MappingProxyType({})
_NOTHING_PUBLISHED: Mapping[PoolDevice, Published] = MappingProxyType({})


def tenants_of(
    devices: tuple[Device, ...],
    allocations: Iterable[Allocation],
    *,
    pods: Mapping[PodName, PodFacts] = _NO_FACTS,
    published: Mapping[PoolDevice, Published] = _NOTHING_PUBLISHED,
) -> Holders:
    """Assign allocations to devices.

    The tenants are in the order of the devices, then by namespace, pod and container, one per
    container and device: a container that holds several replicas of a device is one tenant, whose
    ``replica`` lists them all, separated by commas. The order of the allocations does not matter.

    Args:
        devices: of this node.
        allocations: of this node; those of a pod that has finished are ignored.
        pods: what the API server says about pods of this node.
        published: what the node's ResourceSlices say about devices.
    """
    ids = DeviceIds(devices, published)
    held: dict[_Place, _Held] = {}
    unresolved: set[Unresolved] = set()
    for a in allocations:
        facts = pods.get(PodName(a.namespace, a.pod))
        if facts is not None and facts.finished:
            continue
        match = ids.find(a.resource, a.device_id, a.pool)
        if match is None:
            unresolved.add(Unresolved(resource=a.resource, device_id=a.device_id))
            continue
        place = _Place(match.device.uuid, a.namespace, a.pod, a.container)
        held.setdefault(place, _Held(facts)).add(a, match.replica)
    order = {device.uuid: row for row, device in enumerate(devices)}
    rows = sorted(held, key=lambda place: (order[place.device], *place))
    return Holders(
        tenants=tuple(held[place].tenant(place) for place in rows),
        unresolved=tuple(sorted(unresolved)),
        known=True,
    )


class _Place(NamedTuple):
    device: str
    namespace: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class _Held:
    """By which resources, replicas and claims one container holds one device."""

    facts: PodFacts | None
    resources: set[str] = field(default_factory=set)
    replicas: set[str] = field(default_factory=set)
    claims: set[str] = field(default_factory=set)
    claim_namespaces: set[str] = field(default_factory=set)

    def add(self, a: Allocation, replica: str) -> None:
        self.resources.add(a.resource)
        self.replicas.add(replica or a.share)
        self.claims.add(a.claim)
        self.claim_namespaces.add(a.claim_namespace)

    def tenant(self, place: _Place) -> Tenant:
        facts = self.facts or PodFacts(uid="")
        return Tenant(
            **place._asdict(),
            resource=_joined(self.resources),
            replica=_joined(self.replicas),
            claim=_joined(self.claims),
            claim_namespace=_joined(self.claim_namespaces),
            uid=facts.uid,
            labels=facts.labels,
            workload_kind=facts.workload_kind,
            workload=facts.workload,
        )


def _joined(texts: set[str]) -> str:
    """Return the texts, separated by commas; shorter ones first, so that numbers are in order."""
    return ",".join(sorted(texts - {""}, key=lambda text: (len(text), text)))


class TenantMap:
    """The kubelet's last good answer. Belongs to one event loop and is not locked.

    Attributes:
        version: counts up with every answer that differs from the previous one, the first
            included.
        pods: what the API server says about pods of this node. Whoever follows it replaces the
            content; empty until then.
        published: the same for the devices of the node's ResourceSlices.
        offers: what the plugins of the node offer.
        devices_changed: set when ``resolve`` sees other devices than before, so that the kubelet
            is polled again: allocations may have changed with them.
    """

    def __init__(self) -> None:
        self.version = 0
        self.pods: Versioned[PodName, PodFacts] = Versioned()
        self.published: Versioned[PoolDevice, Published] = Versioned()
        self.devices_changed = asyncio.Event()
        self._allocations: frozenset[Allocation] | None = None
        self._answered_at: float | None = None
        self._devices: tuple[Device, ...] = ()
        self._resolved_for = (0, 0, 0)
        self._holders = Holders()
        self.offers = Offers()
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

        Costs one comparison while nothing of what they are made from has changed.
        """
        made_from = (self.version, self.pods.version, self.published.version)
        if devices != self._devices:
            self._devices = devices
            self.devices_changed.set()
        elif made_from == self._resolved_for:
            return self._holders.tenants
        self._resolved_for = made_from
        found = tenants_of(
            devices,
            self._allocations or (),
            pods=self.pods.current,
            published=self.published.current,
        )
        # Of all that changes around the pods of a node, little changes its tenants.
        if found != self._holders:
            self._holders = found
        self._say_unresolved()
        return self._holders.tenants

    def holders(self, devices: tuple[Device, ...], now: float) -> Holders:
        """Return what is known about who holds these devices, at a time of ``take``'s clock."""
        self.resolve(devices)
        return replace(
            self._holders,
            known=self.known,
            age_seconds=self.age_seconds(now),
            replicas=self.offers.replicas(devices),
        )

    def _say_unresolved(self) -> None:
        # Without a driver there is nothing to resolve against, which is logged elsewhere.
        if not self._devices:
            return
        now = frozenset(self._holders.unresolved)
        if new := sorted(now - self._said):
            examples = [f"{one.resource} {one.device_id}" for one in new[:LOGGED_IDS]]
            log.warning("the kubelet allocated unknown devices", count=len(new), examples=examples)
        self._said = now
