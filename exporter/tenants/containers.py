"""The names of the node's containers, by container id.

Taken from the links that the kubelet keeps for log shippers,
``<pod>_<namespace>_<container>-<id>.log -> /var/log/pods/<namespace>_<pod>_<uid>/…``, since they
need neither the API server nor the runtime's socket, which would give control of every container.
Their targets are never opened.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from exporter.tenants.cgroups import ContainerId
from exporter.tenants.owners import Owner
from slicewatch.service import logs

log = logs.logger(__name__)

LINKS: Final = Path("/var/log/containers")

# Containers start far less often than an unknown one may be asked for.
SHORTEST_PAUSE_SECONDS = 1.0

# No name in Kubernetes contains `_`. The kubelet cuts names at 255 characters, and with that the
# id of a container whose names are longer than 184 together: such a container stays unnamed.
_LINK = re.compile(
    r"(?P<pod>[^_]+)_(?P<namespace>[^_]+)_(?P<container>[^_]+)-(?P<id>[0-9a-f]{64})\.log"
)


class Containers:
    """Containers that have a link, looked up without reading anything if known.

    For an unknown one the folder is looked at, at most once in ``SHORTEST_PAUSE_SECONDS``, and
    listed only if it has changed.
    """

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._owners: dict[ContainerId, Owner] = {}
        self._look_at = clock()
        self._listed_mtime_ns: int | None = None
        self._settled = False
        self._readable = True

    def owner(self, container: ContainerId) -> Owner | None:
        """Return whose this container is; None if it has no link (yet).

        ``uid`` is empty if the link has no target of the form that the kubelet makes.
        """
        found = self._owners.get(container)
        if found is None and self._look():
            found = self._owners.get(container)
        return found

    def pod_uid(self, namespace: str, pod: str) -> str:
        """Return the uid of a pod; empty where no link tells it, or links tell two.

        The links of a pod stay until it is deleted, also while another has taken its name.
        """
        self._look()
        owners = (o for o in self._owners.values() if (o.namespace, o.pod) == (namespace, pod))
        uids = {owner.uid for owner in owners if owner.uid}
        return uids.pop() if len(uids) == 1 else ""

    def _look(self) -> bool:
        """Return whether the links were listed anew."""
        now = self._clock()
        if now < self._look_at:
            return False
        self._look_at = now + SHORTEST_PAUSE_SECONDS
        try:
            listed = self._list()
        except OSError as error:
            self._say_unreadable(error)
            return False
        if not self._readable:
            log.info("the kubelet's container links can be read again", folder=str(self._folder))
            self._readable = True
        return listed

    def _list(self) -> bool:
        mtime_ns = self._folder.stat().st_mtime_ns
        unchanged = mtime_ns == self._listed_mtime_ns
        if unchanged and self._settled:
            return False
        # Time stamps of files are coarse: a link may come after the listing and leave the same
        # one, so that the time counts only once it has stood still over a pause.
        links = [(link, _LINK.fullmatch(link.name)) for link in self._folder.iterdir()]
        self._settled, self._listed_mtime_ns = unchanged, mtime_ns
        known = self._owners
        self._owners = {
            (container := ContainerId(match["id"])): known.get(container) or _owner(link, match)
            for link, match in links
            if match
        }
        return True

    def _say_unreadable(self, error: OSError) -> None:
        if self._readable:
            log.warning(
                "the kubelet's container links cannot be read, so processes in pods have no owner;"
                " mount the folder of the host there, read-only",
                folder=str(self._folder),
                error=str(error),
            )
        self._readable = False
        self._listed_mtime_ns = None


def _owner(link: Path, match: re.Match[str]) -> Owner:
    pod, namespace = match["pod"], match["namespace"]
    uid = _uid(link, f"{namespace}_{pod}_")
    return Owner(namespace=namespace, pod=pod, container=match["container"], uid=uid)


def _uid(link: Path, prefix: str) -> str:
    """Return the uid in the folder's name of the pod's logs, ``<namespace>_<pod>_<uid>``."""
    try:
        folder = link.readlink().parent.parent.name
    except OSError:
        return ""
    return folder.removeprefix(prefix) if folder.startswith(prefix) else ""
