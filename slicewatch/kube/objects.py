"""The few Kubernetes objects that we read, with only the fields that we use.

Decoded straight from the API server's JSON; what is not declared here is skipped while it is
parsed and never takes memory. Names are Kubernetes' own, in our spelling.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import msgspec


class OwnerReference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who made an object; ``controller`` marks the one that manages it."""

    kind: str
    name: str
    uid: str = ""
    controller: bool = False


class Metadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What every object says of itself. ``deletion_timestamp`` is set once it is to go."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()


class Object(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all: the metadata."""

    metadata: Metadata

    @property
    def key(self) -> tuple[str, str]:
        """Namespace (empty for objects of the cluster) and name."""
        return self.metadata.namespace, self.metadata.name


class ResourceRequirements(msgspec.Struct, frozen=True, kw_only=True):
    """Quantities by resource name; extended resources such as GPUs are whole numbers."""

    requests: dict[str, str] = {}


class Container(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A container of a pod. A ``restart_policy`` of Always makes an init container a sidecar."""

    name: str
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""


class PodSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where a pod runs and what it asks for. ``node_name`` is empty until it is scheduled."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()


class PodStatus(msgspec.Struct, frozen=True, kw_only=True):
    """``phase`` is Pending, Running, Succeeded, Failed or Unknown."""

    phase: str = ""


class Pod(Object, frozen=True, kw_only=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def finished(self) -> bool:
        """Tell whether it has ended for good, so that it uses nothing any more."""
        return self.status.phase in {"Succeeded", "Failed"}


class Node(Object, frozen=True, kw_only=True):
    """A node; only its labels matter to us."""


class ConfigMap(Object, frozen=True, kw_only=True):
    """A ConfigMap."""

    data: dict[str, str] = {}


class EndpointConditions(msgspec.Struct, frozen=True, kw_only=True):
    """None means the same as True for ``ready`` and ``serving``, as False for ``terminating``."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class Endpoint(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One backend of a Service."""

    addresses: tuple[str, ...]
    conditions: EndpointConditions = EndpointConditions()
    node_name: str | None = None


class EndpointPort(msgspec.Struct, frozen=True, kw_only=True):
    """A port of all endpoints of a slice."""

    name: str | None = None
    port: int | None = None


class EndpointSlice(Object, frozen=True, kw_only=True, rename="camel"):
    """A part of the endpoints of a Service. An empty list arrives as null."""

    endpoints: tuple[Endpoint, ...] | None = None
    ports: tuple[EndpointPort, ...] | None = None


O = TypeVar("O", bound=Object)  # noqa: E741 - the one letter of object


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[O]):
    """Where a kind of object is found at the API server, and what it is decoded into."""

    type: type[O]
    name: str
    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return the group and version as objects carry it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the path of one object, of those in a namespace, or of all."""
        root = f"/apis/{self.group}" if self.group else "/api"
        within = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}/{self.version}{within}/{self.plural}" + (f"/{name}" if name else "")


POD: Final = Kind(type=Pod, name="Pod", plural="pods")
NODE: Final = Kind(type=Node, name="Node", plural="nodes", namespaced=False)
CONFIG_MAP: Final = Kind(type=ConfigMap, name="ConfigMap", plural="configmaps")
ENDPOINT_SLICE: Final = Kind(
    type=EndpointSlice, name="EndpointSlice", plural="endpointslices", group="discovery.k8s.io"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a kind a list or a watch is about; by default all.

    Attributes:
        namespace: empty for all namespaces.
        name: of the only object, as field selector.
        labels: equal to these.
    """

    namespace: str = ""
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def query(self) -> dict[str, str]:
        """Return the query parameters of a list or watch."""
        labels = ",".join(f"{key}={value}" for key, value in sorted(self.labels.items()))
        chosen = {"labelSelector": labels}
        chosen["fieldSelector"] = f"metadata.name={self.name}" if self.name else ""
        return {key: value for key, value in chosen.items() if value}

    def takes(self, metadata: Metadata) -> bool:
        """Tell whether an object belongs to it."""
        return (
            self.namespace in {"", metadata.namespace}
            and self.name in {"", metadata.name}
            and all(metadata.labels.get(key) == value for key, value in self.labels.items())
        )
