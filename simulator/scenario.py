"""The scenario language: what a fleet consists of, who uses it, what breaks when.

These structs are the language, with those of ``simulator.language`` and
``simulator.virtualization``: their field names are the keys of the YAML file. Files are read, with
errors that help to fix them, by ``simulator.reading``. Times count from the start of the
fleet, in seconds.
"""

from enum import StrEnum
from typing import Literal

from simulator.language import Bytes, Load, Mix, Part, Seconds
from simulator.virtualization import License, Scheduler, Vgpu
from slicewatch.catalog.readings.errors import Recovery
from slicewatch.catalog.readings.nvlink import NvlinkError
from slicewatch.catalog.readings.state import FabricFault, FabricState

# NVML takes one sample every 1/6 s on most boards, and buffers 120 of them.
SAMPLE_PERIOD_SECONDS = 0.166667
SAMPLES_KEPT = 120

MigSlots = tuple[str | None, ...]


class SharingMode(StrEnum):
    """How the device plugin shares one device between containers."""

    NONE = "none"
    TIME_SLICING = "time_slicing"
    MPS = "mps"


class Sharing(Part, frozen=True, kw_only=True):
    """Sharing of each device of a group.

    Attributes:
        replicas: how many containers can share one device.
        sampled: under MPS, whose pid the driver's samples of process utilization carry; what
            real drivers do is not documented.
    """

    mode: SharingMode = SharingMode.NONE
    replicas: int = 1
    sampled: Literal["server", "client"] = "server"


class GpuGroup(Part, frozen=True, kw_only=True):
    """Identical GPUs of a node.

    Attributes:
        mig: profiles by MIG index, null for an empty index. Left out: MIG is off; empty list:
            MIG is on without instances.
        vgpus: what virtual machines have of the GPU, if it is a host of theirs.
        scheduler: how the vGPUs share it.
        license: of a GPU that is a virtual one itself, in a guest.
    """

    model: str
    count: int = 1
    mig: MigSlots | None = None
    sharing: Sharing = Sharing()
    vgpus: tuple[Vgpu, ...] = ()
    scheduler: Scheduler = Scheduler()
    license: License | None = None


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


class Container(Part, frozen=True, kw_only=True):
    """A container of a pod and the devices that it holds.

    Attributes:
        pids: of its processes, those on its first device first; made up where left out. One pid
            may be on several devices.
        restarts: when it starts anew, with processes that have other, made up pids.
    """

    name: str = "main"
    devices: tuple[Holding, ...]
    pids: tuple[int, ...] = ()
    restarts: tuple[Seconds, ...] = ()


class Pod(Part, frozen=True, kw_only=True, rename={"begin": "from"}):
    """A pod that runs from its start to its end.

    Attributes:
        containers: if there are several; else the container is described with the pod itself.
    """

    name: str
    begin: Seconds = Seconds(0)
    until: Seconds | None = None
    container: str = "main"
    devices: tuple[Holding, ...] = ()
    pids: tuple[int, ...] = ()
    restarts: tuple[Seconds, ...] = ()
    containers: tuple[Container, ...] = ()

    def parts(self) -> tuple[Container, ...]:
        """Return its containers, however they are described."""
        if self.containers:
            return self.containers
        alone = Container(
            name=self.container, devices=self.devices, pids=self.pids, restarts=self.restarts
        )
        return (alone,)

    def holdings(self) -> tuple[Holding, ...]:
        """Return the devices of all its containers."""
        return tuple(holding for part in self.parts() for holding in part.devices)


class Workload(Part, frozen=True, kw_only=True):
    """Pods that do the same work.

    Attributes:
        load: of each container, on each device that it holds.
        demand: of all pods together, in devices; the running ones share it evenly.
        memory: what each container has allocated on each device.
        processes: how many each container has on each device; they do the same.
        graphics: whether they draw instead of compute.
        host: whether they run on the host, in no pod; what stands under ``pods`` then only says
            when and where.
        mix: what they keep busy besides the device as a whole.
    """

    name: str
    namespace: str = "default"
    load: Load | float | None = None
    demand: Load | float | None = None
    memory: Bytes = Bytes(0)
    processes: int = 1
    graphics: bool = False
    host: bool = False
    mix: Mix = Mix()
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


class Failing(GpuFault, frozen=True, kw_only=True, tag="failing"):
    """Every call on the GPU fails, though it works on: NVML's word for it, in lower case."""

    error: Literal["insufficient_power", "irq_issue", "corrupted_inforom", "unknown"]


class Garbage(GpuFault, frozen=True, kw_only=True, tag="garbage"):
    """Every reading is nonsense."""


class GarbageSamples(GpuFault, frozen=True, kw_only=True, tag="garbage_samples"):
    """Samples of process utilization that mean nothing stand among the true ones."""


