"""Which device of the node a device id of the kubelet refers to.

Every plugin names devices in its own way. The names that a device can have are computed once for
a set of devices, so that an id is looked up and never interpreted: a name that two devices would
share belongs to neither, and an id that is not a known name stays unresolved. Deliberately so are
HAMi's ``<uuid>-<n>``, which does not tell which device the container really got, and the PCI
addresses of network plugins, which are not GPUs.

What the DRA driver has published about a device counts more than its name: a name that was
published with a uuid that is not here is not looked for under the name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from slicewatch.wire.layout import Device

PLUGIN_PREFIX: Final = "nvidia.com/"
DRA_DRIVER: Final = "gpu.nvidia.com"

# Under other NVIDIA resource names a bare number may be anything: KubeVirt's plugin, for one,
# lists IOMMU groups.
INDEXED_RESOURCES: Final = frozenset({"nvidia.com/gpu", "nvidia.com/gpu.shared"})

# Replicas of a shared device: NVIDIA's plugin writes `<id>::<n>`, GKE's `<id>/vgpu<n>`.
_REPLICA = re.compile(r"(?P<device>.+)(?:::|/vgpu)(?P<replica>[0-9]+)")

# NVIDIA's DRA driver names a MIG device by GPU minor, profile and placement. Dynamic devices are
# `gpu-0-mig-1g10gb-19-4` (profile, its number, start), older static ones `gpu-0-mig-19-4-1`
# (number, start, size). We do not know the profile number of a device, and the rest is enough.
_DRA_BY_PROFILE = re.compile(r"(gpu-[0-9]+-mig-[0-9]+g.+)-[0-9]+-([0-9]+)")
_DRA_BY_SIZE = re.compile(r"(gpu-[0-9]+-mig)-[0-9]+-([0-9]+-[0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A resolved id.

    Attributes:
        replica: number of the replica of a shared device; empty for the whole device.
    """

    device: Device
    replica: str = ""


class PoolDevice(NamedTuple):
    """A device of the DRA driver: its name is unique in its pool."""

    pool: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """How the DRA driver's ResourceSlices describe a device; empty is not said.

    Attributes:
        uuid: of a GPU or an existing MIG device. One that is only made when it is claimed has
            none, but a parent and a profile.
        parent: uuid of the GPU that a MIG device is part of.
    """

    uuid: str = ""
    parent: str = ""
    profile: str = ""


def concerns_gpus(resource: str) -> bool:
    """Tell whether devices of this resource, or of this DRA driver, may be NVIDIA GPUs."""
    return resource.startswith(PLUGIN_PREFIX) or resource == DRA_DRIVER


class DeviceIds:
    """All names of a set of devices; the cost of a look-up does not depend on their number.

    Args:
        devices: of this node.
        published: what is known of the node's ResourceSlices, if they are followed.
    """

    def __init__(
        self, devices: Iterable[Device], published: Mapping[PoolDevice, Published] | None = None
    ) -> None:
        known = tuple(devices)
        self._published = published or {}
        self._described = _unambiguous((n, d) for d in known for n in _described_names(d))
        minors = {d.uuid: d.minor for d in known if not d.is_mig}
        self._plugin = _unambiguous((n, d) for d in known for n in _plugin_names(d, minors))
        self._claimed = _unambiguous((n, d) for d in known for n in _claim_names(d, minors))
        self._indexed = _unambiguous((str(d.gpu), d) for d in known if not d.is_mig)

    def find(self, resource: str, device_id: str, pool: str = "") -> Match | None:
        """Return the device that ``device_id`` of ``resource`` refers to, or None.

        Understands, each with or without a replica: ``GPU-…``, ``MIG-…``, ``MIG-GPU-…/gi/ci``,
        GKE's ``nvidia0`` and ``nvidia0/gi3``, and ``0`` of ``INDEXED_RESOURCES``; of the DRA
        driver, whatever its pools have published, and its names ``gpu-0`` and ``gpu-0-mig-…``.
        """
        if resource == DRA_DRIVER:
            return _matched(self._claim(PoolDevice(pool, device_id)))
        if not concerns_gpus(resource):
            return None
        if split := _REPLICA.fullmatch(device_id):
            return _matched(self._find(resource, split["device"]), split["replica"])
        return _matched(self._find(resource, device_id))

    def _claim(self, claimed: PoolDevice) -> Device | None:
        plain = _without_profile_number(claimed.name)
        published = self._published.get(claimed, Published())
        if published.uuid:
            return self._described.get(published.uuid)
        if published.parent:
            start = plain.rpartition("@")[2]
            return self._described.get(_place(published.parent, published.profile, start))
        return self._claimed.get(plain)

    def _find(self, resource: str, name: str) -> Device | None:
        device = self._plugin.get(name)
        if device is None and resource in INDEXED_RESOURCES:
            return self._indexed.get(name)
        return device


def _matched(device: Device | None, replica: str = "") -> Match | None:
    return None if device is None else Match(device=device, replica=replica)


def _plugin_names(device: Device, minors: dict[str, int | None]) -> Iterator[str]:
    """Yield what device plugins call a device."""
    yield device.uuid
    minor = minors.get(device.parent or device.uuid)
    gi, ci = device.gpu_instance, device.compute_instance
    if not device.is_mig:
        if minor is not None:
            yield f"nvidia{minor}"
        return
    if gi is not None and ci is not None:
        yield f"MIG-{device.parent}/{gi}/{ci}"
    # GKE allocates GPU instances, and opens compute instance 0 of each.
    if minor is not None and gi is not None and not ci:
        yield f"nvidia{minor}/gi{gi}"


def _claim_names(device: Device, minors: dict[str, int | None]) -> Iterator[str]:
    """Yield what NVIDIA's DRA driver calls a device, without the profile number."""
    minor = minors.get(device.parent or device.uuid)
    if minor is None:
        return
    if not device.is_mig:
        yield f"gpu-{minor}"
    elif device.placement_start is not None:
        if device.profile:
            yield f"gpu-{minor}-mig-{_dns_form(device.profile)}@{device.placement_start}"
        if device.placement_size is not None:
            yield f"gpu-{minor}-mig@{device.placement_start}-{device.placement_size}"


def _described_names(device: Device) -> Iterator[str]:
    """Yield what the attributes of a published device can say about it."""
    yield device.uuid
    if device.is_mig and device.placement_start is not None:
        yield _place(device.parent, device.profile, str(device.placement_start))


def _place(parent: str, profile: str, start: str) -> str:
    return f"{parent}/{profile}@{start}"


def _without_profile_number(name: str) -> str:
    if found := _DRA_BY_PROFILE.fullmatch(name) or _DRA_BY_SIZE.fullmatch(name):
        return f"{found[1]}@{found[2]}"
    return name


def _dns_form(profile: str) -> str:
    """Return ``1g.10gb+me`` as ``1g10gb-me``, the way the driver writes it into a name."""
    return re.sub(r"[^a-z0-9-]", "-", profile.replace(".", "").lower()).strip("-")


def _unambiguous(named: Iterable[tuple[str, Device]]) -> dict[str, Device]:
    found: dict[str, Device] = {}
    twice: set[str] = set()
    for name, device in named:
        if found.setdefault(name, device) is not device:
            twice.add(name)
    return {name: device for name, device in found.items() if name not in twice}
