"""The processes of this machine, and the containers they run in.

Asked for every process on every GPU at every tick, on the event loop: what is known is answered
without a system call, and what could not be found out is not tried again at once.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from exporter.tenants import cgroups
from exporter.tenants.cgroups import OUTSIDE, Placement
from exporter.tenants.containers import LINKS, Containers
from exporter.tenants.lifetimes import MOST_PIDFDS, Lifetimes
from exporter.tenants.owners import HOST, Fault, Owner
from slicewatch.service import logs

log = logs.logger(__name__)

PROC: Final = Path("/proc")

# What /proc/self/ns/pid refers to in the host's PID namespace: PROC_PID_INIT_INO of the kernel,
# the same on every machine.
HOST_PID_NAMESPACE: Final = f"pid:[{0xEFFFFFFC}]"

# The kernel keeps fifteen characters of a program's name.
MPS_SERVER: Final = "nvidia-cuda-mps-server"[:15]

# For how long a PID that leads nowhere is not tried again.
RETRY_SECONDS = 1.0

_REMEDIES: Final = {
    Fault.NO_PROC: "mount procfs there",
    Fault.PID_NAMESPACE: "set hostPID: true in the pod's spec",
    Fault.PERMISSION: "run as root, or mount /proc without hidepid",
}


class HostProcesses:
    """Real processes; implements ``Processes``.

    The driver reports PIDs of the host, or of the caller's own PID namespace if it has one, and
    leaves out what runs outside of that. In a namespace of its own this process would therefore
    miss the others' processes, or worse, take a PID of the host for one of its own: it maps
    nothing then, unless told that the namespace is the whole node.

    Args:
        proc: procfs of our PID namespace.
        containers: the kubelet's folder of links to containers' logs.
        pid_namespace: ``host`` demands the PID namespace of the machine. ``any`` is for nodes
            that are themselves containers, with kubelet, pods, driver and ourselves in one PID
            namespace, as in test clusters.
        most_pidfds: how many processes are watched by pidfd; more are checked one by one.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        *,
        proc: Path = PROC,
        containers: Path = LINKS,
        pid_namespace: Literal["host", "any"] = "host",
        most_pidfds: int = MOST_PIDFDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._proc = proc
        self._fault = _fault(proc, pid_namespace)
        self._containers = Containers(containers, clock)
        self._lifetimes = Lifetimes(proc, most_pidfds)
        self._clock = clock
        self._version = 0
        self._answers: dict[int, Owner | None] = {}
        self._servers: dict[int, bool] = {}
        self._unnamed: dict[int, Placement] = {}
        self._retry_at: dict[int, float] = {}
        if self._fault:
            remedy = _REMEDIES[self._fault]
            log.warning("processes have no owners", fault=self._fault.value, remedy=remedy)

    @property
    def fault(self) -> Fault:
        """Why nothing can be mapped, as found at the start."""
        return self._fault

    def owner(self, pid: int) -> Owner | None:
        """Return whose process this is; see ``Processes``."""
        try:
            return self._answers[pid]
        except KeyError:
            answer = self._answers[pid] = self._first_answer(pid)
            return answer

    def is_mps_server(self, pid: int) -> bool:
        """Tell the server of MPS; see ``Processes``."""
        if self.owner(pid) is None:
            return False
        if pid not in self._servers:
            self._servers[pid] = self._read(pid, "comm").strip() == MPS_SERVER
        return self._servers[pid]

    def pod_uid(self, namespace: str, pod: str) -> str:
        """Return the uid of a pod by the kubelet's links; see ``Processes``."""
        return self._containers.pod_uid(namespace, pod)

    @property
    def version(self) -> int:
        """Count up with every ``refresh`` that changed an answer."""
        return self._version

    def refresh(self) -> None:
        """Forget who has ended; ask again about who is unknown or unnamed."""
        changed = False
        for pid in self._lifetimes.ended():
            del self._answers[pid]
            self._unnamed.pop(pid, None)
            self._servers.pop(pid, None)
            changed = True
        now = self._clock()
        for pid in [pid for pid, at in self._retry_at.items() if at <= now]:
            del self._answers[pid], self._retry_at[pid]
            changed = True
        for pid, placement in list(self._unnamed.items()):
            if owner := self._named(placement):
                self._answers[pid] = owner
                del self._unnamed[pid]
                changed = True
        self._version += changed

    def close(self) -> None:
        """Close what watches the processes."""
        self._lifetimes.close()

    def _first_answer(self, pid: int) -> Owner | None:
        placement = None if self._fault else self._placement(pid)
        if placement is None:
            self._retry_at[pid] = self._clock() + RETRY_SECONDS
            return None
        owner = self._named(placement)
        if owner is None:
            self._unnamed[pid] = placement
        return owner

    def _placement(self, pid: int) -> Placement | None:
        """Return where a process runs, and watch it if that can be told."""
        if not self._lifetimes.begin(pid):
            return None
        found = cgroups.placement(self._read(pid, "cgroup"))
        # What was read by PID is of the watched process only if that runs even now.
        if found is None or self._lifetimes.has_ended(pid):
            self._lifetimes.forget(pid)
            return None
        return found

    def _read(self, pid: int, file: str) -> str:
        try:
            path = self._proc / str(pid) / file
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _named(self, placement: Placement) -> Owner | None:
        if placement == OUTSIDE:
            return HOST
        if not placement.container_id:
            return None
        owner = self._containers.owner(placement.container_id)
        if owner is None or owner.uid:
            return owner
        return replace(owner, uid=placement.pod_uid)


def _fault(proc: Path, pid_namespace: Literal["host", "any"]) -> Fault:
    try:
        namespace = (proc / "self" / "ns" / "pid").readlink().name
    except OSError:
        return Fault.NO_PROC
    if pid_namespace == "host" and namespace != HOST_PID_NAMESPACE:
        return Fault.PID_NAMESPACE
    try:
        (proc / "1" / "cgroup").read_bytes()
    except OSError:
        # PID 1 is in every PID namespace: with hidepid it cannot be read, or is not even listed.
        return Fault.PERMISSION
    return Fault.NONE
