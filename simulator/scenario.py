"""The scenario language: what a fleet consists of, who uses it, what breaks when.

These structs are the language: their field names are the keys of the YAML file. Files are read,
with errors that help to fix them, by ``simulator.reading``. Times count from the start of the
fleet, in seconds.
"""

from enum import StrEnum
from typing import Literal

import msgspec

from simulator import load

# NVML takes one sample every 1/6 s on most boards, and buffers 120 of them.
SAMPLE_PERIOD_SECONDS = 0.166667
SAMPLES_KEPT = 120

MigSlots = tuple[str | None, ...]


class Seconds(float):
    """A time: a number of seconds, or text such as ``90s``, ``5m``, ``1h30m``, ``250ms``."""


class Bytes(int):
    """A size: a number of bytes, or text such as ``512MiB`` or ``40GiB``."""


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all parts of a scenario have in common: an unknown key is an error."""


class Step(Part, frozen=True, kw_only=True):
    """A level and when it begins."""

    at: Seconds
    level: float


class Wave(Part, frozen=True, kw_only=True):
    """A sine between two levels; ``phase`` is when it is at the low one."""

    low: float
    high: float
    period: Seconds
    phase: Seconds = Seconds(0)


class Load(Part, frozen=True, kw_only=True):
    """How busy something is over time: steps or a wave.

    Attributes:
        repeat: after how long the steps start over.
    """

    steps: tuple[Step, ...] | None = None
    wave: Wave | None = None
    repeat: Seconds | None = None

    def curve(self) -> load.Signal:
        """Return the load as a function of time."""
        if self.wave is not None:
            up = self.wave
            return load.wave(up.low, up.high, period=up.period, phase=up.phase)
        return load.steps([(s.at, s.level) for s in self.steps or ()], period=self.repeat)


class SharingMode(StrEnum):
    """How the device plugin shares one device between containers."""

    NONE = "none"
    TIME_SLICING = "time_slicing"
    MPS = "mps"


class Sharing(Part, frozen=True, kw_only=True):
    """Sharing of each device of a group.

    Attributes:
        replicas: how many containers can share one device.
    """

    mode: SharingMode = SharingMode.NONE
    replicas: int = 1


class GpuGroup(Part, frozen=True, kw_only=True):
    """Identical GPUs of a node.

    Attributes:
        mig: profiles by MIG index, null for an empty index. Left out: MIG is off; empty list:
            MIG is on without instances.
    """

    model: str
    count: int = 1
    mig: MigSlots | None = None
    sharing: Sharing = Sharing()


class Node(Part, frozen=True, kw_only=True):
    """A machine."""

    name: str
    driver: str = "580.95.05"
    cuda: str = "13.0"
    gpus: tuple[GpuGroup, ...]

    def groups(self) -> tuple[GpuGroup, ...]:
        """Return the group of each GPU, by the index of the GPU."""
        return tuple(group for group in self.gpus for _ in range(group.count))


class Holding(Part, frozen=True, kw_only=True):
    """A device that is allocated to a container.

    Attributes:
        gpu: index on the node.
        mig: index of the MIG device on the GPU.
        replica: which replica of a shared device.
    """

    node: str
    gpu: int
    mig: int | None = None
    replica: int | None = None


class Pod(Part, frozen=True, kw_only=True, rename={"begin": "from"}):
    """A pod of one container that holds devices from its start to its end."""

    name: str
    container: str = "main"
    begin: Seconds = Seconds(0)
    until: Seconds | None = None
    pids: tuple[int, ...] = ()
    devices: tuple[Holding, ...]


class Workload(Part, frozen=True, kw_only=True):
    """Pods that do the same work.

    Attributes:
        load: of each pod, on each device that it holds.
        demand: of all pods together, in devices; the running ones share it evenly.
        memory: what each pod has allocated on each device.
    """

    name: str
    namespace: str = "default"
    load: Load | float | None = None
    demand: Load | float | None = None
    memory: Bytes = Bytes(0)
    pods: tuple[Pod, ...]


class NodeFault(Part, frozen=True, kw_only=True, rename={"lasts": "for"}, tag_field="kind"):
    """Something that goes wrong on a node.

    Attributes:
        lasts: how long it lasts; None: until it is cleared.
        every: after how long it happens again, forever.
    """

    node: str
    at: Seconds = Seconds(0)
    lasts: Seconds | None = None
    every: Seconds | None = None


class GpuFault(NodeFault, frozen=True, kw_only=True):
    """Something that goes wrong with one GPU of a node."""

    gpu: int


class Lost(GpuFault, frozen=True, kw_only=True, tag="lost"):
    """The GPU has fallen off the bus."""


class ResetRequired(GpuFault, frozen=True, kw_only=True, tag="reset_required"):
    """The GPU answers no call until it is reset."""


class Hang(GpuFault, frozen=True, kw_only=True, tag="hang"):
    """Every call on the GPU blocks."""


class Garbage(GpuFault, frozen=True, kw_only=True, tag="garbage"):
    """Every reading is nonsense."""


class Xid(GpuFault, frozen=True, kw_only=True, tag="xid"):
    """The driver reports an Xid."""

    xid: int
    gpu_instance: int | None = None
    compute_instance: int | None = None


class Ecc(GpuFault, frozen=True, kw_only=True, tag="ecc"):
    """A memory error, corrected (single bit) or not (double bit)."""

    bits: Literal["single", "double"]


class MigLayout(GpuFault, frozen=True, kw_only=True, tag="mig_layout"):
    """The GPU is repartitioned; ``false`` turns MIG off."""

    mig: MigSlots | bool

    @property
    def slots(self) -> MigSlots | None:
        """The layout in the form that a group of GPUs has."""
        return None if isinstance(self.mig, bool) else self.mig


class DriverGone(NodeFault, frozen=True, kw_only=True, tag="driver_gone"):
    """The driver is not loaded; afterwards it is loaded again."""


class DriverVersion(NodeFault, frozen=True, kw_only=True, tag="driver_version"):
    """The driver is replaced: NVML works again once restarted, and only after ``for``."""

    version: str


Fault = Lost | ResetRequired | Hang | Garbage | Xid | Ecc | MigLayout | DriverGone | DriverVersion


class Scenario(Part, frozen=True, kw_only=True):
    """A fleet and its story.

    Attributes:
        seed: what uuids and serial numbers are derived from: same seed, same fleet.
    """

    seed: str = "slicewatch"
    nodes: tuple[Node, ...]
    workloads: tuple[Workload, ...] = ()
    faults: tuple[Fault, ...] = ()
