"""What nodes offer and how much of it is taken: sums that follow the nodes and the pods."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from adapter.cluster.asks import Ask
from adapter.cluster.resources import MIG_CONFIG, PREFIX, PRODUCT, Group, counts, group_of
from adapter.cluster.tally import Tally
from slicewatch.catalog.readings.cluster import Devices as Counted
from slicewatch.catalog.readings.cluster import Nodes, Series
from slicewatch.kube.objects import Node

REPLICAS: Final = f"{PREFIX}gpu.replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The devices of one resource on one node.

    Attributes:
        open: the node takes pods.
    """

    group: Group
    allocatable: int
    requested: int
    open: bool

    @property
    def spare(self) -> int:
        """How many nobody has requested; none where more are requested than there are."""
        return max(0, self.allocatable - self.requested)

    @property
    def overcommitted(self) -> int:
        """How many are requested beyond those that there are."""
        return max(0, self.requested - self.allocatable)


def uses(node: Node | None, requested: Mapping[str, int]) -> tuple[Use, ...]:
    """Return the use of every resource that a node offers or that pods on it have requested.

    A node that does not exist, any more or yet, offers nothing.
    """
    offered = {} if node is None else counts(node.status.allocatable)
    labels = {} if node is None else node.metadata.labels
    return tuple(
        Use(
            group=group_of(resource, labels),
            allocatable=offered.get(resource, 0),
            requested=requested.get(resource, 0),
            open=node is not None and not node.spec.unschedulable,
        )
        for resource in sorted({*offered, *requested})
        if offered.get(resource) or requested.get(resource)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A node that takes pods, and what is free on it by resource."""

    node: Node
    uses: tuple[Use, ...]
    free: Mapping[str, int]


class Devices:
    """The devices of all nodes; ``node_changed`` and ``ask_changed`` are listeners."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._requested: dict[str, Tally[str]] = {}
        self._uses: dict[str, tuple[Use, ...]] = {}
        self._present: Tally[Group] = Tally()
        self._sums: Tally[tuple[str, Group]] = Tally()
        self._overcommitted: Tally[tuple[str, ...]] = Tally()

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        """Apply a change of a node; None is absence."""
        if old is not None:
            self._nodes.pop(old.metadata.name, None)
        if new is not None:
            self._nodes[new.metadata.name] = new
        for name in {node.metadata.name for node in (old, new) if node is not None}:
            self._update(name)

    def ask_changed(self, old: Ask | None, new: Ask | None) -> None:
        """Apply a change of what a pod asks for; None is absence."""
        for name in {ask.node for ask in (old, new) if ask is not None and ask.node}:
            requested = self._requested.setdefault(name, Tally())
            requested.replace(_on(name, old), _on(name, new))
            if not requested.sums:
                del self._requested[name]
            self._update(name)

    def labels_of(self, name: str) -> Mapping[str, str]:
        """Return the labels of a node; none of one that does not exist."""
        node = self._nodes.get(name)
        return {} if node is None else node.metadata.labels

    def requested_on(self, name: str) -> Mapping[str, int]:
        """Return how many devices the pods of a node request, by resource."""
        requested = self._requested.get(name)
        return {} if requested is None else requested.sums

    def spaces(self) -> Iterator[Space]:
        """Yield the nodes that offer devices and take pods."""
        for name, found in self._uses.items():
            node = self._nodes.get(name)
            if node is not None and not node.spec.unschedulable:
                free = {use.group.resource: use.spare for use in found}
                yield Space(node=node, uses=found, free=free)

    def counted(self) -> Counted:
        """Return all sums."""
        return Counted(
            allocatable=self._series("allocatable"),
            requested=self._series("requested"),
            free=self._series("free"),
            cordoned=self._series("cordoned"),
            overcommitted=dict(self._overcommitted.sums),
        )

    def nodes(self, pool_label: str) -> Nodes:
        """Return the nodes that offer devices; ``pool_label`` is the label that names their pool."""
        return Nodes(schedulable=dict(self._schedulable(pool_label)))

    def _series(self, kind: str) -> Series:
        return {group: self._sums.sums.get((kind, group), 0) for group in self._present.sums}

    def _schedulable(self, pool_label: str) -> Iterator[tuple[tuple[str, ...], float]]:
        for name, found in self._uses.items():
            node = self._nodes.get(name)
            if node is not None and any(use.allocatable for use in found):
                labels = node.metadata.labels
                wanted = (PRODUCT, MIG_CONFIG, REPLICAS, pool_label)
                key = (name, *(labels.get(label, "") for label in wanted))
                yield key, float(not node.spec.unschedulable)

    def _update(self, name: str) -> None:
        """Replace what a node contributes to the sums."""
        old = self._uses.pop(name, ())
        new = uses(self._nodes.get(name), self.requested_on(name))
        if new:
            self._uses[name] = new
        self._present.replace(_groups(old), _groups(new))
        self._sums.replace(_parts(old), _parts(new))
        self._overcommitted.replace(_excess(name, old), _excess(name, new))


def _on(node: str, ask: Ask | None) -> dict[str, int]:
    return dict(ask.devices) if ask is not None and ask.node == node else {}


def _groups(found: tuple[Use, ...]) -> dict[Group, int]:
    return {use.group: 1 for use in found}


def _parts(found: tuple[Use, ...]) -> dict[tuple[str, Group], int]:
    parts: dict[tuple[str, Group], int] = {}
    for use in found:
        parts["allocatable", use.group] = use.allocatable
        parts["requested", use.group] = use.requested
        parts["free" if use.open else "cordoned", use.group] = use.spare
    return parts


def _excess(name: str, found: tuple[Use, ...]) -> dict[tuple[str, ...], int]:
    return {(name, use.group.resource): use.overcommitted for use in found if use.overcommitted}
