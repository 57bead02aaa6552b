"""What is known now: the pods, and each node's latest reading, joined when first needed."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from adapter.allocation import Allocation
from adapter.cluster.pods import Pods
from adapter.history import History
from adapter.join import Join
from adapter.outcome import Absence
from adapter.sources.source import Reading, SnapshotSource, Target
from slicewatch.wire.layout import Layout

T = TypeVar("T")

Clock = Callable[[], float]

# Histories keep something every 15 s, those of so many nodes in the same second, and so forth.
NODES_OF_A_TURN: Final = 50
TURNS: Final = 16


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
        self._allocations: dict[str, tuple[int, Allocation]] = {}
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
            join = Join(self._current(reading.layout, pods_revision), reading.snapshot)
            view = NodeView(reading=reading, join=join, pods_revision=pods_revision)
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

    def _current(self, layout: Layout, pods_revision: int) -> Allocation:
        """Return who holds what, found out anew only when layout or pods have changed."""
        revision, known = self._allocations.get(layout.node, (-1, None))
        if known is None or known.layout is not layout or revision != pods_revision:
            known = Allocation(layout, self.pods.on_node(layout.node))
            self._allocations[layout.node] = pods_revision, known
        return known

    def _allocation(self, view: NodeView, layout: Layout) -> Allocation:
        if layout is view.reading.layout:
            return view.join.allocation
        return Allocation(layout, self.pods.on_node(layout.node))

    def _arrived(self, target: Target) -> None:
        """Note that something has changed, and drop what is not known any more.

        A view of a former reading would hold its whole snapshot until somebody asks again.
        """
        self.revision += 1
        reading = self.source.readings.get(target)
        if reading is not None:
            self._views.pop(reading.layout.node, None)
            self._history_of(reading.layout.node).take(reading)
            return
        speakers = self.source.speakers
        self._views = _of(speakers, self._views)
        self._allocations = _of(speakers, self._allocations)
        self._histories = _of(speakers, self._histories)

    def _history_of(self, node: str) -> History:
        known = self._histories.get(node)
        if known is None:
            turn = len(self._histories) // NODES_OF_A_TURN % TURNS
            known = self._histories[node] = History(phase=turn / TURNS)
        return known


def _of(nodes: Collection[str], known: Mapping[str, T]) -> dict[str, T]:
    return {name: one for name, one in known.items() if name in nodes}
