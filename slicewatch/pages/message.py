"""What a page is told: the state of a node, or of a fleet, as one JSON object per event.

The exporter tells its page a ``NodeState``, the adapter's page gets a ``FleetState``, and the
``NodeState`` of one node while somebody looks at it. What is unknown is absent: the page says so
and draws nothing in its place. Percentages are 0 to 100, ratios 0 to 1.
"""

from enum import StrEnum

import msgspec

Line = tuple[float | None, ...]
"""The last minutes of a value, the oldest first, evenly spaced; None where it was unknown."""


class Health(StrEnum):
    """How a thing is, the worst first. UNKNOWN is never shown as well."""

    BAD = "bad"
    WARNING = "warning"
    UNKNOWN = "unknown"
    GOOD = "good"


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something about the health of a GPU or node that a person should know.

    Attributes:
        text: one short sentence: what is wrong, with its number.
        runbook: name of its page under ``docs/runbooks/``; empty if there is none.
    """

    health: Health
    text: str
    runbook: str = ""


class Lines(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sparklines, each as long as the others; empty where there is nothing to draw."""

    utilization: Line = ()
    memory: Line = ()
    power: Line = ()
    contention: Line = ()


class TenantState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who sits on a device: a container, or the processes of the host (all names empty).

    Attributes:
        replicas: how many of the device's replicas it holds; 0 if it was only seen to work there.
        busy_ratio: share of the window for which it kept the device busy.
    """

    namespace: str = ""
    pod: str = ""
    container: str = ""
    workload: str = ""
    replicas: int = 0
    busy_ratio: float | None = None
    contention_ratio: float | None = None
    memory_used_bytes: float | None = None


class DeviceState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A whole GPU that is not partitioned, or one MIG device.

    Attributes:
        placement_start, placement_size: in memory slices of its GPU; None for a whole GPU.
        replicas: as how many devices the device plugin offers it; None if it is not shared.
        reasons: why a value is absent, by its field here.
        tenants_known: whether no tenants means that nobody holds it.
    """

    uuid: str
    profile: str = ""
    gpu_instance: int | None = None
    compute_instance: int | None = None
    placement_start: int | None = None
    placement_size: int | None = None
    utilization: float | None = None
    memory_used_bytes: float | None = None
    memory_total_bytes: float | None = None
    contention_ratio: float | None = None
    pressure_ratio: float | None = None
    replicas: int | None = None
    tenants: tuple[TenantState, ...] = ()
    tenants_known: bool = False
    reasons: dict[str, str] = {}
    lines: Lines = Lines()


class GpuState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A GPU of a node.

    Attributes:
        memory_slices: how many the model has under MIG; None if it is not partitioned.
        age_seconds: since it was read; None before the first time.
        devices: itself, or its MIG devices by placement.
    """

    uuid: str
    index: int
    model: str
    up: bool
    health: Health
    findings: tuple[Finding, ...] = ()
    mig: bool = False
    memory_slices: int | None = None
    age_seconds: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    temperature_celsius: float | None = None
    memory_used_bytes: float | None = None
    memory_total_bytes: float | None = None
    lines: Lines = Lines()
    devices: tuple[DeviceState, ...] = ()


class NodeState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node and its GPUs.

    Attributes:
        cordoned: None where that is not known, as on the exporter's page.
        age_seconds: since the node's values arrived; None while there are none.
        step_seconds: between two points of its lines.
    """

    node: str
    health: Health
    findings: tuple[Finding, ...] = ()
    cordoned: bool | None = None
    driver: str = ""
    pool: str = ""
    age_seconds: float | None = None
    window_seconds: float | None = None
    step_seconds: float | None = None
    gpus: tuple[GpuState, ...] = ()


class Totals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Counts and means over a node, a pool or the fleet; each device counts once.

    Attributes:
        devices: whole GPUs that are not partitioned, and MIG devices.
        known: how many of the devices have a utilization that is known and recent.
        allocated: devices with a tenant; None where nobody's tenants are known.
        unwell: GPUs with a finding that is bad.
        contention_max_ratio: of the device where it is highest.
    """

    nodes: int = 0
    gpus: int = 0
    devices: int = 0
    known: int = 0
    allocated: int | None = None
    unwell: int = 0
    silent: int = 0
    cordoned: int = 0
    utilization: float | None = None
    memory_used_bytes: float | None = None
    memory_total_bytes: float | None = None
    power_watts: float | None = None
    contention_max_ratio: float | None = None


class NodeRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node among those of its pool.

    Attributes:
        utilizations: of its devices in order, for a strip of cells; None where unknown.
    """

    node: str
    health: Health
    totals: Totals
    cordoned: bool = False
    finding: str = ""
    age_seconds: float | None = None
    utilizations: Line = ()


class Pool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Nodes with the same value of the pool label.

    Attributes:
        name: empty for nodes without that label.
        nodes: only of the pool that the reader has opened.
    """

    name: str
    health: Health
    totals: Totals
    lines: Lines = Lines()
    nodes: tuple[NodeRow, ...] = ()


class FleetState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All nodes of the cluster that have GPUs.

    Attributes:
        pool_label: of nodes, that tells pools apart.
        pods_known: whether the pods of the cluster are known, and up to date.
    """

    pool_label: str
    totals: Totals
    pools: tuple[Pool, ...] = ()
    pods_known: bool = True
    step_seconds: float | None = None


_encoder = msgspec.json.Encoder()


def encode(state: NodeState | FleetState) -> bytes:
    """Return the JSON of a state, without line breaks."""
    return _encoder.encode(state)
