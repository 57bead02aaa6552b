"""What a metric is, and the four things it can come from.

A metric is made by a method of its origin, never by its constructor: only then does a type
checker know the type of the reading that the ``value`` function receives, and sees a typo in it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class Scope(StrEnum):
    """What kind of thing a series describes."""

    GPU = "gpu"
    MIG = "mig"
    TENANT = "tenant"
    CLUSTER = "cluster"
    PROCESS = "process"


class Kind(StrEnum):
    """Prometheus type; the value is its name in ``# TYPE``."""

    GAUGE = "gauge"
    COUNTER = "counter"
    INFO = "info"
    HISTOGRAM = "histogram"


class Unit(StrEnum):
    """Unit of a value. NONE is a plain count or a flag."""

    NONE = ""
    PERCENT = "percent"
    RATIO = "ratio"
    BYTES = "bytes"
    WATTS = "watts"
    JOULES = "joules"
    CELSIUS = "celsius"
    MEGAHERTZ = "mhz"
    HERTZ = "hertz"
    SECONDS = "seconds"
    BYTES_PER_SECOND = "bytes_per_second"
    DOLLARS_PER_HOUR = "dollars_per_hour"


class Stability(StrEnum):
    """STABLE: name, type, unit and labels stay (labels may be added). ALPHA: may change."""

    ALPHA = "alpha"
    STABLE = "stable"


class Publish(StrEnum):
    """How the values of many ticks become the published one."""

    LATEST = "latest"
    WINDOW_MEAN = "window_mean"
    ACCUMULATED = "accumulated"


class Combine(StrEnum):
    """How the devices of one pod, node or namespace become one value."""

    MEAN = "mean"
    SUM = "sum"
    MAX = "max"


class Attribution(StrEnum):
    """What is attributed to a pod that shares a device with others."""

    WORKLOAD_SHARE = "workload_share"
    OWN_PART = "own_part"
    DEVICE = "device"


class Object(StrEnum):
    """Kinds of objects of Kubernetes that have values; the values are their plural names."""

    POD = "pods"
    NODE = "nodes"
    NAMESPACE = "namespaces"


