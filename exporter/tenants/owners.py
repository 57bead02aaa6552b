"""Whose a process is, as the rest of the exporter asks for it.

The kubelet says which container was given a device; a process says which container really works
on it. Nothing here reads a machine: ``processes`` does, and ``simulated`` stands in for it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Owner:
    """The container that a process runs in; all empty for a process outside of any pod.

    Attributes:
        uid: of the pod, as the kubelet has it: for a static pod the hash of its manifest, where
            the API server shows another for the mirror pod. Empty where it is not known.
    """

    namespace: str = ""
    pod: str = ""
    container: str = ""
    uid: str = ""


HOST = Owner()


class Fault(StrEnum):
    """Why no process at all can be mapped; ``NONE`` if processes can."""

    NONE = ""
    PID_NAMESPACE = "pid_namespace"
    NO_PROC = "no_proc"
    PERMISSION = "permission"


class Processes(Protocol):
    """The processes of one node, asked from one thread."""

    @property
    def fault(self) -> Fault:
        """Why ``owner`` is None for every PID; it does not change."""
        ...

    @property
    def version(self) -> int:
        """Count up with every ``refresh`` that may have changed an answer."""
        ...

    def owner(self, pid: int) -> Owner | None:
        """Return whose process this is.

        None if that cannot be told: there is no such process (any more), or its container has no
        name (yet). The answer for a PID stays the same until the next ``refresh``.
        """
        ...

    def is_mps_server(self, pid: int) -> bool:
        """Tell the server of MPS, through which the processes of several containers work."""
        ...

    def pod_uid(self, namespace: str, pod: str) -> str:
        """Return the uid of the pod of that name that runs on this node.

        Empty where that is not known, or where two of them have had the name lately.
        """
        ...

    def refresh(self) -> None:
        """Forget processes that have ended, ask again about the unknown. Call once per tick."""
        ...

    def close(self) -> None:
        """Release everything that is held open; nothing may be asked after that."""
        ...
