"""As how many devices the device plugin offers each device: the replicas of a shared one."""

from collections import Counter
from collections.abc import Iterable, Mapping

from exporter.tenants.device_ids import DeviceIds, concerns_gpus
from exporter.tenants.protocol import Offer
from slicewatch.wire.layout import Device


class Offers:
    """The kubelet's last answer. Belongs to one event loop and is not locked."""

    def __init__(self) -> None:
        self._offers: frozenset[Offer] | None = None
        self._devices: tuple[Device, ...] = ()
        self._replicas: Mapping[str, int] | None = None

    def take(self, offers: Iterable[Offer]) -> None:
        """Replace the answer. Devices of other vendors are ignored."""
        offered = frozenset(offer for offer in offers if concerns_gpus(offer.resource))
        if offered != self._offers:
            self._offers = offered
            self._replicas = None

    def replicas(self, devices: tuple[Device, ...]) -> Mapping[str, int]:
        """Return, by uuid, how often each device is offered; without those that are not.

        Empty while nothing is known. Costs one comparison while nothing has changed.
        """
        if self._replicas is None or devices != self._devices:
            self._devices = devices
            ids = DeviceIds(devices)
            found = (ids.find(offer.resource, offer.device_id) for offer in self._offers or ())
            self._replicas = Counter(match.device.uuid for match in found if match is not None)
        return self._replicas
