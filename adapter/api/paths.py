"""Which object and metric a path is about: C1 to C5 of the custom API, E1 of the external one.

Paths are split as received, before unquoting: a name must not smuggle in a slash, and ``*`` may
arrive as ``%2A``. Which resources are in no namespace is known here of the three that exporters
report about; of all others the offering knows.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from adapter.api.resources import NAMESPACES, NODES, PODS, Resource
from adapter.api.status import Reason, Refusal, Subject

CUSTOM: Final = "custom.metrics.k8s.io"
EXTERNAL: Final = "external.metrics.k8s.io"
GROUPS: Final = {CUSTOM: ("v1beta2", "v1beta1"), EXTERNAL: ("v1beta1",)}
"""Versions by group, the preferred one first."""

ALL: Final = "*"
# A long path is parsed again each time, so that what is kept stays small whoever asks.
LONGEST_KEPT: Final = 1024


class Kind(StrEnum):
    """Kinds of objects that exporters report about; the values are their plural names."""

    POD = "pods"
    NODE = "nodes"
    NAMESPACE = "namespaces"

    @property
    def resource(self) -> Resource:
        """Return how its objects are named in answers."""
        return _RESOURCES[self]


_RESOURCES: Final = {Kind.POD: PODS, Kind.NODE: NODES, Kind.NAMESPACE: NAMESPACES}
_KINDS: Final = {str(kind): kind for kind in Kind} | {str(kind)[:-1]: kind for kind in Kind}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPath:
    """A metric of one object, or of all (``name`` is ``*``) of a kind in a namespace.

    Attributes:
        namespace: empty for objects that are in none.
        resource: ``Resource.name`` of what is offered, once the offering has been asked; until
            then as requested, such as ``deployment.apps``.
        kind: None for what exporters report nothing about.
    """

    version: str
    namespace: str
    resource: str
    kind: Kind | None
    name: str
    metric: str

    @property
    def subject(self) -> Subject:
        """Return what a refusal names as its subject."""
        return Subject(group=CUSTOM, kind=self.resource, name=self.metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalPath:
    """A metric that does not belong to an object; its name may arrive in lower case."""

    namespace: str
    metric: str

    @property
    def subject(self) -> Subject:
        """Return what a refusal names as its subject."""
        return Subject(group=EXTERNAL, kind="", name=self.metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryPath:
    """All groups, one group, or one version of a group, depending on what is not empty."""

    group: str = ""
    version: str = ""

    @property
    def subject(self) -> None:
        """Return nothing: it is about no metric."""


Path = MetricPath | ExternalPath | DiscoveryPath


def parse(raw: str) -> Path:
    """Return what a raw path, without its query, is about.

    Raises:
        Refusal: nothing is served at it.
    """
    return _kept(raw) if len(raw) <= LONGEST_KEPT else _parsed(raw)


def _parsed(raw: str) -> Path:
    parts = [unquote(part) for part in raw.strip("/").split("/")]
    if parts[0] != "apis" or any("/" in part or not part for part in parts):
        raise _unknown(raw)
    group, version = (*parts[1:3], "", "")[:2]
    if (group and group not in GROUPS) or (version and version not in GROUPS[group]):
        raise _unknown(raw)
    rest = tuple(parts[3:])
    if not rest:
        return DiscoveryPath(group=group, version=version)
    return _external(raw, rest) if group == EXTERNAL else _custom(raw, version, rest)


_kept = lru_cache(maxsize=4096)(_parsed)


def _external(raw: str, parts: tuple[str, ...]) -> ExternalPath:
    match parts:
        case ("namespaces", namespace, metric):
            return ExternalPath(namespace=namespace, metric=metric)
    raise _unknown(raw)


def _custom(raw: str, version: str, parts: tuple[str, ...]) -> MetricPath:
    match parts:
        case ("namespaces", namespace, resource, name, metric):
            found = _metric(version, namespace, resource, name, metric)
            if found.namespace == ALL:
                raise Refusal(
                    Reason.BadRequest,
                    f"invalid request path {raw}: metrics of {resource} can be asked for in one "
                    "namespace at a time",
                )
            if found.kind is not Kind.NAMESPACE:
                return found
        case ("namespaces", namespace, "metrics", metric):
            return _metric(version, "", "namespaces", namespace, metric)
        case ("namespaces", namespace, _):
            raise Refusal(
                Reason.BadRequest,
                f"invalid request path {raw}: metrics of a namespace are at "
                f"/namespaces/{namespace}/metrics/<metric>",
            )
        case (resource, name, metric):
            found = _metric(version, "", resource, name, metric)
            if found.kind is not Kind.POD:
                return found
    raise _unknown(raw)


def _metric(version: str, namespace: str, resource: str, name: str, metric: str) -> MetricPath:
    kind = _KINDS.get(resource)
    return MetricPath(
        version=version,
        # Autoscalers ask for nodes inside their own namespace, but a node is in none.
        namespace="" if kind is Kind.NODE else namespace,
        resource=str(kind) if kind else resource,
        kind=kind,
        name=name,
        metric=metric,
    )


def _unknown(raw: str) -> Refusal:
    return Refusal(
        Reason.NotFound,
        f"the server could not find the requested resource: nothing is served at {raw}",
    )
