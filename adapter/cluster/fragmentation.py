"""What is free and still of no use to those who wait. Pure.

Only devices and node selectors are compared. What else may keep a pod from a node (other
resources, taints, affinity) is the scheduler's to say, and it does so in the pod's reason.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from adapter.cluster.asks import Ask
from adapter.cluster.devices import Space
from adapter.cluster.resources import profile_of
from slicewatch.catalog.readings.cluster import Fragmentation

Shape = tuple[tuple[tuple[str, int], ...], tuple[tuple[str, str], ...]]
"""What decides where a pod fits: its devices and its node selector."""

RoomOf = Callable[[str], Mapping[str, int]]


def fragmentation(
    waiting: Iterable[Ask], spaces: Collection[Space], room_of: RoomOf
) -> Fragmentation:
    """Return the stranded devices, and the pods that another partition would help.

    Args:
        waiting: pods that ask for devices and have no node.
        spaces: nodes that take pods.
        room_of: how many MIG devices of each profile would fit on a node if its free parts were
            cut anew; nothing where that is unknown.
    """
    asking = [ask for ask in waiting if ask.schedulable]
    shapes = {shape_of(ask) for ask in asking}
    helped = {shape for shape in shapes if _helped(shape, spaces, room_of)}
    pods: Counter[tuple[str, ...]] = Counter()
    for ask in asking:
        if shape_of(ask) in helped:
            resource = ask.devices[0][0]
            pods[ask.namespace, resource, profile_of(resource)] += 1
    return Fragmentation(stranded=dict(stranded(shapes, spaces)), repartition_pods=dict(pods))


def shape_of(ask: Ask) -> Shape:
    """Return what decides where a pod fits."""
    return ask.devices, ask.selector


def stranded(shapes: Collection[Shape], spaces: Iterable[Space]) -> Counter[tuple[str, ...]]:
    """Return the free devices that no waiting pod could use on their nodes; none if none waits."""
    found: Counter[tuple[str, ...]] = Counter()
    if not shapes:
        return found
    keys = sorted({key for _, selector in shapes for key, _ in selector})
    # Nodes that are alike are judged once.
    judged: dict[tuple[object, ...], frozenset[str]] = {}
    for space in spaces:
        labels = space.node.metadata.labels
        alike = (tuple(space.free.items()), *(labels.get(key) for key in keys))
        if alike not in judged:
            judged[alike] = frozenset(
                resource
                for shape in shapes
                if _selects(shape, space) and _fits(shape, space)
                for resource, _ in shape[0]
            )
        for use in space.uses:
            if use.spare and use.group.resource not in judged[alike]:
                found[use.group] += use.spare
    return found


def _helped(shape: Shape, spaces: Iterable[Space], room_of: RoomOf) -> bool:
    """Tell whether a pod that fits nowhere would, on one node, if that were cut anew."""
    (resource, number), *more = shape[0]
    profile = profile_of(resource)
    if not profile or more:
        return False
    possible = [space for space in spaces if _selects(shape, space)]
    return not any(_fits(shape, space) for space in possible) and any(
        room_of(space.node.metadata.name).get(profile, 0) >= number for space in possible
    )


def _selects(shape: Shape, space: Space) -> bool:
    return all(space.node.metadata.labels.get(key) == value for key, value in shape[1])


def _fits(shape: Shape, space: Space) -> bool:
    return all(space.free.get(resource, 0) >= number for resource, number in shape[0])
