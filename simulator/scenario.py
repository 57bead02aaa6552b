"""The language of scenarios: what a fleet consists of, who uses it, what breaks when.

These structs are the language: their field names are the keys of the YAML file. Reading one, with
errors that say where and what, is the business of ``simulator.reading``. Times count from the
beginning of the fleet, in seconds.
"""

from enum import StrEnum
from typing import Literal

import msgspec

from simulator import load

# NVML gives one sample each 1/6 s on most boards, and its buffer was seen to hold 120 of them.
SAMPLE_PERIOD_SECONDS = 0.166667
SAMPLES_KEPT = 120

MigSlots = tuple[str | None, ...]


class Seconds(float):
    """A time: a number of seconds, or text such as ``90s``, ``5m``, ``1h30m``, ``250ms``."""


class Bytes(int):
    """A size: a number of bytes, or text such as ``512MiB`` or ``40GiB``."""


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all parts of a scenario have in common: a key that the language lacks is an error."""


class Step(Part, frozen=True, kw_only=True):
    """A level and when it begins."""

    at: Seconds
    level: float


class Ramp(Part, frozen=True, kw_only=True, rename={"first": "from", "last": "to"}):
    """A straight way from one level to another, which takes ``over``."""

    first: float
    last: float
    at: Seconds = Seconds(0)
    over: Seconds


class Wave(Part, frozen=True, kw_only=True):
    """Up and down between two levels; ``phase`` is when it is at the low one."""

    low: float
    high: float
    period: Seconds
    phase: Seconds = Seconds(0)


class Load(Part, frozen=True, kw_only=True):
    """How busy something is over time: exactly one of the four.

    Attributes:
        repeat: after how long the steps begin anew.
    """

    constant: float | None = None
    steps: tuple[Step, ...] | None = None
    ramp: Ramp | None = None
    wave: Wave | None = None
    repeat: Seconds | None = None

    def curve(self) -> load.Curve:
        """Return the load as a function of time."""
        if self.steps is not None:
            return load.steps([(s.at, s.level) for s in self.steps], period=self.repeat)
        if self.ramp is not None:
            way = self.ramp
            return load.ramp(way.first, way.last, begin=way.at, over=way.over)
        if self.wave is not None:
            up = self.wave
            return load.wave(up.low, up.high, period=up.period, phase=up.phase)
        return load.constant(self.constant or 0.0)


class SharingMode(StrEnum):
    """How the device plugin gives one device to several containers."""

    NONE = "none"
    TIME_SLICING = "time_slicing"
    MPS = "mps"


class Sharing(Part, frozen=True, kw_only=True):
    """Sharing of each device of a group.

    Attributes:
        replicas: how many containers one device is given to.
        rename: the resource is called ``….shared`` instead of keeping its name.
    """

    mode: SharingMode = SharingMode.NONE
    replicas: int = 1
    rename: bool = False


class GpuGroup(Part, frozen=True, kw_only=True):
    """Some equal GPUs of a node.

    Attributes:
        mig: profiles by MIG index; null is an index that is empty. Left out: MIG is off; empty:
            MIG is on, nothing is created.
    """

    model: str
    count: int = 1
    mig: MigSlots | None = None
    sharing: Sharing = Sharing()


class Node(Part, frozen=True, kw_only=True):
    """A machine.

    Attributes:
        mig_strategy: how the device plugin names MIG devices: by profile (mixed), or as GPUs.
    """

    name: str
    driver: str = "580.95.05"
    cuda: str = "13.0"
    mig_strategy: Literal["mixed", "single"] = "mixed"
    gpus: tuple[GpuGroup, ...]

    def groups(self) -> tuple[GpuGroup, ...]:
        """Return the group of each GPU, by the index of the GPU."""
        return tuple(group for group in self.gpus for _ in range(group.count))


class Holding(Part, frozen=True, kw_only=True):
    """A device that a container was given.

    Attributes:
        gpu: index on the node.
        mig: index of the MIG device on the GPU.
        replica: which one of a shared device.
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
    """Pods that do the same.

    Attributes:
        load: of each pod, on each device that it holds.
        demand: of all pods together, in devices; those that run share it evenly.
        memory: that each pod has allocated on each device.
    """

    name: str
    namespace: str = "default"
    load: Load | float | None = None
    demand: Load | float | None = None
    memory: Bytes = Bytes(0)
    pods: tuple[Pod, ...]


