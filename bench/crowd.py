"""Processes of pods: real ones that sleep, in a procfs that says which containers they are in.

The exporter watches processes through the kernel, so they have to live; only their cgroups, which
need a kubelet, are files of ours. They take no CPU.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from exporter.tenants.processes import HOST_PID_NAMESPACE
from simulator.scenario import Container, Scenario

PROCESSES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Sleeping processes.

    Attributes:
        proc: what stands for procfs.
        links: what stands for the kubelet's folder of links to containers' logs.
    """

    pids: tuple[int, ...]
    proc: Path
    links: Path

    def settle(self, scenario: Scenario) -> None:
        """Say of each process of a scenario in which container it runs."""
        for workload in scenario.workloads:
            for pod in workload.pods:
                for container in pod.parts():
                    self._place(workload.namespace, pod.name, container)

    def _place(self, namespace: str, pod: str, container: Container) -> None:
        digest = sha256(f"{namespace}/{pod}/{container.name}".encode()).hexdigest()
        uid = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
        link = self.links / f"{pod}_{namespace}_{container.name}-{digest}.log"
        link.symlink_to(f"/var/log/pods/{namespace}_{pod}_{uid}/{container.name}/0.log")
        for pid in container.pids:
            process = self.proc / str(pid)
            process.mkdir()
            (process / "cgroup").write_text(f"0::/kubepods/besteffort/pod{uid}/{digest}\n")
            (process / "comm").write_text("python3\n")
            (process / "stat").write_text(Path(f"/proc/{pid}/stat").read_text())


@asynccontextmanager
async def crowd(folder: Path, size: int = PROCESSES) -> AsyncIterator[Crowd]:
    """Let so many processes sleep while the body runs."""
    proc, links = folder / "proc", folder / "containers"
    links.mkdir()
    (proc / "self" / "ns").mkdir(parents=True)
    (proc / "self" / "ns" / "pid").symlink_to(HOST_PID_NAMESPACE)
    (proc / "1").mkdir()
    (proc / "1" / "cgroup").write_text("0::/init.scope\n")
    async with AsyncExitStack() as stack:
        sleepers = [await stack.enter_async_context(_sleeper()) for _ in range(size)]
        yield Crowd(pids=tuple(sleepers), proc=proc, links=links)


@asynccontextmanager
async def _sleeper() -> AsyncIterator[int]:
    process = await asyncio.create_subprocess_exec("sleep", "infinity")
    try:
        yield process.pid
    finally:
        process.kill()
        await process.wait()


def shares(pids: Sequence[int], pods: int) -> Iterable[tuple[int, ...]]:
    """Yield each pod's part of the processes, as even as can be."""
    for number in range(pods):
        yield tuple(pids[number::pods])
