"""Processes that are not there: owners as the simulator tells them."""

from exporter.tenants.owners import HOST, Fault, Owner
from simulator.node import SimulatedNode


class SimulatedProcesses:
    """Processes of a simulated node; implements ``Processes``.

    Args:
        node: whose processes they are.
        fault: what the node lacks; nothing can be mapped then.
    """

    def __init__(self, node: SimulatedNode, *, fault: Fault = Fault.NONE) -> None:
        self._node = node
        self._fault = fault
        self.version = 0
        self._answers: dict[int, Owner | None] = {}

    @property
    def fault(self) -> Fault:
        """Why nothing can be mapped, as it was given."""
        return self._fault

    def owner(self, pid: int) -> Owner | None:
        """Return whose process this is; the same until the next ``refresh``."""
        if self._fault:
            return None
        if pid not in self._answers:
            self._answers[pid] = self._owner(pid)
        return self._answers[pid]

    def is_mps_server(self, pid: int) -> bool:
        """Tell the server of MPS."""
        return not self._fault and self._node.is_mps_server(pid)

    def pod_uid(self, namespace: str, pod: str) -> str:
        """Return the uid of a pod by its processes."""
        if self._fault:
            return ""
        pids = (process.pid for gpu in self._node.gpus for process in gpu.processes)
        owners = filter(None, map(self._node.owner_of, pids))
        return next((o.uid for o in owners if (o.namespace, o.pod) == (namespace, pod)), "")

    def refresh(self) -> None:
        """Look at the node anew."""
        self._answers.clear()
        self.version += 1

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _owner(self, pid: int) -> Owner | None:
        owner = self._node.owner_of(pid)
        if owner is not None:
            return Owner(**owner._asdict())
        return HOST if self._node.runs(pid) else None
