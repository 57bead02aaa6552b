"""What a metric is, and the four things that one can come from.

A metric is made by a method of its origin, never by its constructor: only then does a type
checker know the type of the reading that the ``value`` function receives, and sees a typo in it.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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
    SECONDS = "seconds"


class Stability(StrEnum):
    """STABLE: name, type, unit and labels stay (labels may be added). ALPHA: may change."""

    ALPHA = "alpha"
    STABLE = "stable"


class Publish(StrEnum):
    """How the values of the ticks become the published one."""

    LATEST = "latest"
    WINDOW_MEAN = "window_mean"
    ACCUMULATED = "accumulated"


class Combine(StrEnum):
    """How the devices of one pod, node or namespace become one value."""

    MEAN = "mean"
    SUM = "sum"


class Attribution(StrEnum):
    """What a pod that shares a device with others is given."""

    WORKLOAD_SHARE = "workload_share"
    OWN_PART = "own_part"


class Label(StrEnum):
    """Every label name that a series of ours may carry, but for the configured static ones."""

    GPU = "gpu"
    UUID = "uuid"
    MODEL = "model"
    NODE = "node"
    GPU_INSTANCE = "gpu_instance"
    COMPUTE_INSTANCE = "compute_instance"
    PROFILE = "profile"
    PLACEMENT = "placement"
    PCI_BUS_ID = "pci_bus_id"
    SERIAL = "serial"
    BOARD = "board"
    VBIOS = "vbios"
    DRIVER = "driver"
    NAMESPACE = "namespace"
    POD = "pod"
    CONTAINER = "container"
    RESOURCE = "resource"
    REPLICA = "replica"
    PHASE = "phase"
    METRIC = "metric"
    REASON = "reason"
    PROBE = "probe"
    API = "api"
    CODE = "code"
    VERSION = "version"
    XID = "xid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The closed range in which a value can be true; outside it, it is rejected and counted."""

    low: float
    high: float

    def hold(self, value: float) -> bool:
        """Tell whether ``value`` lies inside; NaN never does."""
        return self.low <= value <= self.high