class Label(StrEnum):
    """Every label name that our series may have, except for the configured static ones."""

    GPU = "gpu"
    UUID = "uuid"
    MODEL = "model"
    NODE = "node"
    GPU_INSTANCE = "gpu_instance"
    COMPUTE_INSTANCE = "compute_instance"
    PROFILE = "profile"
    PLACEMENT = "placement"
    SM_COUNT = "sm_count"
    PCI_BUS_ID = "pci_bus_id"
    SERIAL = "serial"
    BOARD = "board"
    VBIOS = "vbios"
    DRIVER = "driver"
    NAMESPACE = "namespace"
    POD = "pod"
    CONTAINER = "container"
    POD_UID = "pod_uid"
    CLAIM = "claim"
    CLAIM_NAMESPACE = "claim_namespace"
    WORKLOAD_KIND = "workload_kind"
    WORKLOAD = "workload"
    RESOURCE = "resource"
    REPLICA = "replica"
    PHASE = "phase"
    XID = "xid"
    CAUSE = "cause"
    KIND = "kind"
    LINK = "link"
    DIRECTION = "direction"
    FAN = "fan"
    MODE = "mode"
    STATE = "state"
    LIMIT = "limit"
    ENGINE = "engine"
    OBJECT = "object"
    VERSION = "version"
    VGPU = "vgpu"
    VGPU_TYPE = "vgpu_type"
    VM = "vm"
    POLICY = "policy"
    SOURCE = "source"
    METRIC = "metric"
    REASON = "reason"
    PROBE = "probe"
    RULE = "rule"
    BACKEND = "backend"
    API = "api"
    GROUP = "group"
    CODE = "code"
    LOCATION = "location"
    ACTION = "action"
    AVAILABILITY = "availability"
    ARCHITECTURE = "architecture"
    CUDA_CAPABILITY = "cuda_capability"
    NVML = "nvml"
    CUDA = "cuda"
    PRODUCT = "product"
    MIG_CONFIG = "mig_config"
    REPLICAS = "replicas"
    POOL = "pool"
    PRIORITY_CLASS = "priority_class"
    QUOTA = "quota"
    CHECK = "check"
    CONDITION = "condition"
    OUTCOME = "outcome"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The closed range of possible values; anything outside is rejected and counted."""

    low: float
    high: float

    def hold(self, value: float) -> bool:
        """Tell whether ``value`` is inside; NaN never is."""
        return self.low <= value <= self.high


PERCENT = Limits(low=0, high=100)
# More than any GPU will have for years, less than every "not available" sentinel.
BYTES = Limits(low=0, high=2**50)
WATTS = Limits(low=0, high=20_000)
CELSIUS = Limits(low=-50, high=150)
MEGAHERTZ = Limits(low=0, high=20_000)
HERTZ = Limits(low=0, high=20e9)
COUNT = Limits(low=0, high=2**53)
FLAG = Limits(low=0, high=1)
RATIO = FLAG

# What a labelled metric's value function returns: a number per text, or texts, of its labels.
Labelled = Mapping[str, float | None] | Mapping[tuple[str, ...], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """How the adapter serves a metric.

    Attributes:
        combine: unless a request says otherwise.
        objects: the kinds that have it.
        device_name: under this name pods get the device's own value, whoever shares the device.
        window_seconds: of a value with a window of its own; None for the exporter's.
    """

    combine: Combine
    attribution: Attribution
    objects: frozenset[Object] = frozenset(Object)
    device_name: str = ""
    window_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(Generic[R]):
    """One metric family. Made by ``Probe``, ``Derived``, ``Cluster`` or ``Own`` only.

    Attributes:
        origin: what it comes from.
        value: pure; reading in, value in ``unit`` out, None for "no sample". Where there are
            ``labels``, a mapping from their values; what it lacks has no series.
        weight: seconds that a reading covers, for window means; without it, or where it returns
            None, the time since the previous reading.
        core: always on ``/metrics``, whichever families the user chose.
        optional: not on ``/metrics`` unless the user chose it by name: costly to read, or wide.
        windowed: its mean over the window travels in the snapshot.
    """

    name: str
    kind: Kind
    help: str
    unit: Unit
    origin: "Origin"
    scopes: frozenset[Scope]
    value: Callable[[R], float | Labelled | None] | None = None
    weight: Callable[[R], float | None] | None = None
    labels: tuple[Label, ...] = ()
    limits: Limits = COUNT
    publish: Publish = Publish.LATEST
    windowed: bool = False
    stability: Stability = Stability.ALPHA
    core: bool = False
    optional: bool = False
    serve: Serve | None = None
    buckets: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(Generic[R]):
    """One NVML read.

    Attributes:
        name: its name in logs, metrics and error messages.
        reading: the dataclass that it returns.
        scopes: the kinds of device that it can be read from.
        interval_seconds: shortest time between two reads; 0 means every tick.
        optional: read only while one of its metrics is chosen.
        consistent: a reading that fails this is rejected as a whole.
    """

    name: str
    reading: type[R]
    scopes: frozenset[Scope]
    interval_seconds: float = 0
    optional: bool = False
    consistent: Callable[[R], bool] | None = None

    def gauge(
        self,
        name: str,
        *,
        help: str,  # noqa: A002 - Prometheus calls it so
        unit: Unit,
        limits: Limits,
        value: Callable[[R], float | Labelled | None],
        labels: tuple[Label, ...] = (),
        weight: Callable[[R], float | None] | None = None,
        publish: Publish = Publish.LATEST,
        windowed: bool = False,
        stability: Stability = Stability.ALPHA,
        optional: bool = False,
        serve: Serve | None = None,
    ) -> Metric[R]:
        """Declare a gauge that is computed from this probe's reading."""
        return Metric(
            name=name, kind=Kind.GAUGE, help=help, unit=unit, origin=self, scopes=self.scopes,
            value=value, weight=weight, labels=labels, limits=limits, publish=publish,
            windowed=windowed or publish is Publish.WINDOW_MEAN, stability=stability, serve=serve,
            optional=optional or self.optional,
        )  # fmt: skip

    def counter(
        self,
        name: str,
        *,
        help: str,  # noqa: A002
        unit: Unit,
        value: Callable[[R], float | Labelled | None],
        labels: tuple[Label, ...] = (),
        publish: Publish = Publish.LATEST,
        limits: Limits = COUNT,
        optional: bool = False,
    ) -> Metric[R]:
        """Declare a counter: NVML's own, or (ACCUMULATED) the sum of what each reading adds."""
        return Metric(
            name=name, kind=Kind.COUNTER, help=help, unit=unit, origin=self, scopes=self.scopes,
            value=value, labels=labels, limits=limits, publish=publish,
            optional=optional or self.optional,
        )  # fmt: skip

    def info(
        self,
        name: str,
        *,
        help: str,  # noqa: A002
        value: Callable[[R], Labelled | None],
        labels: tuple[Label, ...],
        optional: bool = False,
    ) -> Metric[R]:
        """Declare a family of constant 1 whose labels are facts that this probe reads."""
        return Metric(
            name=name, kind=Kind.INFO, help=help, unit=Unit.NONE, origin=self, scopes=self.scopes,
            value=value, labels=labels, limits=FLAG, optional=optional or self.optional,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Generic[R]):
    """What the exporter derives from more than one reading: identity, presence, tenants.

    Attributes:
        reads: probes that it is derived from, beside what the metrics of other origins read.
    """

    name: str
    reading: type[R]
    scopes: frozenset[Scope]
    reads: tuple[Probe[Any], ...] = ()

    def gauge(
        self,
        name: str,
        *,
        help: str,  # noqa: A002
        unit: Unit,
        limits: Limits,
        value: Callable[[R], float | Labelled | None],
        labels: tuple[Label, ...] = (),
        core: bool = False,
        optional: bool = False,
        serve: Serve | None = None,
    ) -> Metric[R]:
        """Declare a gauge over what was derived; what is served of it is a mean over a window."""
        return Metric(
            name=name, kind=Kind.GAUGE, help=help, unit=unit, origin=self, scopes=self.scopes,
            value=value, labels=labels, limits=limits, core=core, optional=optional,
            windowed=serve is not None, serve=serve,
        )  # fmt: skip

    def counter(
        self,
        name: str,
        *,
        help: str,  # noqa: A002
        unit: Unit,
        value: Callable[[R], float | Labelled | None],
        labels: tuple[Label, ...] = (),
        core: bool = False,
    ) -> Metric[R]:
        """Declare a counter that the exporter keeps while it lives."""
        return Metric(
            name=name, kind=Kind.COUNTER, help=help, unit=unit, origin=self, scopes=self.scopes,
            value=value, labels=labels, core=core,
        )  # fmt: skip

    def info(self, name: str, *, help: str, labels: tuple[Label, ...]) -> Metric[R]:  # noqa: A002
        """Declare a family of constant 1 whose labels are the facts."""
        return Metric(
            name=name, kind=Kind.INFO, help=help, unit=Unit.NONE, origin=self, scopes=self.scopes,
            labels=labels, core=True,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster(Generic[R]):
    """What the adapter derives from the objects of the cluster.

    Attributes:
        sparse: only what is there has a series: what has none counts 0, instead of being unknown.
    """

    name: str
    reading: type[R]
    sparse: bool = False

    def gauge(
        self,
        name: str,
        *,
        help: str,  # noqa: A002
        unit: Unit,
        value: Callable[[R], float | Labelled | None],
        labels: tuple[Label, ...],
        limits: Limits = COUNT,
    ) -> Metric[R]:
        """Declare a gauge over the state of the cluster."""
        return Metric(
            name=name, kind=Kind.GAUGE, help=help, unit=unit, origin=self, limits=limits,
            scopes=frozenset({Scope.CLUSTER}), value=value, labels=labels, core=True,
        )  # fmt: skip

    def counter(
        self,
        name: str,
        *,
        help: str,  # noqa: A002
        unit: Unit,
        value: Callable[[R], float | Labelled | None],
        labels: tuple[Label, ...],
    ) -> Metric[R]:
        """Declare a counter that the adapter keeps while it lives."""
        return Metric(
            name=name, kind=Kind.COUNTER, help=help, unit=unit, origin=self,
            scopes=frozenset({Scope.CLUSTER}), value=value, labels=labels, core=True,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """What one of our processes reports about itself; prometheus-client holds the values."""

    name: str

    def metric(
        self,
        kind: Kind,
        name: str,
        *,
        help: str,  # noqa: A002
        unit: Unit = Unit.NONE,
        labels: tuple[Label, ...] = (),
        buckets: tuple[float, ...] = (),
    ) -> Metric[None]:
        """Declare a metric about this process."""
        return Metric(
            name=name, kind=kind, help=help, unit=unit, origin=self, labels=labels,
            scopes=frozenset({Scope.PROCESS}), buckets=buckets, core=True,
        )  # fmt: skip


Origin = Probe[Any] | Derived[Any] | Cluster[Any] | Own