class Reading(StrEnum):
    """What can be nonsense."""

    UTILIZATION = "utilization"
    MEMORY = "memory"
    POWER = "power"
    ENERGY = "energy"
    TEMPERATURE = "temperature"
    CLOCKS = "clocks"


class NodeFault(Part, frozen=True, kw_only=True, rename={"lasts": "for"}, tag_field="kind"):
    """Something that goes wrong on a node.

    Attributes:
        lasts: until it is gone; None: it stays.
        every: after how long it happens again, for ever.
    """

    node: str
    at: Seconds = Seconds(0)
    lasts: Seconds | None = None
    every: Seconds | None = None


class GpuFault(NodeFault, frozen=True, kw_only=True):
    """Something that goes wrong with one GPU of it."""

    gpu: int


class Lost(GpuFault, frozen=True, kw_only=True, tag="lost"):
    """The GPU has fallen off the bus."""


class ResetRequired(GpuFault, frozen=True, kw_only=True, tag="reset_required"):
    """The GPU answers nothing until it is reset."""


class Hang(GpuFault, frozen=True, kw_only=True, tag="hang"):
    """Every call on the GPU blocks."""


class Garbage(GpuFault, frozen=True, kw_only=True, tag="garbage"):
    """Readings are nonsense; all of them if none is named."""

    readings: tuple[Reading, ...] = ()

    def spoils(self, reading: Reading) -> bool:
        """Tell whether this reading is nonsense."""
        return not self.readings or reading in self.readings


class Xid(GpuFault, frozen=True, kw_only=True, tag="xid"):
    """The driver reports an Xid."""

    xid: int
    gpu_instance: int | None = None
    compute_instance: int | None = None


class Ecc(GpuFault, frozen=True, kw_only=True, tag="ecc"):
    """A memory error, corrected (single bit) or not (double bit)."""

    bits: Literal["single", "double"]


class MigLayout(GpuFault, frozen=True, kw_only=True, tag="mig_layout"):
    """The GPU is partitioned anew; ``false`` turns MIG off."""

    mig: MigSlots | bool

    @property
    def slots(self) -> MigSlots | None:
        """The layout as a group of GPUs states it."""
        return None if isinstance(self.mig, bool) else self.mig


class DriverGone(NodeFault, frozen=True, kw_only=True, tag="driver_gone"):
    """The driver is not loaded; afterwards it is loaded anew."""


class DriverVersion(NodeFault, frozen=True, kw_only=True, tag="driver_version"):
    """The driver is replaced: NVML works again after a new start, and only after ``for``."""

    version: str


Fault = Lost | ResetRequired | Hang | Garbage | Xid | Ecc | MigLayout | DriverGone | DriverVersion
FAULTS: tuple[type[NodeFault], ...] = (
    Lost, ResetRequired, Hang, Garbage, Xid, Ecc, MigLayout, DriverGone, DriverVersion,
)  # fmt: skip


class Scenario(Part, frozen=True, kw_only=True):
    """A fleet and its story.

    Attributes:
        seed: what uuids and serial numbers are made from: same seed, same fleet.
        sample_period: between two utilization samples.
        samples_kept: how many of them a GPU remembers.
    """

    seed: str = "slicewatch"
    sample_period: Seconds = Seconds(SAMPLE_PERIOD_SECONDS)
    samples_kept: int = SAMPLES_KEPT
    nodes: tuple[Node, ...]
    workloads: tuple[Workload, ...] = ()
    faults: tuple[Fault, ...] = ()


def profiles_in(slots: MigSlots) -> list[str]:
    """Return the profiles of a layout without its empty indices."""
    return [name for name in slots if name is not None]
