"""What really happened, for tests to check reports against.

Nothing here passes through a driver: no rounding, no sampling, no nonsense. Any moment can be
asked about, in the past or, as far as the scenario determines it, in the future.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from simulator import identity
from simulator.gpm import GpmQuantity
from simulator.gpu import SimulatedGpu
from simulator.node import SimulatedNode
from simulator.scenario import SharingMode
from simulator.stage import GpuState, Stage
from simulator.tenancy import Tenancy
from simulator.vgpu_scheduler import running, waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Devices of one resource that a container holds, as the kubelet's PodResources lists them.

    Attributes:
        device_ids: uuids of GPUs or MIG devices; ``<uuid>::<n>`` for a replica of a shared one.
    """

    namespace: str
    pod: str
    container: str
    resource: str
    device_ids: tuple[str, ...]


class Truth:
    """The truth about the devices and pods of a fleet, exact. Times are seconds of the fleet."""

    def __init__(self, nodes: Sequence[SimulatedNode]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._of_device: dict[str, tuple[SimulatedNode, SimulatedGpu]] = {}
        for node in nodes:
            for gpu in node.gpus:
                for uuid in (gpu.uuid, *_possible_mig_uuids(gpu)):
                    self._of_device[uuid] = (node, gpu)

    def busy_seconds(self, uuid: str, begin: float, end: float) -> float:
        """Return how long kernels ran on a GPU or MIG device; a load of 0.5 counts half.

        Under MIG, each MIG device counts for its GPU by its share of the SMs.

        Raises:
            KeyError: the fleet never has such a device.
        """
        _, gpu = self._of_device[uuid]
        return gpu.timeline.busy_seconds(uuid, (begin, end))[-1]

    def tenant_busy_seconds(
        self, uuid: str, namespace: str, pod: str, container: str, begin: float, end: float
    ) -> float:
        """Return how long kernels of a container ran on a GPU or MIG device.

        What several tenants ask for beyond the whole device waits, so that together they ran for
        as long as the device was busy. The host has empty names; who never was there has 0.

        Raises:
            KeyError: the fleet never has such a device.
        """
        _, gpu = self._of_device[uuid]
        wanted = (namespace, pod, container)
        got = gpu.timeline.tenant_seconds(uuid, (begin, end))
        return float(sum(seconds[-1] for one, seconds in got.items() if _names(one) == wanted))

    def mean_utilization(self, uuid: str, begin: float, end: float) -> float:
        """Return the share of the time in which kernels ran, 0 to 1.

        Raises:
            KeyError: the fleet never has such a device.
            ValueError: the period is empty.
        """
        if end <= begin:
            raise ValueError(f"there is no time between {begin} s and {end} s")
        return self.busy_seconds(uuid, begin, end) / (end - begin)

    def gpm_mean(self, uuid: str, quantity: str, begin: float, end: float) -> float:
        """Return the mean of what GPM would measure of a GPU or MIG device, whatever its model.

        Args:
            uuid: of the device.
            quantity: such as ``sm``; a ratio from 0 to 1, or bytes per second.
            begin: of the period.
            end: of the period.

        Raises:
            KeyError: the fleet never has such a device.
            ValueError: the period is empty, or there is no such quantity.
        """
        if end <= begin:
            raise ValueError(f"there is no time between {begin} s and {end} s")
        _, gpu = self._of_device[uuid]
        return gpu.gpm.mean(uuid, GpmQuantity(quantity), begin, end)

    def vgpu_wait_ratio(self, uuid: str, vm: str | None, begin: float, end: float) -> float | None:
        """Return how long a vGPU waited for its GPU, of the time in which it had work to do.

        Args:
            uuid: of the GPU.
            vm: name of the virtual machine; None: all of the GPU.
            begin: of the period.
            end: of the period.

        Returns:
            A ratio from 0 to 1, or None where nobody had anything to do.

        Raises:
            KeyError: the fleet never has such a GPU.
        """
        timeline = self._of_device[uuid][1].timeline
        ran = waited = 0.0
        for one in timeline.tenant_seconds(uuid, (begin, end)):
            if one.vgpu is not None and vm in (None, one.vgpu.vm):
                ran += float(timeline.integral(running(one, timeline), (begin, end))[-1])
                waited += float(timeline.integral(waiting(one, timeline), (begin, end))[-1])
        return waited / (ran + waited) if ran + waited > 0 else None

    def energy_joules(self, uuid: str, at: float) -> float:
        """Return the energy that the GPU had used since its driver was last loaded.

        Raises:
            KeyError: the fleet never has such a GPU.
        """
        _, gpu = self._of_device[uuid]
        return gpu.joules(at)

    def up(self, uuid: str, at: float) -> bool:
        """Tell whether a GPU answers, or a MIG device exists on a GPU that does.

        Raises:
            KeyError: the fleet never has such a device.
        """
        node, gpu = self._of_device[uuid]
        stage = gpu.timeline.stage(at)
        there = uuid == gpu.uuid or any(device.uuid == uuid for device in stage.devices)
        driver = node.driver_at(at)
        return there and driver.loaded and driver.matches and stage.state is GpuState.UP

    def allocations(self, node: str, at: float) -> tuple[Allocation, ...]:
        """Return who holds which devices of a node, one entry per container and resource.

        Raises:
            KeyError: the fleet has no such node.
        """
        held: dict[tuple[str, str, str, str], list[str]] = {}
        for gpu in self._nodes[node].gpus:
            stage = gpu.timeline.stage(at)
            for uuid, tenants in stage.tenants.items():
                for tenant in tenants:
                    if tenant.owner is not None:
                        key = (*_names(tenant), _resource(stage, uuid))
                        held.setdefault(key, []).append(_device_id(uuid, tenant))
        return tuple(
            Allocation(namespace=key[0], pod=key[1], container=key[2], resource=key[3],
                       device_ids=tuple(ids))
            for key, ids in held.items()
        )  # fmt: skip

    def offers(self, node: str, at: float) -> tuple[tuple[str, str], ...]:
        """Return resource and id of every device that the device plugin of a node offers.

        Raises:
            KeyError: the fleet has no such node.
        """
        offered = []
        for gpu in self._nodes[node].gpus:
            stage = gpu.timeline.stage(at)
            for uuid in stage.loads:
                resource, replicas = _resource(stage, uuid), gpu.sharing.replicas
                shared = gpu.sharing.mode is not SharingMode.NONE
                ids = [f"{uuid}::{n}" for n in range(replicas)] if shared else [uuid]
                offered += [(resource, device_id) for device_id in ids]
        return tuple(offered)


def _possible_mig_uuids(gpu: SimulatedGpu) -> list[str]:
    # Ids of GPU instances number the nodes of a tree of halves over the memory slices.
    ids = range(2 * gpu.model.memory_slices - 1)
    return [identity.mig_uuid(gpu.uuid, number, 0) for number in ids]


def _names(tenant: Tenancy) -> tuple[str, str, str]:
    return ("", "", "") if tenant.owner is None else tenant.owner[:3]


def _device_id(uuid: str, tenant: Tenancy) -> str:
    replica = tenant.holding.replica
    return uuid if replica is None else f"{uuid}::{replica}"


def _resource(stage: Stage, uuid: str) -> str:
    for device in stage.devices:
        if device.uuid == uuid:
            return f"nvidia.com/mig-{device.profile.name.replace('+', '.')}"
    return "nvidia.com/gpu"
