"""What the tenants are made from: a kubelet's allocations, and on request the API server's facts.

A source only reports: ``device_ids`` decides which device an id refers to, and ``tenants`` what
is remembered while a source is silent.
"""

from collections.abc import Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec


class Allocation(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One device id that is allocated to a container, as the kubelet spells it.

    Attributes:
        resource: resource of the device plugin, such as ``nvidia.com/gpu``; of a device that came
            through a resource claim the name of its DRA driver, which never has a slash.
        device_id: the plugin's id, or the DRA driver's name of the device.
        share: of a claimed device, the id of the share of it; empty for the whole.
        pool: of a claimed device, the driver's pool of devices in which its name is unique.
        claim, claim_namespace: the resource claim that it was allocated to.
    """

    namespace: str
    pod: str
    container: str
    resource: str
    device_id: str
    share: str = ""
    pool: str = ""
    claim: str = ""
    claim_namespace: str = ""


class PodName(NamedTuple):
    """A pod of the cluster, whichever of those that had the name one after the other."""

    namespace: str
    name: str


class PodFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the API server says about a pod of this node.

    Attributes:
        labels: those of its labels that were asked for.
        workload_kind, workload: what owns it; empty unless asked for.
        finished: it has succeeded, failed or been deleted: it holds nothing any more.
    """

    uid: str
    labels: dict[str, str] = {}
    workload_kind: str = ""
    workload: str = ""
    finished: bool = False


K = TypeVar("K")
V = TypeVar("V")


class Versioned(Generic[K, V]):
    """A mapping that its writer replaces as a whole, and whose readers can tell when.

    Attributes:
        version: counts up with every replacement that differs from what it replaces.
    """

    def __init__(self) -> None:
        self.version = 0
        self._current: Mapping[K, V] = {}

    @property
    def current(self) -> Mapping[K, V]:
        """The present content, which is never changed in place."""
        return self._current

    def replace(self, content: Mapping[K, V]) -> None:
        """Take a copy of ``content`` as the present one."""
        if content != self._current:
            self._current = dict(content)
            self.version += 1


class PodResourcesError(Exception):
    """The kubelet did not list allocations; the message is for people, retrying is safe."""


class UnreachableError(PodResourcesError):
    """Nothing answers on the socket: no kubelet, no such file, or no permission to open it."""


class DeadlineError(PodResourcesError):
    """The kubelet did not answer in time."""


class RefusedError(PodResourcesError):
    """The kubelet answered with an error, or with something that is not PodResources v1."""


class Offer(NamedTuple):
    """One device id that a device plugin of this node offers, given away or not."""

    resource: str
    device_id: str


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

    async def offers(self) -> tuple[Offer, ...]:
        """Return every device id that the plugins of this node offer, of any vendor.

        Raises:
            PodResourcesError: there is no answer, or it cannot be decoded; kubelets before 1.23
                refuse the question.
        """
        ...
