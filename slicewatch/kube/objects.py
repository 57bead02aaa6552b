"""The few Kubernetes objects that we read, with only the fields that we use.

Decoded straight from the API server's JSON; whatever is not declared here is skipped by the
parser and takes no memory. Names are Kubernetes' own, in snake case.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Generic, TypeVar

import msgspec


class OwnerReference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An owner of an object; ``controller`` marks the one that manages it."""

    kind: str
    name: str
    controller: bool = False


class Annotations(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, rename=lambda f: f"prometheus.io/{f}"
):
    """The annotations that offer a pod's metrics; all others are skipped. Empty where not set."""

    scrape: str = ""
    port: str = ""
    path: str = ""
    scheme: str = ""


class Metadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What every object says about itself."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: Annotations = Annotations()
    owner_references: tuple[OwnerReference, ...] = ()


class Object(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all objects: the metadata."""

    metadata: Metadata

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name


class ResourceRequirements(msgspec.Struct, frozen=True, kw_only=True):
    """Quantities by resource name; extended resources such as GPUs are whole numbers."""

    requests: dict[str, str] = {}


class Container(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A container of a pod. A ``restart_policy`` of Always makes an init container a sidecar."""

    name: str
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""


class ResourceClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's claim on devices by dynamic resource allocation; it does not say of which kind."""

    name: str


class PodSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where a pod runs and what it requests. ``node_name`` is empty until it is scheduled.

    The API server fills in ``priority`` and ``preemption_policy`` from the priority class.
    """

    node_name: str = ""
    node_selector: dict[str, str] = {}
    priority_class_name: str = ""
    priority: int = 0
    preemption_policy: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resource_claims: tuple[ResourceClaim, ...] = ()


class PodCondition(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of one aspect of a pod's state; ``status`` is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class PodStatus(msgspec.Struct, frozen=True, kw_only=True):
    """``phase`` is Pending, Running, Succeeded, Failed or Unknown; ``pod_ip`` may come later."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    pod_ip: str = msgspec.field(default="", name="podIP")

    def __post_init__(self) -> None:
        """Keep only why it has no node: all conditions of a large cluster's pods are megabytes."""
        unmet = (c for c in self.conditions if c.type == "PodScheduled" and c.status != "True")
        msgspec.structs.force_setattr(self, "conditions", tuple(unmet))


class PodIdentity(Object, frozen=True, kw_only=True):
    """Who a pod is and whether it still runs, for readers who do not ask what it requests."""

    status: PodStatus = PodStatus()

    @property
    def finished(self) -> bool:
        """Tell whether it has ended for good and no longer uses anything."""
        return self.status.phase in {"Succeeded", "Failed"}


class Pod(PodIdentity, frozen=True, kw_only=True):
    """A pod."""

    spec: PodSpec = PodSpec()


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Whether new pods may come to a node; a cordoned one takes none."""

    unschedulable: bool = False


class NodeSaying(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A condition of a node without its times, which change with every sign of life."""

    type: str
    status: str
    message: str = ""


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a node offers to pods, quantities by resource name, and what is said of it."""

    allocatable: dict[str, str] = {}
    conditions: tuple[NodeSaying, ...] = ()


class Node(Object, frozen=True, kw_only=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ResourceQuotaStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What is enforced, and how much of it is used: quantities by the quota's own names."""

    hard: dict[str, str] = {}
    used: dict[str, str] = {}


class ResourceQuota(Object, frozen=True, kw_only=True):
    """A bound on what the pods of a namespace may request together."""

    status: ResourceQuotaStatus = ResourceQuotaStatus()


class PriorityClass(Object, frozen=True, kw_only=True, rename="camel"):
    """What a pod's priority is called. A ``preemption_policy`` of Never evicts nobody."""

    value: int
    preemption_policy: str = ""


class ConfigMap(Object, frozen=True, kw_only=True):
    """A ConfigMap."""

    data: dict[str, str] = {}


class Secret(Object, frozen=True, kw_only=True):
    """A Secret; its values arrive in base64 and are held as bytes."""

    data: dict[str, bytes] = {}


class ServiceReference(msgspec.Struct, frozen=True, kw_only=True):
    """The Service that a request is sent to."""

    namespace: str
    name: str


class APIServiceSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who serves a version of an API group: a Service, or kube-apiserver itself (None)."""

    service: ServiceReference | None = None
    ca_bundle: bytes = b""
    insecure_skip_tls_verify: bool = msgspec.field(default=False, name="insecureSkipTLSVerify")


class APIService(Object, frozen=True, kw_only=True):
    """A version of an API group, named ``<version>.<group>``."""

    spec: APIServiceSpec = APIServiceSpec()


class EndpointConditions(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an endpoint; null means the same as False."""

    terminating: bool | None = None


class ObjectReference(msgspec.Struct, frozen=True, kw_only=True):
    """Which object an endpoint stands for."""

    namespace: str = ""
    name: str = ""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One backend of a Service."""

    addresses: tuple[str, ...]
    conditions: EndpointConditions = EndpointConditions()
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(msgspec.Struct, frozen=True, kw_only=True):
    """A port of all endpoints of a slice."""

    name: str | None = None
    port: int | None = None


class EndpointSlice(Object, frozen=True, kw_only=True, rename="camel"):
    """Some of a Service's endpoints. An empty list arrives as null."""

    endpoints: tuple[Endpoint, ...] | None = None
    ports: tuple[EndpointPort, ...] | None = None


class DeviceAttribute(msgspec.Struct, frozen=True, kw_only=True):
    """An attribute of a device. Those that are not text (numbers, versions) are empty here."""

    string: str = ""


class PublishedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device as its DRA driver offers it; attributes without a domain are of the driver's."""

    name: str
    attributes: dict[str, DeviceAttribute] = {}


class ResourcePool(msgspec.Struct, frozen=True, kw_only=True):
    """The pool that a slice is part of; slices of an older generation no longer count."""

    name: str
    generation: int


class ResourceSliceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the devices of a pool."""

    driver: str
    pool: ResourcePool
    devices: tuple[PublishedDevice, ...] = ()


class ResourceSlice(Object, frozen=True, kw_only=True):
    """What a DRA driver offers of one node, or a part of it."""

    spec: ResourceSliceSpec


O = TypeVar("O", bound=Object)  # noqa: E741 - O for object


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[O]):
    """Where the API server serves a kind of object, and what it is decoded into."""

    type: type[O]
    name: str
    plural: str
    group: str = ""
    version: str = "v1"

    @property
    def api_version(self) -> str:
        """Return group and version as written in objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the path of one object, of a namespace's objects, or of all."""
        root = f"/apis/{self.group}" if self.group else "/api"
        within = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}/{self.version}{within}/{self.plural}" + (f"/{name}" if name else "")