PERCENT = Limits(low=0, high=100)
# Larger than any GPU has for years to come, smaller than every "not available" sentinel.
BYTES = Limits(low=0, high=2**50)
WATTS = Limits(low=0, high=20_000)
CELSIUS = Limits(low=-50, high=150)
MEGAHERTZ = Limits(low=0, high=10_000)
COUNT = Limits(low=0, high=2**53)
FLAG = Limits(low=0, high=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """How the adapter serves a metric on pods, nodes and namespaces."""

    combine: Combine
    attribution: Attribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(Generic[R]):
    """One metric family. Made by ``Probe``, ``Derived``, ``Cluster`` or ``Own`` only.

    Attributes:
        origin: what it comes from.
        value: pure; reading in, value in ``unit`` out, None for "no sample".
        weight: seconds that a reading describes, for window means; without it, or where it
            returns None, the time since the reading before it.
        core: on ``/metrics`` whatever families the user chose.
        windowed: mean and maximum over the window travel in the snapshot.
    """

    name: str
    kind: Kind
    help: str
    unit: Unit
    origin: "Origin"
    scopes: frozenset[Scope]
    value: Callable[[R], float | None] | None = None
    weight: Callable[[R], float | None] | None = None
    labels: tuple[Label, ...] = ()
    limits: Limits = COUNT
    publish: Publish = Publish.LATEST
    windowed: bool = False
    stability: Stability = Stability.ALPHA
    core: bool = False
    serve: Serve | None = None
    buckets: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(Generic[R]):
    """One NVML read.

    Attributes:
        name: what logs, metrics and error messages call it.
        reading: the dataclass that it returns.
        scopes: the devices that it can be asked of.
        interval_seconds: how often it is read at most; 0 means every tick.
        consistent: a reading that fails this is rejected as a whole.
    """

    name: str
    reading: type[R]
    scopes: frozenset[Scope]
    interval_seconds: float = 0
    consistent: Callable[[R], bool] | None = None

    def gauge(
        self,
        name: str,
        *,
        help: str,  # noqa: A002 - Prometheus calls it so
        unit: Unit,
        limits: Limits,
        value: Callable[[R], float | None],
        weight: Callable[[R], float | None] | None = None,
        publish: Publish = Publish.LATEST,
        windowed: bool = False,
        stability: Stability = Stability.ALPHA,
        serve: Serve | None = None,
    ) -> Metric[R]:
        """Declare a gauge that is computed from this probe's reading."""
        return Metric(
            name=name, kind=Kind.GAUGE, help=help, unit=unit, origin=self, scopes=self.scopes,
            value=value, weight=weight, limits=limits, publish=publish,
            windowed=windowed or publish is Publish.WINDOW_MEAN, stability=stability, serve=serve,
        )  # fmt: skip

    def counter(
        self,
        name: str,
        *,
        help: str,  # noqa: A002
        unit: Unit,
        value: Callable[[R], float | None],
        publish: Publish = Publish.LATEST,
        limits: Limits = COUNT,
    ) -> Metric[R]:
        """Declare a counter: NVML's own, or (ACCUMULATED) the sum of what each reading adds."""
        return Metric(
            name=name, kind=Kind.COUNTER, help=help, unit=unit, origin=self, scopes=self.scopes,
            value=value, limits=limits, publish=publish,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Generic[R]):
    """What the exporter works out from more than one reading: identity, presence, tenants."""

    name: str
    reading: type[R]
    scopes: frozenset[Scope]

    def gauge(
        self,
        name: str,
        *,
        help: str,  # noqa: A002
        unit: Unit,
        limits: Limits,
        value: Callable[[R], float | None],
        labels: tuple[Label, ...] = (),
        core: bool = False,
    ) -> Metric[R]:
        """Declare a gauge over what was worked out."""
        return Metric(
            name=name, kind=Kind.GAUGE, help=help, unit=unit, origin=self, scopes=self.scopes,
            value=value, labels=labels, limits=limits, core=core,
        )  # fmt: skip

    def info(self, name: str, *, help: str, labels: tuple[Label, ...]) -> Metric[R]:  # noqa: A002
        """Declare a family of constant 1 whose labels are the facts."""
        return Metric(
            name=name, kind=Kind.INFO, help=help, unit=Unit.NONE, origin=self, scopes=self.scopes,
            labels=labels, core=True,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster(Generic[R]):
    """What the adapter works out from the pods and nodes of the cluster."""

    name: str
    reading: type[R]

    def gauge(
        self,
        name: str,
        *,
        help: str,  # noqa: A002
        unit: Unit,
        value: Callable[[R], float | None],
        labels: tuple[Label, ...],
    ) -> Metric[R]:
        """Declare a gauge over the state of the cluster."""
        return Metric(
            name=name, kind=Kind.GAUGE, help=help, unit=unit, origin=self,
            scopes=frozenset({Scope.CLUSTER}), value=value, labels=labels, core=True,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A process of ours speaking of itself; prometheus-client holds the values."""

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


class CatalogError(ValueError):
    """A declaration contradicts a rule of the catalog."""


@dataclass(frozen=True)
class Catalog:
    """All metrics, by name, in the order of declaration. Checks itself when it is built."""

    metrics: tuple[Metric[Any], ...]
    _by_name: Mapping[str, Metric[Any]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        by_name: dict[str, Metric[Any]] = {}
        for metric in self.metrics:
            if metric.name in by_name:
                raise CatalogError(f"{metric.name} is declared twice")
            _check(metric)
            by_name[metric.name] = metric
        object.__setattr__(self, "_by_name", by_name)

    def __getitem__(self, name: str) -> Metric[Any]:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Metric[Any]]:
        return iter(self.metrics)

    def of(self, *origins: type) -> tuple[Metric[Any], ...]:
        """Return the metrics whose origin is of one of these classes."""
        return tuple(m for m in self.metrics if isinstance(m.origin, origins))

    def probes(self) -> tuple[Probe[Any], ...]:
        """Return every probe that a metric is made from, once each."""
        return tuple(dict.fromkeys(m.origin for m in self.metrics if isinstance(m.origin, Probe)))

    def served(self) -> tuple[Metric[Any], ...]:
        """Return the metrics that the adapter serves."""
        return tuple(m for m in self.metrics if m.serve is not None)


# The names that the users configured are older than the naming rules: kept to the letter.
NAMES_OF_THE_USERS = frozenset({
    "gpu_utilization", "gpu_memory_utilization", "gpu_memory_used_bytes", "gpu_memory_total_bytes",
    "gpu_power_usage_watts", "gpu_temperature_celsius", "gpu_sm_clock_mhz", "gpu_mem_clock_mhz",
})  # fmt: skip


def _check(metric: Metric[Any]) -> None:
    for rule, broken in (*_broken_names(metric), *_broken_facts(metric)):
        if broken:
            raise CatalogError(f"{metric.name}: {rule}")


def _broken_names(metric: Metric[Any]) -> Iterable[tuple[str, bool]]:
    name, unit = metric.name, metric.unit
    stem = name.removesuffix("_total")
    units = [u for u in Unit if u is not Unit.NONE and stem.endswith(f"_{u}")]
    yield "a name is lower-case words joined by _", not _NAME.fullmatch(name)
    yield (
        "a counter's name ends in _total",
        (metric.kind is Kind.COUNTER) != name.endswith("_total"),
    )
    yield (
        "an info family's name ends in _info",
        (metric.kind is Kind.INFO) != name.endswith("_info"),
    )
    yield (
        "the unit comes last in the name",
        unit is not Unit.NONE and name not in NAMES_OF_THE_USERS and unit not in units,
    )
    yield "a name that ends in a unit has that unit", units not in ([], [unit])


def _broken_facts(metric: Metric[Any]) -> Iterable[tuple[str, bool]]:
    limits, buckets = metric.limits, metric.buckets
    yield (
        "the help is one sentence",
        not _SENTENCE.fullmatch(metric.help) or ". " in metric.help,
    )
    yield "no label comes twice", len(set(metric.labels)) != len(metric.labels)
    yield "limits are a finite range", not -math.inf < limits.low < limits.high < math.inf
    yield "a counter is never below 0", metric.kind is Kind.COUNTER and limits.low < 0
    yield "a histogram has buckets, others none", (metric.kind is Kind.HISTOGRAM) != bool(buckets)
    yield "buckets rise", list(buckets) != sorted(set(buckets))
    yield "only windowed metrics are served", metric.serve is not None and not metric.windowed


_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_SENTENCE = re.compile(r"[A-Z0-9][^\n]*[^.\n]\.")
