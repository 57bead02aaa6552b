"""Kinds of objects that metrics can belong to: their names in paths, and in answers.

A resource arrives as clients write it, ``deployments.apps``, ``pods`` or ``pod``. Those that most
metrics are about are known here; those of other APIs are learned when a rule names them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A kind of objects.

    Attributes:
        group: of its API; empty for the core one.
        plural, singular: its names in paths, in lower case.
        kind: its name in objects.
    """

    group: str = ""
    version: str = "v1"
    plural: str
    singular: str
    kind: str
    namespaced: bool = True

    @property
    def name(self) -> str:
        """Return the name in paths and discovery, such as ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """Return the version in objects, such as ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def names(self) -> set[str]:
        """Return the names that it can be asked for by."""
        forms = {self.plural, self.singular}
        return {f"{form}.{self.group}" for form in forms} if self.group else forms


def _core(kind: str, *, namespaced: bool = True) -> Resource:
    singular = kind.lower()
    return Resource(plural=f"{singular}s", singular=singular, kind=kind, namespaced=namespaced)


def _of(group: str, kind: str, plural: str = "") -> Resource:
    singular = kind.lower()
    return Resource(group=group, plural=plural or f"{singular}s", singular=singular, kind=kind)


PODS: Final = _core("Pod")
NODES: Final = _core("Node", namespaced=False)
NAMESPACES: Final = _core("Namespace", namespaced=False)
SERVICES: Final = _core("Service")
DEPLOYMENTS: Final = _of("apps", "Deployment")

KNOWN: Final = (
    PODS,
    NODES,
    NAMESPACES,
    SERVICES,
    _core("PersistentVolume", namespaced=False),
    _core("PersistentVolumeClaim"),
    _core("ReplicationController"),
    DEPLOYMENTS,
    _of("apps", "ReplicaSet"),
    _of("apps", "StatefulSet"),
    _of("apps", "DaemonSet"),
    _of("batch", "Job"),
    _of("batch", "CronJob"),
    _of("networking.k8s.io", "Ingress", "ingresses"),
    _of("autoscaling", "HorizontalPodAutoscaler"),
)


class Resources:
    """The kinds that are known now, by every name that they can be asked for by.

    Attributes:
        revision: number of changes so far.
    """

    def __init__(self, known: Iterable[Resource] = KNOWN) -> None:
        self.revision = 0
        self._by_name: dict[str, Resource] = {}
        self._short: dict[str, Resource] = {}
        for resource in known:
            self.learn(resource)

    def learn(self, resource: Resource) -> None:
        """Know one more."""
        self.revision += 1
        for name in resource.names():
            self._by_name[name] = resource
            # The first of a short name keeps it, as core kinds do with kubectl.
            self._short.setdefault(name.partition(".")[0], resource)

    def find(self, name: str) -> Resource | None:
        """Return the kind of a name in a path, whose group may be left out; None if unknown."""
        return self._by_name.get(name) or self._short.get(name)
