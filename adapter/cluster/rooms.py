"""How many MIG devices of each profile would fit on a node if what is free were cut anew.

Which part of which GPU is free only exporters know; of a node without one nothing is assumed.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from adapter.allocation import Allocation
from adapter.cluster.resources import profile_of
from adapter.view import View
from slicewatch.hardware import BY_NVML_NAME, Placement, room_for
from slicewatch.wire.layout import Device

Requested = Callable[[str], Mapping[str, int]]
NOTHING: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """What was found for an allocation: the devices that are held, and the room, by profile."""

    allocation: Allocation
    held: Counter[str]
    room: Counter[str]


class Rooms:
    """The room on every node, computed again when who holds what there has changed.

    Args:
        view: what exporters report.
        requested: how many devices the pods of a node request, by resource.
    """

    def __init__(self, view: View, requested: Requested) -> None:
        self._view = view
        self._requested = requested
        self._cuts: dict[str, _Cut] = {}

    def of(self, node: str) -> Mapping[str, int]:
        """Return the room by profile; nothing where it is not known who holds what.

        A pod may have been given a node whose exporter does not list it yet: then it is unknown
        where on the node its device is.
        """
        seen = self._view.node(node)
        if seen is None or not seen.join.layout.tenants_known:
            self._cuts.pop(node, None)
            return NOTHING
        allocation = seen.join.allocation
        cut = self._cuts.get(node)
        if cut is None or cut.allocation is not allocation:
            cut = self._cuts[node] = _cut(allocation)
        for resource, number in self._requested(node).items():
            profile = profile_of(resource)
            if profile and cut.held[profile] < number:
                return NOTHING
        return cut.room


def _cut(allocation: Allocation) -> _Cut:
    held: Counter[str] = Counter()
    room: Counter[str] = Counter()
    devices = allocation.layout.devices
    for gpu in devices:
        if gpu.mig_enabled and not gpu.is_mig:
            staying = [
                device
                for row, device in enumerate(devices)
                if device.parent == gpu.uuid
                and (allocation.holders[row] or allocation.guests[row])
            ]
            held.update(device.profile for device in staying)
            room.update(_room(gpu, staying))
    return _Cut(allocation=allocation, held=held, room=room)


def _room(gpu: Device, staying: list[Device]) -> dict[str, int]:
    """Return what fits on a GPU beside the instances that stay; nothing if that is unknown."""
    model = BY_NVML_NAME.get(gpu.model)
    taken = [
        Placement(device.placement_start, device.placement_size)
        for device in staying
        if device.placement_start is not None and device.placement_size is not None
    ]
    if model is None or len(taken) < len(staying):
        return {}
    return {
        profile.name: room_for(profile, taken, sum(d.profile == profile.name for d in staying))
        for profile in model.mig_profiles
    }
