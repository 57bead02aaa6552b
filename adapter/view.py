"""What is known now: the pods, and of each node the latest reading, joined when first asked for."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from adapter.allocation import Allocation
from adapter.cluster.pods import Pods
from adapter.join import Join
from adapter.sources.protocol import Reading, SnapshotSource, Target

Clock = Callable[[], float]


@dataclass(slots=True, kw_only=True)
class NodeView:
    """One node as of one reading and one state of its pods.

    Attributes:
        kept: what others have computed from it; ends with it.
    """

    reading: Reading
    join: Join
    pods_revision: int
    kept: dict[Any, dict[Any, Any]] = field(default_factory=dict)


class View:
    """Node views by name, renewed when a reading arrives or a pod of the node changes.

    Attributes:
        max_age_seconds: readings that are older are not served.
        revision: counts readings; with that of the pods it tells whether an answer still holds.
    """

    def __init__(
        self,
        pods: Pods,
        source: SnapshotSource,
        *,
        max_age_seconds: float,
        monotonic: Clock = time.monotonic,
        wall: Clock = time.time,
    ) -> None:
        self.pods = pods
        self.source = source
        self.max_age_seconds = max_age_seconds
        self.monotonic = monotonic
        self.wall = wall
        self.revision = 0
        self._targets: dict[str, Target] = {}
        self._views: dict[str, NodeView] = {}
        source.listen(self._arrived)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that an exporter tells about, sorted."""
        return tuple(sorted(self._targets))

    def told_by(self, node: str) -> Target | None:
        """Return the exporter that tells about a node."""
        return self._targets.get(node)

    def node(self, name: str) -> NodeView | None:
        """Return the newest view of a node; None while no exporter tells about it."""
        target = self._targets.get(name)
        if target is None:
            return None
        reading = self.source.readings[target]
        pods_revision = self.pods.node_revision(name)
        view = self._views.get(name)
        if view is None or view.reading is not reading or view.pods_revision != pods_revision:
            view = self._renewed(name, view, reading, pods_revision)
            self._views[name] = view
        return view

    def expires_at(self, view: NodeView, age_seconds: float) -> float:
        """Return until when, on the monotonic clock, a value of an age at sending is served."""
        return view.reading.received_at + self.max_age_seconds - age_seconds

    def read_at(self, view: NodeView, age_seconds: float) -> float:
        """Return when a value was read, on the wall clock of this process."""
        since = self.monotonic() - view.reading.received_at
        return self.wall() - since - age_seconds

    def _renewed(
        self, name: str, old: NodeView | None, reading: Reading, pods_revision: int
    ) -> NodeView:
        """Join anew; who holds what is kept while neither layout nor pods have changed."""
        if (
            old is not None
            and old.reading.layout is reading.layout
            and old.pods_revision == pods_revision
        ):
            allocation = old.join.allocation
        else:
            allocation = Allocation(reading.layout, self.pods.on_node(name))
        join = Join(allocation, reading.snapshot)
        return NodeView(reading=reading, join=join, pods_revision=pods_revision)

    def _arrived(self, target: Target) -> None:
        """Let a node be told by the exporter that spoke last; forget what went."""
        self.revision += 1
        reading = self.source.readings.get(target)
        if reading is not None:
            if self._targets.get(reading.layout.node) != target:
                self._forget(target)
            self._targets[reading.layout.node] = target
        else:
            self._forget(target)

    def _forget(self, target: Target) -> None:
        for name in [n for n, told_by in self._targets.items() if told_by == target]:
            del self._targets[name]
            self._views.pop(name, None)
