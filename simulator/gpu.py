"""A GPU as its driver presents it now.

What is read here is what a driver would answer, nonsense included while a ``garbage`` fault
lasts; the truth behind it is in ``simulator.truth``. Every read is a moment of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from simulator import garbage
from simulator.board_state import BoardState
from simulator.clock import Clock
from simulator.driver import Driver
from simulator.errors import NotSupportedError
from simulator.gpm import GpmCounters, GpmQuantity, GpmSample
from simulator.links import Links
from simulator.memory_errors import MemoryErrors
from simulator.process_samples import NotedSample, ProcessRing, ProcessSample
from simulator.processes import Process, ProcessTable
from simulator.scenario import GpuGroup
from simulator.sensors import Sensors
from simulator.stage import GpuState, MigDevice, Stage
from simulator.tenancy import Tenancy
from simulator.timeline import GpuTimeline
from simulator.utilization_samples import UtilizationRing, newest_period
from simulator.vgpu import LicenseState, VgpuHost, license_at
from slicewatch.catalog.readings.memory import Bar1Memory
from slicewatch.hardware import GpuModel
from slicewatch.hardware.features import bar1_bytes

# Of the order that boards show for each context.
BAR1_BYTES_OF_PROCESS: Final = 2 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
    """Frame buffer; the three parts add up to the total, unless they are nonsense."""

    total_bytes: int
    free_bytes: int
    used_bytes: int
    reserved_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What does not change: names and numbers of the board.

    Attributes:
        serial: empty for GeForce boards, which have none.
    """

    uuid: str
    index: int
    minor: int
    pci_bus_id: str
    serial: str
    board_part_number: str
    vbios: str


