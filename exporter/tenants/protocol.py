"""What the exporter asks of a kubelet, whoever answers.

A source only reports; which device an id means is decided in ``device_ids``, what is remembered
while a source is silent in ``tenants``.
"""

from typing import Protocol

import msgspec


class Allocation(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One device id that a container was given, as the kubelet spells it.

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
    """The kubelet did not say who holds what; the message is for people, asking again is safe."""


class UnreachableError(PodResourcesError):
    """Nobody answers on the socket: no kubelet, no such file, or no right to open it."""


class DeadlineError(PodResourcesError):
    """The kubelet was asked and did not answer in time."""


class RefusedError(PodResourcesError):
    """The kubelet answered, with an error or with something that is no PodResources v1."""


class PodResources(Protocol):
    """One node's kubelet, asked from one event loop."""

    async def list(self) -> tuple[Allocation, ...]:
        """Return every device id that a container of this node was given, of every vendor.

        Containers without devices do not appear. Order and uniqueness are not promised. A kubelet
        older than 1.34 goes on listing pods that have finished, until they are deleted.

        Raises:
            PodResourcesError: there is no answer, or none that can be read.
        """
        ...
