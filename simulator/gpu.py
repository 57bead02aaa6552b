"""A GPU as its driver presents it now.

What is read here is what a driver would answer, nonsense included while a ``garbage`` fault
lasts. The truth behind it stands in ``simulator.truth``. Every read is a moment of its own.

The model of a board, deliberately simple: power rises with load in a straight line from idle to
the limit; the die warms with the mean power of the last minute; clocks know idle and full.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from simulator.clock import Clock
from simulator.driver import Driver
from simulator.load import integral, value_at
from simulator.scenario import Reading
from simulator.tenancy import Tenancy
from simulator.timeline import GpuState, GpuTimeline, MigDevice, Stage
from slicewatch.hardware import GpuModel

INLET_CELSIUS = 27
RISE_AT_FULL_POWER_CELSIUS = 45
WARMING_SECONDS = 60.0

# What drivers and libraries were seen to return: sentinels for "not available" taken for values.
GARBAGE_CELSIUS: Final = 4_278_190_080
GARBAGE_PERCENT: Final = 9_223_372_036_854_775_807
GARBAGE_WORD: Final = 2**32 - 1
GARBAGE_LONG: Final = 2**64 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
    """Frame buffer; the three parts make up the total, unless they are nonsense."""

    total_bytes: int
    free_bytes: int
    used_bytes: int
    reserved_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that holds memory on a GPU; the instances are None without MIG."""

    pid: int
    used_bytes: int
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How a driver samples utilization."""

    period_us: int
    kept: int


class SimulatedGpu:
    """One GPU of a node. Every attribute is read anew and may be read on any thread."""

    def __init__(
        self,
        *,
        identity: Identity,
        model: GpuModel,
        timeline: GpuTimeline,
        clock: Clock,
        driver: Callable[[float], Driver],
        sampling: Sampling,
    ) -> None:
        self.identity = identity
        self.uuid = identity.uuid
        self.index = identity.index
        self.model = model
        self.timeline = timeline
        self._clock = clock
        self._driver = driver
        self._sampling = sampling

    @property
    def stage(self) -> Stage:
        """What holds now."""
        return self.timeline.stage(self._clock.now())

    @property
    def state(self) -> GpuState:
        """How it answers, if the driver is loaded."""
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
        """Hold the GPU, or one of its MIG devices, at a load from now on.

        Args:
            level: 0 to 1, or None to give the device back to its pods.
            device: uuid of a MIG device.

        Raises:
            ValueError: the level is none, or the device is not there now; a GPU in MIG mode has
                only its MIG devices.
        """
        if level is not None and not 0 <= level <= 1:
            raise ValueError(f"a load is between 0 and 1, not {level}")
        with self.timeline.changed:
            now = self._clock.now()
            if (device or self.uuid) not in self.timeline.stage(now).loads:
                raise ValueError(f"no device {device or self.uuid} now that can have a load")
            self.timeline.set_load(device or self.uuid, level, now=now)

    @property
    def memory(self) -> MemoryState:
        """Frame buffer of the GPU; under MIG, used is what its MIG devices use."""
        stage = self.stage
        if _spoiled(stage, Reading.MEMORY):
            return _garbage_memory(self.model.memory_bytes)
        used = sum(self._used(stage, uuid) for uuid in stage.tenants)
        return _memory(self.model.memory_bytes, used, self.model.reserved_bytes)

    def mig_memory(self, device: MigDevice) -> MemoryState:
        """Return the frame buffer of one of its MIG devices."""
        stage = self.stage
        if _spoiled(stage, Reading.MEMORY):
            return _garbage_memory(device.profile.memory_bytes)
        return _memory(device.profile.memory_bytes, self._used(stage, device.uuid), 0)

    @property
    def power_milliwatts(self) -> int:
        """Power that the board draws."""
        now = self._clock.now()
        stage = self.timeline.stage(now)
        if _spoiled(stage, Reading.POWER):
            return GARBAGE_WORD
        return round(1000 * self._watts(value_at(stage.work, now)))

    @property
    def energy_millijoules(self) -> int:
        """Energy since the driver was loaded."""
        now = self._clock.now()
        if _spoiled(self.timeline.stage(now), Reading.ENERGY):
            return GARBAGE_LONG
        return round(1000 * self.joules(now))

    def joules(self, at: float) -> float:
        """Return the true energy since the driver was loaded, at a moment."""
        since = self._driver(at).loaded_at
        busy = self.timeline.work_seconds(at) - self.timeline.work_seconds(since)
        idle = self.model.idle_power_watts
        return idle * (at - since) + (self.model.max_power_watts - idle) * busy

    @property
    def temperature_celsius(self) -> int:
        """Temperature of the die."""
        now = self._clock.now()
        if _spoiled(self.timeline.stage(now), Reading.TEMPERATURE):
            return GARBAGE_CELSIUS
        since = max(0.0, now - WARMING_SECONDS)
        busy = integral(self.timeline.signal(self.uuid, until=now), since, now)
        power = self._watts(busy / WARMING_SECONDS) / self.model.max_power_watts
        return round(INLET_CELSIUS + RISE_AT_FULL_POWER_CELSIUS * power)

    @property
    def sm_clock_mhz(self) -> int:
        """Clock of the streaming multiprocessors: idle, or full as soon as anything runs."""
        now = self._clock.now()
        stage = self.timeline.stage(now)
        if _spoiled(stage, Reading.CLOCKS):
            return GARBAGE_WORD
        works = value_at(stage.work, now) > 0
        return self.model.max_sm_clock_mhz if works else self.model.idle_sm_clock_mhz

    @property
    def memory_clock_mhz(self) -> int:
        """Clock of the memory; always the full one."""
        spoiled = _spoiled(self.stage, Reading.CLOCKS)
        return GARBAGE_WORD if spoiled else self.model.max_memory_clock_mhz

    @property
    def current_utilization(self) -> int:
        """Percent of the last complete sample period in which a kernel ran."""
        now = self._clock.now()
        if _spoiled(self.timeline.stage(now), Reading.UTILIZATION):
            return GARBAGE_PERCENT
        last = self._last_sample(now)
        return self._percents(last - 1, last)[0] if last > 0 else 0

    def utilization_samples(self, since_us: int | None = None) -> tuple[tuple[int, int], ...]:
        """Return the buffered samples that are newer than a timestamp, oldest first.

        Each is a CPU timestamp in microseconds and the percent of the period up to it. The buffer
        begins anew when the driver is loaded or the GPU comes back, and keeps the newest ones.
        """
        now = self._clock.now()
        last = self._last_sample(now)
        period = self._sampling.period_us
        awake = max(self._driver(now).loaded_at, self.timeline.awake_since(now))
        first = max(last - self._sampling.kept, -int(-awake * 1e6 // period))
        if since_us is not None:
            first = max(first, (since_us - self._clock.epoch_us) // period)
        if first >= last:
            return ()
        stamps = (self._clock.epoch_us + number * period for number in range(first + 1, last + 1))
        if _spoiled(self.timeline.stage(now), Reading.UTILIZATION):
            return tuple((stamp, GARBAGE_PERCENT) for stamp in stamps)
        return tuple(zip(stamps, self._percents(first, last), strict=True))

    @property
    def sample_period_us(self) -> int:
        """Time between two utilization samples."""
        return self._sampling.period_us

    @property
    def processes(self) -> tuple[Process, ...]:
        """Return the processes that hold memory, by rising pid."""
        stage = self.stage
        instances = {d.uuid: (d.gpu_instance_id, d.compute_instance_id) for d in stage.devices}
        found = [
            Process(
                pid=tenancy.pid,
                used_bytes=tenancy.memory_bytes,
                gpu_instance_id=instances[uuid][0] if uuid in instances else None,
                compute_instance_id=instances[uuid][1] if uuid in instances else None,
            )
            for uuid, tenants in ({} if stage.halted else stage.tenants).items()
            for tenancy in tenants
        ]
        return tuple(sorted(found, key=lambda process: process.pid))

    def _watts(self, work: float) -> float:
        idle = self.model.idle_power_watts
        return idle + (self.model.max_power_watts - idle) * work

    def _used(self, stage: Stage, uuid: str) -> int:
        tenants: tuple[Tenancy, ...] = () if stage.halted else stage.tenants.get(uuid, ())
        return sum(tenancy.memory_bytes for tenancy in tenants)

    def _last_sample(self, now: float) -> int:
        # Half a microsecond, so that a clock that was moved to a multiple of the period is there.
        return int((now * 1e6 + 0.5) // self._sampling.period_us)

    def _percents(self, first: int, last: int) -> list[int]:
        times = [number * self._sampling.period_us / 1e6 for number in range(first, last + 1)]
        return [round(100 * mean) for mean in self.timeline.mean_loads(self.uuid, times)]


def _spoiled(stage: Stage, reading: Reading) -> bool:
    return any(fault.spoils(reading) for fault in stage.garbage)


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
        total_bytes=total, free_bytes=0, used_bytes=GARBAGE_LONG, reserved_bytes=GARBAGE_LONG
    )
