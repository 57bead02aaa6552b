"""What the exporter asks a kubelet, real or fake.

A source only reports: ``device_ids`` decides which device an id refers to, and ``tenants`` what
is remembered while a source is silent.
"""

from typing import Protocol

import msgspec


class Allocation(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One device id that is allocated to a container, as the kubelet spells it.

    Attributes:
        resource: resource of the device plugin, such as ``nvidia.com/gpu``; of a device that came
            through a resource claim the name of its DRA driver, which never has a slash.
        device_id: the plugin's id, or the DRA driver's name of the device.
        share: of a claimed device, the id of the share of it; empty for the whole.
    """

    namespace: str
    pod: str
    container: str
    resource: str
    device_id: str
    share: str = ""


class PodResourcesError(Exception):
    """The kubelet did not list allocations; the message is for people, retrying is safe."""


class UnreachableError(PodResourcesError):
    """Nothing answers on the socket: no kubelet, no such file, or no permission to open it."""


class DeadlineError(PodResourcesError):
    """The kubelet did not answer in time."""


class RefusedError(PodResourcesError):
    """The kubelet answered with an error, or with something that is not PodResources v1."""


class PodResources(Protocol):
    """One node's kubelet, asked from one event loop."""

    async def list(self) -> tuple[Allocation, ...]:
        """Return every device id that is allocated to a container of this node, of any vendor.

        Containers without devices do not appear. Order and uniqueness are not promised. A kubelet
        older than 1.34 keeps listing pods that have finished, until they are deleted.

        Raises:
            PodResourcesError: there is no answer, or it cannot be decoded.
        """
        ...
