"""A GPU as its driver presents it now.

What is read here is what a driver would answer, nonsense included while a ``garbage`` fault
lasts; the truth behind it is in ``simulator.truth``. Every read is a moment of its own.

The model of a board is deliberately simple: power rises linearly with load from idle to the
limit; the die warms with the mean power of the last minute; clocks are either idle or full.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from simulator.clock import Clock
from simulator.driver import Driver
from simulator.load import value_at
from simulator.scenario import SAMPLE_PERIOD_SECONDS, SAMPLES_KEPT
from simulator.tenancy import Tenancy
from simulator.timeline import GpuState, GpuTimeline, MigDevice, Stage
from slicewatch.hardware import GpuModel

INLET_CELSIUS = 27
RISE_AT_FULL_POWER_CELSIUS = 45
WARMING_SECONDS = 60.0

SAMPLE_PERIOD_US: Final = round(SAMPLE_PERIOD_SECONDS * 1e6)

# Values seen from real drivers and libraries: sentinels for "not available" taken at face value.
GARBAGE_CELSIUS: Final = 4_278_190_080
GARBAGE_PERCENT: Final = 9_223_372_036_854_775_807
GARBAGE_WORD: Final = 2**32 - 1
GARBAGE_LONG: Final = 2**64 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
    """Frame buffer; the three parts add up to the total, unless they are nonsense."""

    total_bytes: int
    free_bytes: int
    used_bytes: int
    reserved_bytes: int


@dataclass(frozen=True, slots=True)
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


class SimulatedGpu:
    """One GPU of a node. Every attribute is computed when read, on any thread."""

    def __init__(
        self,
        *,
        identity: Identity,
        model: GpuModel,
        timeline: GpuTimeline,
        clock: Clock,
        driver: Callable[[float], Driver],
    ) -> None:
        self.identity = identity
        self.uuid = identity.uuid
        self.index = identity.index
        self.model = model
        self.timeline = timeline
        self._clock = clock
        self._driver = driver

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
        used = sum(self._used(stage, uuid) for uuid in stage.tenants)
        return _memory(self.model.memory_bytes, used, self.model.reserved_bytes)

    def mig_memory(self, device: MigDevice) -> MemoryState:
        """Return the frame buffer of one of its MIG devices."""
        stage = self.stage
        if stage.garbage:
            return _garbage_memory(device.profile.memory_bytes)
        return _memory(device.profile.memory_bytes, self._used(stage, device.uuid), 0)

    @property
    def power_milliwatts(self) -> int:
        """Power that the board draws."""
        now = self._clock.now()
        stage = self.timeline.stage(now)
        if stage.garbage:
            return GARBAGE_WORD
        return round(1000 * self._watts(value_at(stage.work, now)))

    @property
    def energy_millijoules(self) -> int:
        """Energy since the driver was loaded."""
        now = self._clock.now()
        if self.timeline.stage(now).garbage:
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
        if self.timeline.stage(now).garbage:
            return GARBAGE_CELSIUS
        busy = self.timeline.busy_seconds(self.uuid, (max(0.0, now - WARMING_SECONDS), now))[-1]
        power = self._watts(busy / WARMING_SECONDS) / self.model.max_power_watts
        return round(INLET_CELSIUS + RISE_AT_FULL_POWER_CELSIUS * power)

    @property
    def sm_clock_mhz(self) -> int:
        """Clock of the streaming multiprocessors: idle, or full as soon as anything runs."""
        now = self._clock.now()
        stage = self.timeline.stage(now)
        if stage.garbage:
            return GARBAGE_WORD
        works = value_at(stage.work, now) > 0
        return self.model.max_sm_clock_mhz if works else self.model.idle_sm_clock_mhz

    @property
    def memory_clock_mhz(self) -> int:
        """Clock of the memory; always the full one."""
        return GARBAGE_WORD if self.stage.garbage else self.model.max_memory_clock_mhz

    @property
    def current_utilization(self) -> int:
        """Percent of the last complete sample period in which a kernel ran."""
        now = self._clock.now()
        if self.timeline.stage(now).garbage:
            return GARBAGE_PERCENT
        last = self._last_sample(now)
        return self._percents(last - 1, last)[0] if last > 0 else 0

    def utilization_samples(self, since_us: int | None = None) -> tuple[tuple[int, int], ...]:
        """Return the buffered samples that are newer than a timestamp, oldest first.

        Each is a CPU timestamp in microseconds and the percent of the period up to it. The buffer
        starts empty when the driver is loaded or the GPU comes back, and keeps the newest ones.
        """
        now = self._clock.now()
        last = self._last_sample(now)
        period = SAMPLE_PERIOD_US
        awake = max(self._driver(now).loaded_at, self.timeline.awake_since(now))
        first = max(last - SAMPLES_KEPT, -int(-awake * 1e6 // period))
        if since_us is not None:
            first = max(first, (since_us - self._clock.epoch_us) // period)
        if first >= last:
            return ()
        stamps = (self._clock.epoch_us + number * period for number in range(first + 1, last + 1))
        if self.timeline.stage(now).garbage:
            return tuple((stamp, GARBAGE_PERCENT) for stamp in stamps)
        return tuple(zip(stamps, self._percents(first, last), strict=True))

    @property
    def processes(self) -> tuple[Process, ...]:
        """Return the processes that hold memory, by rising pid."""
        stage = self.stage
        instances = {d.uuid: (d.gpu_instance_id, d.compute_instance_id) for d in stage.devices}
        found = [
            Process(tenancy.pid, tenancy.memory_bytes, *instances.get(uuid, (None, None)))
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
        # Half a microsecond, so that a clock moved to a multiple of the period has reached it.
        return int((now * 1e6 + 0.5) // SAMPLE_PERIOD_US)

    def _percents(self, first: int, last: int) -> list[int]:
        times = [number * SAMPLE_PERIOD_US / 1e6 for number in range(first, last + 1)]
        busy = pairwise(self.timeline.busy_seconds(self.uuid, times))
        return [round(100e6 * (after - before) / SAMPLE_PERIOD_US) for before, after in busy]


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
