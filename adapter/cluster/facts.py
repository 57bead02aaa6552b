"""All facts about the cluster, each computed when somebody asks and kept while it may be.

The sums follow every change at once; what is made of them is made at most once a second, however
many autoscalers ask, and only once for as long as nothing changes.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from adapter.cluster.asks import Ask, Asks
from adapter.cluster.demand import Demand, pending, preemption
from adapter.cluster.devices import Devices
from adapter.cluster.fragmentation import fragmentation
from adapter.cluster.freshness import AnyCache, Caches, Freshness
from adapter.cluster.pools import Pools
from adapter.cluster.quotas import quotas
from adapter.cluster.resources import PRODUCT
from adapter.cluster.rooms import Rooms
from adapter.view import View
from slicewatch.catalog.cluster import (
    DEVICES,
    FRAGMENTATION,
    NODES,
    PENDING,
    POOLS,
    PREEMPTION,
    QUOTAS,
    REQUESTED,
)
from slicewatch.catalog.model import Cluster, Metric
from slicewatch.catalog.readings.cluster import Fragmentation, Nodes, Pending, Preemption, Series
from slicewatch.kube.objects import NODE, POD, Node

REUSED_SECONDS: Final = 1.0
POOL_LABEL: Final = PRODUCT


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What is known of one origin.

    Attributes:
        reading: of the origin's type; the same object for as long as it is kept.
        read_at: as of when, in seconds since the epoch by our clock.
    """

    reading: Any
    read_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A reading, when it was made on the monotonic clock, and after how many changes."""

    reading: Any
    at: float
    changes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """How facts of one origin are made.

    Attributes:
        caches: what it is made of; all must be current.
        make: returns the reading.
        timed: it changes with time too, not with the objects of the cluster alone.
    """

    caches: tuple[AnyCache, ...]
    make: Callable[[], Any]
    timed: bool = False


class ClusterFacts:
    """The facts. Listens to the caches that it is given, which must not have been filled yet.

    Args:
        caches: what is known of the cluster.
        view: what exporters report; its clocks are ours too.
        pool_label: of nodes, that tells the pools apart.
    """

    def __init__(self, caches: Caches, view: View, *, pool_label: str = POOL_LABEL) -> None:
        self._caches = caches
        self._view = view
        self._pool_label = pool_label
        self._freshness = Freshness(max_age_seconds=view.max_age_seconds, monotonic=view.monotonic)
        self._devices, self._demand = Devices(), Demand()
        self._asks = Asks(self._demand.changed, self._devices.ask_changed, self._asked)
        self._rooms = Rooms(view, self._devices.requested_on)
        self._pools = Pools(view, self._pool_of)
        self._changes: Counter[str] = Counter()
        self._made: dict[Cluster[Any], _Made] = {}
        self._sources = self._all_sources()
        caches.pods.listen(self._asks.changed)
        caches.nodes.listen(self._node_changed)
        for cache in (caches.quotas, caches.priority_classes):
            cache.listen(partial(self._changed, cache.kind.plural))

    def fact(self, origin: Cluster[Any]) -> Fact:
        """Return what is known of an origin.

        Raises:
            OutdatedError: it is not known, or not for now; says why.
        """
        source, now = self._sources[origin], self._view.monotonic()
        age = self._freshness.age_seconds(source.caches)
        changes = sum(self._changes[cache.kind.plural] for cache in source.caches)
        made = self._made.get(origin)
        changed = made is None or source.timed or made.changes != changes
        if made is None or (changed and now - made.at >= REUSED_SECONDS):
            made = self._made[origin] = _Made(reading=source.make(), at=now, changes=changes)
        # What has not changed since it was made is true now.
        since = now - made.at if changed else 0.0
        return Fact(reading=made.reading, read_at=self._view.wall() - max(age, since))

    def waiting_in(self, namespace: str) -> list[Ask]:
        """Return the pods of a namespace that wait for devices, the oldest first."""
        found = [ask for ask in self._asks.waiting.values() if ask.namespace == namespace]
        return sorted(found, key=lambda ask: (ask.created_at or math.inf, ask.name))

    def _all_sources(self) -> dict[Cluster[Any], _Source]:
        pods, nodes = self._caches.pods, self._caches.nodes
        classes, bounds = self._caches.priority_classes, self._caches.quotas
        return {
            REQUESTED: _Source(caches=(pods,), make=self._demand.requested),
            DEVICES: _Source(caches=(pods, nodes), make=self._devices.counted),
            NODES: _Source(caches=(nodes,), make=self._schedulable),
            PENDING: _Source(caches=(pods,), make=self._pending, timed=True),
            FRAGMENTATION: _Source(caches=(pods, nodes), make=self._fragmentation, timed=True),
            PREEMPTION: _Source(caches=(pods, classes), make=self._preemption),
            QUOTAS: _Source(caches=(bounds,), make=lambda: quotas(bounds.objects.values())),
            POOLS: _Source(caches=(nodes,), make=self._pools.counted, timed=True),
        }

    def _schedulable(self) -> Nodes:
        return self._devices.nodes(self._pool_label)

    def _pending(self) -> Pending:
        return pending(self._asks.waiting.values(), self._view.wall())

    def _fragmentation(self) -> Fragmentation:
        spaces = tuple(self._devices.spaces())
        return fragmentation(self._asks.waiting.values(), spaces, self._rooms.of)

    def _preemption(self) -> Preemption:
        classes = self._caches.priority_classes.objects.values()
        return preemption(self._demand.held.sums, self._asks.waiting.values(), classes)

    def _pool_of(self, node: str) -> str:
        return self._devices.labels_of(node).get(self._pool_label, "")

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        """Apply a change of a node, unless it is one of its many signs of life."""
        if old is None or new is None or _facts_of(old) != _facts_of(new):
            self._devices.node_changed(old, new)
            self._changed(NODE.plural, old, new)

    def _asked(self, old: Ask | None, new: Ask | None) -> None:
        self._changed(POD.plural, old, new)

    def _changed(self, plural: str, _old: object, _new: object) -> None:
        self._changes[plural] += 1


def _facts_of(node: Node) -> tuple[object, ...]:
    return node.metadata.labels, node.spec, node.status


def series_of(metric: Metric[Any], fact: Fact) -> Series:
    """Return the values of a metric by the texts of its labels."""
    if metric.value is None:
        raise ValueError(f"{metric.name} has no value")
    # The catalog types values for all origins; those of clusters are of this form.
    return cast("Series", metric.value(fact.reading))
