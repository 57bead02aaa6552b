"""What is known now: the pods, and each node's latest reading, joined when first needed."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from adapter.allocation import Allocation
from adapter.cluster.pods import Pods
from adapter.history import History
from adapter.join import Join
from adapter.outcome import Absence
from adapter.sources.source import Reading, SnapshotSource, Target
from slicewatch.wire.layout import Layout

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """What a node's last seconds are made of.

    Attributes:
        now_seconds: the time that the latest reading stands for.
        earlier: those before it, joined with the present pods, each with its time.
    """

    now_seconds: float
    earlier: tuple[tuple[float, Join], ...]


@dataclass(slots=True, kw_only=True)
class NodeView:
    """One node as of one reading and one state of its pods.

    Attributes:
        tiles: by how many seconds they are to cover.
        cache: what others have computed from it; discarded with it.
    """

    reading: Reading
    join: Join
    pods_revision: int
    tiles: dict[float, Tiles] = field(default_factory=dict)
    cache: dict[Any, dict[Any, Any]] = field(default_factory=dict)


class View:
    """Node views by name, renewed when a reading arrives or a pod of the node changes.

    Attributes:
        max_age_seconds: readings older than this are not served.
        revision: counts readings; together with that of the pods, it dates an answer.
        dropped: how many objects were left out of answers, by the reason.
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
        self.dropped: Counter[Absence] = Counter()
        self._views: dict[str, NodeView] = {}
        self._histories: dict[str, History] = {}
        source.listen(self._arrived)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that an exporter reports for, sorted."""
        return tuple(sorted(self.source.speakers))

    def exporter_of(self, node: str) -> Target | None:
        """Return the exporter that reports for a node."""
        return self.source.speakers.get(node)

    def node(self, name: str) -> NodeView | None:
        """Return the newest view of a node; None while no exporter reports for it."""
        target = self.source.speakers.get(name)
        if target is None:
            return None
        reading = self.source.readings[target]
        pods_revision = self.pods.node_revision(name)
        view = self._views.get(name)
        if view is None or view.reading is not reading or view.pods_revision != pods_revision:
            view = self._renewed(name, view, reading, pods_revision)
            self._views[name] = view
        return view

    def tiles(self, view: NodeView, seconds: float) -> Tiles:
        """Return what is known of the seconds before the latest reading of a node."""
        known = view.tiles.get(seconds)
        if known is None:
            reading = view.reading
            history = self._histories.get(reading.layout.node, History())
            span = history.span(reading.received_at, seconds)
            known = view.tiles[seconds] = Tiles(
                now_seconds=span.now_seconds,
                earlier=tuple(
                    (stands_for, Join(self._allocation(view, entry.layout), entry.snapshot()))
                    for stands_for, entry in span.earlier
                ),
            )
        return known

    def expires_at(self, view: NodeView, age_seconds: float) -> float:
        """Return when a value of this age at sending becomes too old, on the monotonic clock."""
        return view.reading.received_at + self.max_age_seconds - age_seconds

    def read_at(self, view: NodeView, age_seconds: float) -> float:
        """Return when a value was read, on this process's wall clock."""
        since = self.monotonic() - view.reading.received_at
        return self.wall() - since - age_seconds

    def _renewed(
        self, name: str, old: NodeView | None, reading: Reading, pods_revision: int
    ) -> NodeView:
        """Join again; the allocation is reused while neither layout nor pods have changed."""
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

    def _allocation(self, view: NodeView, layout: Layout) -> Allocation:
        if layout is view.reading.layout:
            return view.join.allocation
        return Allocation(layout, self.pods.on_node(layout.node))

    def _arrived(self, target: Target) -> None:
        """Note that something has changed; drop what is known of nodes that nobody speaks for now."""
        self.revision += 1
        reading = self.source.readings.get(target)
        if reading is not None:
            self._histories.setdefault(reading.layout.node, History()).take(reading)
            return
        speakers = self.source.speakers
        self._views = {name: view for name, view in self._views.items() if name in speakers}
        self._histories = {name: one for name, one in self._histories.items() if name in speakers}
