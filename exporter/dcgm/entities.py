"""Of which devices dcgm-exporter shows series, and with which labels.

Pure. It has one row per GPU that is not partitioned and one per GPU instance, never one per
compute instance: two of those in one GPU instance would be the same series twice, for which
Prometheus refuses the whole page.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from slicewatch.catalog.dcgm import Alias, HostLabel, OnMig
from slicewatch.wire.layout import Device


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A row of dcgm-exporter, as rows of a layout.

    Attributes:
        gpu: row of the GPU.
        own: row of the GPU instance, that of its first compute instance; of a whole GPU, ``gpu``.
    """

    gpu: int
    own: int

    def row(self, alias: Alias) -> int | None:
        """Return the row that has the value of a name; None if the entity has no such series."""
        if self.own == self.gpu or alias.on_mig is OnMig.OWN:
            return self.own
        return self.gpu if alias.on_mig is OnMig.OF_GPU else None


def entities(devices: Sequence[Device]) -> Iterator[Entity]:
    """Yield the rows of dcgm-exporter in the order of the devices.

    A GPU in MIG mode has a row of its own only while it has no instance. Instances whose GPU is
    not among the devices have none.
    """
    gpus = {device.uuid: row for row, device in enumerate(devices) if not device.is_mig}
    parents = {device.parent for device in devices if device.is_mig}
    seen: set[tuple[str, int | None]] = set()
    for row, device in enumerate(devices):
        instance = (device.parent, device.gpu_instance)
        if not device.is_mig:
            if device.uuid not in parents:
                yield Entity(gpu=row, own=row)
        elif device.parent in gpus and instance not in seen:
            seen.add(instance)
            yield Entity(gpu=gpus[device.parent], own=row)


def labels(
    gpu: Device, own: Device, *, node: str, driver: str, host: HostLabel = HostLabel.CAPITAL
) -> dict[str, str]:
    """Return the labels of an entity in dcgm-exporter's order; pods' labels follow after them.

    Values are not escaped. Labels whose value is not known are left out.

    Args:
        gpu: the GPU.
        own: its GPU instance, or the GPU itself.
        node: name of the node.
        driver: version of the driver.
        host: which of its spellings the name of the node gets.
    """
    shown = {
        "gpu": str(gpu.gpu),
        "UUID": gpu.uuid,
        "pci_bus_id": gpu.pci_bus_id,
        "device": "" if gpu.minor is None else f"nvidia{gpu.minor}",
        "modelName": gpu.model,
    }
    if own.is_mig:
        # 1c.3g.20gb is a compute instance of 3g.20gb, which is what dcgm-exporter knows.
        shown["GPU_I_PROFILE"] = own.profile.rpartition("c.")[2]
        shown["GPU_I_ID"] = "" if own.gpu_instance is None else str(own.gpu_instance)
    shown |= {str(host): node, "DCGM_FI_DRIVER_VERSION": driver}
    return {name: value for name, value in shown.items() if value}