class SimulatedGpu:
    """One GPU of a node. Every attribute is computed when read, on any thread."""

    def __init__(
        self,
        *,
        identity: Identity,
        model: GpuModel,
        timeline: GpuTimeline,
        group: GpuGroup,
        vgpus: Sequence[Tenancy],
        clock: Clock,
        driver: Callable[[float], Driver],
        errors: MemoryErrors,
        setup: BoardState,
        links: Links,
    ) -> None:
        self.errors = errors
        self.setup = setup
        self.links = links
        self.identity = identity
        self.uuid = identity.uuid
        self.index = identity.index
        self.model = model
        self.timeline = timeline
        self._clock = clock
        self._driver = driver
        self._license = group.license
        self.sharing = group.sharing
        self._processes = ProcessTable(timeline.uuid, group.sharing)
        self.gpm = GpmCounters(timeline)
        self.sensors = Sensors(model, timeline, clock=clock, driver=driver)
        self.vgpu_host = (
            VgpuHost(
                vgpus,
                scheduler=group.scheduler,
                timeline=timeline,
                clock=clock,
                awake=self._awake_since,
            )
            if vgpus
            else None
        )
        self._utilization = UtilizationRing(timeline, epoch_us=clock.epoch_us)
        self._ring = ProcessRing(timeline, self._processes, epoch_us=clock.epoch_us)

    @property
    def stage(self) -> Stage:
        """What is true now."""
        return self.timeline.stage(self._clock.now())

    @property
    def state(self) -> GpuState:
        """How it answers while the driver is loaded."""
        return self.stage.state

    @property
    def mig_enabled(self) -> bool:
        """Whether it is in MIG mode."""
        return self.stage.mig_enabled

    @property
    def mig_devices(self) -> tuple[MigDevice, ...]:
        """Its MIG devices by rising index; indices may be missing, before and between them."""
        return self.stage.devices

    @property
    def max_mig_devices(self) -> int:
        """How many MIG indices to look at; 0 if the model has no MIG."""
        return self.model.compute_slices

    def set_load(self, level: float | None, *, device: str | None = None) -> None:
        """Keep the GPU, or one of its MIG devices, at a load from now on.

        Args:
            level: 0 to 1, or None to give the device back to its pods.
            device: uuid of a MIG device.

        Raises:
            ValueError: the level is not between 0 and 1, or the device does not exist now; of a
                GPU in MIG mode, only the MIG devices can have a load.
        """
        if level is not None and not 0 <= level <= 1:
            raise ValueError(f"a load is between 0 and 1, not {level}")
        with self.timeline.changed:
            now = self._clock.now()
            if (device or self.uuid) not in self.timeline.stage(now).loads:
                raise ValueError(f"no device {device or self.uuid} can have a load now")
            self.timeline.set_load(device or self.uuid, level, now=now)

    @property
    def memory(self) -> MemoryState:
        """Frame buffer of the GPU; under MIG, used is what its MIG devices use."""
        stage = self.stage
        if stage.garbage:
            return _garbage_memory(self.model.memory_bytes)
        used = sum(self._processes.used_bytes(stage, uuid) for uuid in stage.tenants)
        return _memory(self.model.memory_bytes, used, self.model.reserved_bytes)

    def mig_memory(self, device: MigDevice) -> MemoryState:
        """Return the frame buffer of one of its MIG devices."""
        stage = self.stage
        if stage.garbage:
            return _garbage_memory(device.profile.memory_bytes)
        used = self._processes.used_bytes(stage, device.uuid)
        return _memory(device.profile.memory_bytes, used, 0)

    def bar1(self, device: MigDevice | None = None) -> Bar1Memory:
        """Return the BAR1 window of the GPU, or of one of its MIG devices."""
        stage = self.stage
        profile = None if device is None else device.profile
        total = bar1_bytes(self.model, profile)
        processes = sum(
            device is None or process.gpu_instance_id == device.gpu_instance_id
            for process in self._processes.running(stage)
        )
        used = min(BAR1_BYTES_OF_PROCESS * processes, total)
        window = Bar1Memory(total_bytes=total, free_bytes=total - used, used_bytes=used)
        return garbage.instead_of(window) if stage.garbage else window

    @property
    def power_milliwatts(self) -> int:
        """Power draw as the driver measures it on such a board."""
        return self.sensors.power_milliwatts

    @property
    def energy_millijoules(self) -> int:
        """Energy since the driver was loaded."""
        return self.sensors.energy_millijoules

    def joules(self, at: float) -> float:
        """Return the true energy since the driver was loaded, at a moment."""
        return self.sensors.joules(at)

    @property
    def temperature_celsius(self) -> int:
        """Temperature of the die."""
        return self.sensors.temperature_celsius

    @property
    def sm_clock_mhz(self) -> int:
        """Clock of the streaming multiprocessors."""
        return self.sensors.sm_clock_mhz

    @property
    def memory_clock_mhz(self) -> int:
        """Clock of the memory."""
        return self.sensors.memory_clock_mhz

    @property
    def current_utilization(self) -> int:
        """Percent of the last complete sample period in which a kernel ran."""
        now = self._clock.now()
        if self.timeline.stage(now).garbage:
            return garbage.PERCENT
        return self._utilization.newest(now)

    def current_activity(self, part: GpmQuantity) -> int:
        """Return the percent of the last complete sample period in which a part was busy."""
        now = self._clock.now()
        if self.timeline.stage(now).garbage:
            return garbage.WORD
        period = newest_period(now)
        return round(100 * self.gpm.mean(self.uuid, part, *period)) if period else 0

    def utilization_samples(self, since_us: int | None = None) -> tuple[tuple[int, int], ...]:
        """Return the buffered samples that are newer than a timestamp, oldest first.

        Each is a CPU timestamp in microseconds and the percent of the period up to it. The buffer
        starts empty when the driver is loaded or the GPU comes back, and keeps the newest ones.
        """
        now = self._clock.now()
        samples = self._utilization.samples(now, awake=self._awake_since(now), since_us=since_us)
        if self.timeline.stage(now).garbage:
            return tuple((stamp, garbage.PERCENT) for stamp, _ in samples)
        return samples

    @property
    def processes(self) -> tuple[Process, ...]:
        """Return the processes that hold memory, by rising pid."""
        return self._processes.running(self.stage)

    @property
    def mps_server_pid(self) -> int | None:
        """Process id of the server of MPS; None without MPS."""
        return self._processes.server_pid

    def process_samples(self, since_us: int = 0) -> tuple[ProcessSample, ...]:
        """Return what each process kept busy since a CPU time, as the driver's samples tell it.

        Only the last ten seconds are known. Empty if nothing ran, or nothing was sampled since:
        where NVML says ``NOT_FOUND``.

        Raises:
            NotSupportedError: the GPU is in MIG mode.
        """
        now = self._clock.now()
        if self.timeline.stage(now).mig_enabled:
            raise NotSupportedError("the driver does not sample processes of a GPU in MIG mode")
        return self._ring.samples(now, awake=self._awake_since(now), since_us=since_us)

    def process_ring(self) -> tuple[NotedSample, ...]:
        """Return the samples of processes that the driver still has, oldest first; none under MIG."""
        now = self._clock.now()
        if self.timeline.stage(now).mig_enabled:
            return ()
        return self._ring.noted(now, awake=self._awake_since(now))

    def process_nonsense(self) -> tuple[ProcessSample, ...]:
        """Return the entries that stand beside those of the ring, whatever is asked for."""
        return self._ring.nonsense(self._clock.now())

    @property
    def license(self) -> LicenseState | None:
        """The license of a virtual GPU in a guest; None: it is a real one."""
        if self._license is None:
            return None
        return license_at(self._license, now=self._clock.now(), epoch_us=self._clock.epoch_us)

    def gpm_sample(self, device: MigDevice | None = None) -> GpmSample:
        """Return the GPM counters of the GPU, or of one of its MIG devices.

        Raises:
            NotSupportedError: the model has no GPM, or the device does not exist now.
        """
        now = self._clock.now()
        if not self.model.gpm:
            raise NotSupportedError(f"{self.model.name} has no GPM, which came with Hopper")
        if device is not None and device not in self.timeline.stage(now).devices:
            raise NotSupportedError(f"MIG device {device.uuid} does not exist now")
        at_us = self._clock.epoch_us + round(now * 1e6)
        return GpmSample(at_us=at_us, totals=self.gpm.totals(now, device))

    def _awake_since(self, now: float) -> float:
        return max(self._driver(now).loaded_at, self.timeline.awake_since(now))


def _memory(total: int, used: int, reserved: int) -> MemoryState:
    held = min(used, total - reserved)
    return MemoryState(
        total_bytes=total,
        free_bytes=total - reserved - held,
        used_bytes=held,
        reserved_bytes=reserved,
    )


def _garbage_memory(total: int) -> MemoryState:
    return MemoryState(
        total_bytes=total, free_bytes=0, used_bytes=garbage.LONG, reserved_bytes=garbage.LONG
    )
