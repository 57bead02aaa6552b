"""Which container a process is in, by the text of ``/proc/<pid>/cgroup``.

Knows how the kubelet and container runtimes call cgroups, with either cgroup version and driver,
and reads no file. It does not know the names of pods and containers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NewType

ContainerId = NewType("ContainerId", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a process runs; outside of any pod if both are empty.

    Attributes:
        pod_uid: in the form that the kubelet uses in paths; empty for a container beside our own
            in our own pod, whose cgroup is above what we can see.
        container_id: 64 hex digits; empty for a process in a pod but in none of its containers.
    """

    pod_uid: str = ""
    container_id: ContainerId = ContainerId("")


OUTSIDE: Final = Placement()

# A uid, or the hash of a static pod's manifest. Systemd unit names have `_` where a uid has `-`.
_UID = r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32}"

# `pod<uid>`, `kubepods-burstable-pod<uid>.slice`, kind's `kubelet-kubepods-pod<uid>.slice`.
_POD = re.compile(rf"(?:.+-)?pod(?P<uid>{_UID})(?:\.slice)?")

# `<id>`, `cri-containerd-<id>.scope`, `crio-<id>`, `crio-conmon-<id>.scope`, `docker-<id>.scope`.
_CONTAINER = re.compile(r"(?:.+-)?(?P<id>[0-9a-f]{64})(?:\.scope)?")

# A runtime that was given a systemd path but manages cgroupfs makes a folder of that name.
_UNIT_NOTATION = re.compile(r":[a-z-]+:")


def placement(text: str) -> Placement | None:
    """Return where the process with this ``/proc/<pid>/cgroup`` runs.

    Of nested pods it is the outermost, which is the one that the node's kubelet knows. None if
    the text does not tell, or if the hierarchies of cgroup v1 contradict each other.

    For a reader in a cgroup namespace paths start at its own cgroup and lead out of it by ``..``,
    which is understood. Its own processes are then at ``/``, like those in the root cgroup of a
    host, and are taken for that: an exporter's container computes nothing on a GPU.
    """
    found = {_of_path(path) for path in _paths(text)}
    # Only some hierarchies of cgroup v1 may have the container's groups.
    most = max(map(_precision, found), default=0)
    best = {one for one in found if _precision(one) == most}
    return best.pop() if len(best) == 1 else None


def _paths(text: str) -> Iterator[str]:
    """Yield the path of every hierarchy: lines are ``<number>:<controllers>:<path>``."""
    for line in text.split("\n"):
        _, _, path = line.partition(":")[2].partition(":")
        if path.startswith("/"):
            yield path.removesuffix(" (deleted)")


def _of_path(path: str) -> Placement | None:
    names = [n for n in _UNIT_NOTATION.sub("/", path).split("/") if n not in ("", "..")]
    if path.startswith("/../") and names and (beside := _container_id(names[0])):
        return Placement(container_id=beside)
    for name, inner in zip(names, [*names[1:], ""], strict=False):
        if pod := _POD.fullmatch(name):
            uid = pod["uid"].replace("_", "-")
            return Placement(pod_uid=uid, container_id=_container_id(inner))
    return None if any("kubepods" in name for name in names) else OUTSIDE


def _container_id(name: str) -> ContainerId:
    found = _CONTAINER.fullmatch(name)
    return ContainerId(found["id"] if found else "")


def _precision(found: Placement | None) -> int:
    """Rank what a path tells: host, something of the kubelet's, pod, container, both."""
    if found is None:
        return 1
    return 2 * bool(found.pod_uid) + 4 * bool(found.container_id)
