"""The processes of a GPU as its driver lists them, with the memory that each holds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from simulator import identity
from simulator.scenario import Sharing, SharingMode
from simulator.stage import Stage
from simulator.tenancy import Tenancy

# What the MPS server holds on a GPU for itself.
MPS_SERVER_BYTES: Final = 30 * 2**20


class ProcessType(StrEnum):
    """Which of the driver's lists a process is in."""

    COMPUTE = "compute"
    GRAPHICS = "graphics"
    MPS = "mps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that holds memory on a GPU.

    Attributes:
        used_bytes: None where the driver gives its sentinel for "not available".
        gpu_instance_id, compute_instance_id: None without MIG.
    """

    pid: int
    type: ProcessType
    used_bytes: int | None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None


class ProcessTable:
    """The processes of one GPU.

    Args:
        gpu: uuid of the GPU.
        sharing: how the device plugin shares it.
    """

    def __init__(self, gpu: str, sharing: Sharing) -> None:
        self._mps = sharing.mode is SharingMode.MPS
        self._server_is_sampled = sharing.sampled == "server"
        self._server_pid = identity.pid(gpu, "", "mps-server", 0)

    @property
    def server_pid(self) -> int | None:
        """Process id of the server of MPS; None without MPS."""
        return self._server_pid if self._mps else None

    def running(self, stage: Stage) -> tuple[Process, ...]:
        """Return the processes that hold memory in a stage, by rising pid."""
        if stage.halted:
            return ()
        instances = {d.uuid: (d.gpu_instance_id, d.compute_instance_id) for d in stage.devices}
        found = [
            process
            for uuid, tenants in stage.tenants.items()
            for process in self._on_device(list(tenants), *instances.get(uuid, (None, None)))
        ]
        if stage.garbage:
            found = [replace(process, used_bytes=None) for process in found]
        return tuple(sorted(found, key=lambda process: process.pid))

    def used_bytes(self, stage: Stage, device: str) -> int:
        """Return what the processes on a GPU or MIG device hold together."""
        tenants = () if stage.halted else tuple(stage.tenants.get(device, ()))
        server = MPS_SERVER_BYTES if self._has_clients(tenants) else 0
        return server + sum(tenant.memory_bytes for tenant in tenants)

    def sampled(self, tenant: Tenancy) -> tuple[int, ...]:
        """Return the pids, any of which a sample of a tenant's work may carry."""
        server = self._server_is_sampled and self._type(tenant) is ProcessType.MPS
        return (self._server_pid,) if server else tenant.pids

    def _on_device(
        self, tenants: Sequence[Tenancy], gpu_instance: int | None, compute_instance: int | None
    ) -> Iterator[Process]:
        held = [(*one, self._type(tenant)) for tenant in tenants for one in _memory(tenant)]
        if self._has_clients(tenants):
            held.append((self._server_pid, MPS_SERVER_BYTES, ProcessType.COMPUTE))
        for pid, used_bytes, kind in held:
            yield Process(
                pid=pid,
                type=kind,
                used_bytes=used_bytes,
                gpu_instance_id=gpu_instance,
                compute_instance_id=compute_instance,
            )

    def _has_clients(self, tenants: Sequence[Tenancy]) -> bool:
        return any(self._type(tenant) is ProcessType.MPS for tenant in tenants)

    def _type(self, tenant: Tenancy) -> ProcessType:
        if tenant.graphics:
            return ProcessType.GRAPHICS
        # Only containers are given the pipe to the MPS server.
        client = self._mps and tenant.owner is not None
        return ProcessType.MPS if client else ProcessType.COMPUTE


def _memory(tenant: Tenancy) -> list[tuple[int, int]]:
    """Return what each process of a tenant holds, in bytes that add up."""
    each, rest = divmod(tenant.memory_bytes, len(tenant.pids))
    return [(pid, each + (n < rest)) for n, pid in enumerate(tenant.pids)]