class Slowdown(GpuFault, frozen=True, kw_only=True, tag="slowdown"):
    """Clocks are held down; by heat only when the die is as warm as it takes.

    Attributes:
        reason: as the metrics of clock events name it.
    """

    reason: Literal[
        "sw_power_cap",
        "sync_boost",
        "sw_thermal_slowdown",
        "hw_slowdown",
        "hw_thermal_slowdown",
        "hw_power_brake",
    ]


class Heat(GpuFault, frozen=True, kw_only=True, tag="heat"):
    """The die is at least so warm, whatever the GPU does."""

    celsius: int


class Xid(GpuFault, frozen=True, kw_only=True, tag="xid"):
    """The driver reports an Xid."""

    xid: int
    gpu_instance: int | None = None
    compute_instance: int | None = None


class Ecc(GpuFault, frozen=True, kw_only=True, tag="ecc"):
    """Memory errors, corrected (single bit) or not (double bit); one event for all of them.

    Attributes:
        location: which kind of memory had them.
        errors: how many there are.
        gpu_instance: to whose part of the SRAM they belong, under MIG.
    """

    bits: Literal["single", "double"]
    location: Literal["dram", "sram"] = "dram"
    errors: int = 1
    gpu_instance: int | None = None


class RowRemap(GpuFault, frozen=True, kw_only=True, tag="row_remap"):
    """Memory rows are replaced by spare ones; until it ends, that waits for a reset of the GPU.

    Attributes:
        cause: what kind of errors the rows had.
        rows: how many they are.
        bank: whether each is of another bank, or all are of one, which has eight spare rows.
        failed: there are no spare rows left: they stay in use.
    """

    cause: Literal["correctable", "uncorrectable"] = "uncorrectable"
    rows: int = 1
    bank: Literal["another", "same"] = "another"
    failed: bool = False


class RecoveryNeeded(GpuFault, frozen=True, kw_only=True, tag="recovery_action"):
    """The driver wants something done to the GPU, which goes on working as well as it can."""

    action: Recovery


class FabricTrouble(GpuFault, frozen=True, kw_only=True, tag="fabric"):
    """The GPU has not joined the NVLink fabric, or something is wrong with its place there."""

    state: FabricState = FabricState.COMPLETED
    fault: FabricFault | None = None


class InforomCorrupted(GpuFault, frozen=True, kw_only=True, tag="inforom_corrupted"):
    """Checksums in the board's InfoROM are wrong."""


class PcieDegraded(GpuFault, frozen=True, kw_only=True, tag="pcie_degraded"):
    """The PCIe link is narrower or slower than board and slot allow; null leaves that as it is."""

    width: int | None = None
    generation: int | None = None


class PcieReplays(GpuFault, frozen=True, kw_only=True, tag="pcie_replays"):
    """Packets are sent again over PCIe, so many at once."""

    packets: int = 1


class NvlinkDown(GpuFault, frozen=True, kw_only=True, tag="nvlink_down"):
    """An NVLink is down."""

    link: int


class NvlinkTrouble(GpuFault, frozen=True, kw_only=True, tag="nvlink_errors"):
    """An NVLink has errors, so many at once.

    Attributes:
        error: of the kinds that its generation counts.
    """

    link: int
    error: NvlinkError
    errors: int = 1


class MigLayout(GpuFault, frozen=True, kw_only=True, tag="mig_layout"):
    """The GPU is repartitioned; ``false`` turns MIG off."""

    mig: MigSlots | bool

    @property
    def slots(self) -> MigSlots | None:
        """The layout in the form that a group of GPUs has."""
        return None if isinstance(self.mig, bool) else self.mig


class MigPending(GpuFault, frozen=True, kw_only=True, tag="mig_pending"):
    """MIG was turned on or off, which waits for a reset of the GPU: the old mode holds."""


class DriverGone(NodeFault, frozen=True, kw_only=True, tag="driver_gone"):
    """The driver is not loaded; afterwards it is loaded again."""


class DriverVersion(NodeFault, frozen=True, kw_only=True, tag="driver_version"):
    """The driver is replaced: NVML works again once restarted, and only after ``for``."""

    version: str


Fault = (
    Lost
    | ResetRequired
    | Hang
    | Failing
    | Garbage
    | GarbageSamples
    | Slowdown
    | Heat
    | Xid
    | Ecc
    | RowRemap
    | RecoveryNeeded
    | FabricTrouble
    | InforomCorrupted
    | PcieDegraded
    | PcieReplays
    | NvlinkDown
    | NvlinkTrouble
    | MigLayout
    | MigPending
    | DriverGone
    | DriverVersion
)

# What happens at a moment, and lasts no time.
Momentary = Xid | Ecc | PcieReplays | NvlinkTrouble


class Scenario(Part, frozen=True, kw_only=True):
    """A fleet and its story.

    Attributes:
        seed: what uuids and serial numbers are derived from: same seed, same fleet.
    """

    seed: str = "slicewatch"
    nodes: tuple[Node, ...]
    workloads: tuple[Workload, ...] = ()
    faults: tuple[Fault, ...] = ()
