"""The kubelet's cgroups: the one thing of a cluster that does not end with its namespaces.

Only empty groups are ever removed, so no running process can be harmed.
"""

from pathlib import Path
from typing import Final

from testbed.cluster import waiting

_MOUNT: Final = Path("/sys/fs/cgroup")
_NAME: Final = "kubepods*"
_REMOVE_SECONDS: Final = 15.0


def pod_groups() -> list[Path]:
    """Return the kubelet's top groups, of every hierarchy: v1's controllers, v2 and the hybrid."""
    return sorted({*_MOUNT.glob(_NAME), *_MOUNT.glob(f"*/{_NAME}")})


def members() -> set[int]:
    """Return the processes in those groups."""
    return {
        int(pid)
        for top in pod_groups()
        for listing in top.rglob("cgroup.procs")
        for pid in _read(listing).split()
    }


def remove() -> None:
    """Remove those groups, whose processes must have ended or be about to."""
    waiting.until(_removed, what=f"{_NAME} cgroups to be empty", seconds=_REMOVE_SECONDS)


def _removed() -> bool:
    for top in pod_groups():
        groups = [path for path in top.rglob("*") if path.is_dir()]
        for group in sorted([top, *groups], key=lambda path: len(path.parts), reverse=True):
            try:
                group.rmdir()
            except OSError:  # Busy until the kernel has reaped its last process.
                continue
    return not pod_groups()


def _read(listing: Path) -> str:
    try:
        return listing.read_text()
    except OSError:  # The group has disappeared in the meantime.
        return ""
