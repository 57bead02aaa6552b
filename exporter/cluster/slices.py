"""The ResourceSlices of this node: how NVIDIA's DRA driver describes the devices of its pools."""

from collections.abc import Iterable

from exporter.tenants.device_ids import DRA_DRIVER, PoolDevice, Published
from exporter.tenants.protocol import Versioned
from slicewatch.kube import objects
from slicewatch.kube.objects import ResourceSlice


class SliceFeed:
    """Keeps what is published up to date; ``changed`` is the listener of a cache of slices.

    Args:
        published: where to put it.
    """

    def __init__(self, published: Versioned[PoolDevice, Published]) -> None:
        self._published = published
        self._slices: dict[tuple[str, str], ResourceSlice] = {}

    def changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        """Apply one change; None is absence."""
        if old is not None:
            del self._slices[old.key]
        if new is not None:
            self._slices[new.key] = new
        self._published.replace(published(self._slices.values()))


def published(slices: Iterable[ResourceSlice]) -> dict[PoolDevice, Published]:
    """Return the devices of NVIDIA's DRA driver in the newest generation of each pool.

    A driver publishes a pool in as many slices as it needs, and replaces them one by one under a
    higher generation: what is left of a lower one is no longer offered.
    """
    ours = [one.spec for one in slices if one.spec.driver == DRA_DRIVER]
    newest: dict[str, int] = {}
    for spec in ours:
        newest[spec.pool.name] = max(spec.pool.generation, newest.get(spec.pool.name, 0))
    return {
        PoolDevice(spec.pool.name, device.name): _described(device)
        for spec in ours
        if spec.pool.generation == newest[spec.pool.name]
        for device in spec.devices
    }


def _described(device: objects.PublishedDevice) -> Published:
    return Published(
        uuid=_text(device, "uuid"),
        parent=_text(device, "parentUUID"),
        profile=_text(device, "profile"),
    )


def _text(device: objects.PublishedDevice, name: str) -> str:
    """Return an attribute; the driver's own may be written with its domain or without."""
    attributes = device.attributes
    found = attributes.get(name) or attributes.get(f"{DRA_DRIVER}/{name}")
    return found.string if found else ""
