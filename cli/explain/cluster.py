"""What is read of the cluster, and how a refusal is explained. Everything is a GET."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from slicewatch.kube.autoscaling import CrossVersionObjectReference, ScaledPod
from slicewatch.kube.errors import ForbiddenError, KubeError, NotFoundError

T = TypeVar("T")
_PAGE = 500


class Reader(Protocol):
    """A connection to an API server."""

    async def read(self, path: str, form: type[T]) -> T:
        """Return the answer to a path, decoded.

        Raises:
            KubeError: it was refused, or there is none.
        """
        ...


class CannotExplainError(Exception):
    """Something that is needed cannot be read; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A right that a request needs, as a rule of a Role."""

    group: str
    resource: str
    verb: str

    def rule(self) -> str:
        """Return the rule in YAML."""
        return (
            f'{{apiGroups: ["{self.group}"], resources: ["{self.resource}"], '
            f'verbs: ["{self.verb}"]}}'
        )


class _GroupVersion(msgspec.Struct, frozen=True):
    version: str


class ApiGroup(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The versions of an API group."""

    versions: tuple[_GroupVersion, ...] = ()
    preferred_version: _GroupVersion | None = None

    def preferred(self, among: tuple[str, ...] = ()) -> str:
        """Return the version that clients use, or the first that they know; empty for none."""
        first = (self.preferred_version,) if self.preferred_version else ()
        names = [one.version for one in (*first, *self.versions)]
        return next((name for name in names if not among or name in among), "")


class _Resource(msgspec.Struct, frozen=True):
    name: str
    kind: str


class _Resources(msgspec.Struct, frozen=True):
    resources: tuple[_Resource, ...] = ()


class _ListMetadata(msgspec.Struct, frozen=True, rename={"more": "continue"}):
    more: str = ""


class _Pods(msgspec.Struct, frozen=True):
    items: tuple[ScaledPod, ...] = ()
    metadata: _ListMetadata = _ListMetadata()


class ApiCondition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition of an APIService."""

    type: str
    status: str
    message: str = ""


class _ServiceName(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str = ""
    name: str = ""


class _ApiServiceSpec(msgspec.Struct, frozen=True):
    service: _ServiceName | None = None


class _ApiServiceStatus(msgspec.Struct, frozen=True):
    conditions: tuple[ApiCondition, ...] = ()


class ApiRegistration(msgspec.Struct, frozen=True, kw_only=True):
    """Who serves an API, by its APIService."""

    spec: _ApiServiceSpec = _ApiServiceSpec()
    status: _ApiServiceStatus = _ApiServiceStatus()

    @property
    def server(self) -> str:
        """Namespace and name of the Service; empty where kube-apiserver serves it itself."""
        service = self.spec.service
        return f"{service.namespace}/{service.name}" if service else ""

    @property
    def unavailable(self) -> str:
        """Why requests do not reach it; empty if they do."""
        found = next((c for c in self.status.conditions if c.type == "Available"), None)
        return "" if found is None or found.status == "True" else found.message or "not checked"


async def needed(reader: Reader, path: str, form: type[T], right: Right, what: str) -> T:
    """Return what cannot be done without.

    Raises:
        CannotExplainError: it cannot be read; with the right that would help.
        NotFoundError: it does not exist.
    """
    try:
        return await reader.read(path, form)
    except NotFoundError:
        raise
    except ForbiddenError as error:
        raise CannotExplainError(forbidden(what, right, error)) from error
    except KubeError as error:
        raise CannotExplainError(f"cannot read {what}: {error}") from error


def forbidden(what: str, right: Right, error: KubeError) -> str:
    """Return what a caller without a right is told."""
    return f"you may not read {what}: add to your Role {right.rule()} ({error.said or error})"


async def api_group(reader: Reader, group: str) -> ApiGroup | None:
    """Return the versions of a group; None if nobody serves it.

    Raises:
        CannotExplainError: discovery does not work.
    """
    try:
        return await reader.read(f"/apis/{group}", ApiGroup)
    except NotFoundError:
        return None
    except KubeError as error:
        raise CannotExplainError(f"cannot read what {group} serves: {error}") from error


async def registration(reader: Reader, group: str, version: str) -> ApiRegistration | None:
    """Return who serves a version of a group; None where that cannot be seen."""
    path = f"/apis/apiregistration.k8s.io/v1/apiservices/{version}.{group}"
    try:
        return await reader.read(path, ApiRegistration)
    except KubeError:
        return None  # Most users may not read it, and it is only an addition.


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Where objects of a kind are."""

    root: str
    group: str
    plural: str

    @property
    def qualified(self) -> str:
        """Plural and group, as paths of metrics name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


async def resource_of(reader: Reader, reference: CrossVersionObjectReference) -> Resource | None:
    """Return where the kind of a reference is served, whatever version it names; None if nowhere.

    Raises:
        CannotExplainError: discovery does not work.
    """
    group = reference.group
    root = "/api/v1"
    if group:
        known = await api_group(reader, group)
        if known is None:
            return None
        root = f"/apis/{group}/{known.preferred()}"
    try:
        served = await reader.read(root, _Resources)
    except KubeError as error:
        raise CannotExplainError(f"cannot read what {root} serves: {error}") from error
    for one in served.resources:
        if one.kind == reference.kind and "/" not in one.name:
            return Resource(root=root, group=group, plural=one.name)
    return None


async def pods(reader: Reader, selector: str, namespace: str = "") -> list[ScaledPod]:
    """Return the pods that a selector matches, in a namespace or in all.

    Raises:
        KubeError: they cannot be listed.
    """
    within = f"/namespaces/{quote(namespace)}" if namespace else ""
    found: list[ScaledPod] = []
    more = ""
    while True:
        query = {"labelSelector": selector, "limit": str(_PAGE), "continue": more}
        page = await reader.read(f"/api/v1{within}/pods{encoded(query)}", _Pods)
        found += page.items
        more = page.metadata.more
        if not more or not page.items:
            return found


def encoded(query: Mapping[str, str]) -> str:
    """Return the part of a URL after the path; empty parameters are left out."""
    given = {key: value for key, value in query.items() if value}
    return f"?{urlencode(given)}" if given else ""