POD: Final = Kind(type=Pod, name="Pod", plural="pods")
POD_IDENTITY: Final = Kind(type=PodIdentity, name="Pod", plural="pods")
NODE: Final = Kind(type=Node, name="Node", plural="nodes")
NODE_METADATA: Final = Kind(type=Object, name="Node", plural="nodes")
CONFIG_MAP: Final = Kind(type=ConfigMap, name="ConfigMap", plural="configmaps")
SECRET: Final = Kind(type=Secret, name="Secret", plural="secrets")
API_SERVICE: Final = Kind(
    type=APIService, name="APIService", plural="apiservices", group="apiregistration.k8s.io"
)
RESOURCE_QUOTA: Final = Kind(type=ResourceQuota, name="ResourceQuota", plural="resourcequotas")
PRIORITY_CLASS: Final = Kind(
    type=PriorityClass, name="PriorityClass", plural="priorityclasses", group="scheduling.k8s.io"
)
ENDPOINT_SLICE: Final = Kind(
    type=EndpointSlice, name="EndpointSlice", plural="endpointslices", group="discovery.k8s.io"
)
RESOURCE_SLICE: Final = Kind(
    type=ResourceSlice, name="ResourceSlice", plural="resourceslices", group="resource.k8s.io"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a kind to list or watch; all of them by default.

    Attributes:
        namespace: empty for all namespaces.
        name: of a single object, as a field selector.
        node: of pods and resource slices, the node that they are on, as a field selector. The
            list comes from the API server's cache and may be a little old: a DaemonSet that starts
            on every node at once must not read the whole store for each of them.
        labels: that objects must carry.
    """

    namespace: str = ""
    name: str = ""
    node: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def query(self) -> dict[str, str]:
        """Return the query parameters for a list or watch, which has a version of its own."""
        labels = ",".join(f"{key}={value}" for key, value in sorted(self.labels.items()))
        fields = {"metadata.name": self.name, "spec.nodeName": self.node}
        chosen = {
            "labelSelector": labels,
            "fieldSelector": ",".join(f"{key}={value}" for key, value in fields.items() if value),
            "resourceVersion": "0" if self.node else "",
        }
        return {key: value for key, value in chosen.items() if value}

    def takes(self, metadata: Metadata, node: str = "") -> bool:
        """Tell whether it includes an object that is on ``node``."""
        return (
            self.namespace in {"", metadata.namespace}
            and self.name in {"", metadata.name}
            and self.node in {"", node}
            and all(metadata.labels.get(key) == value for key, value in self.labels.items())
        )
