"""What a host says of the vGPUs of one GPU, and a guest of the license of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from simulator import identity
from simulator.clock import Clock
from simulator.scenario import SAMPLE_PERIOD_SECONDS, SAMPLES_KEPT
from simulator.tenancy import Tenancy
from simulator.timeline import GpuTimeline
from simulator.vgpu_scheduler import LogEntry, SchedulerLog
from simulator.virtualization import License, Scheduler, Vgpu

# NVML's "not available", taken at face value.
GARBAGE_WORD: Final = 2**32 - 1

FIRST_INSTANCE_ID: Final = 3_251_634_177


@dataclass(frozen=True, slots=True, kw_only=True)
class VgpuInstance:
    """A running vGPU.

    Attributes:
        vm: uuid of the virtual machine.
        used_bytes: what the guest has allocated.
    """

    id: int
    uuid: str
    vm: str
    vm_name: str
    type_name: str
    total_bytes: int
    used_bytes: int
    licensed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VgpuSample:
    """What a vGPU kept busy of the whole GPU, in percent of the time asked about, rounded."""

    instance: int
    at_us: int
    sm_percent: int
    memory_percent: int
    encoder_percent: int
    decoder_percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LicenseState:
    """Whether a guest may use its GPU in full; ``expires_us`` is CPU time."""

    product: str
    licensed: bool
    expires_us: int | None


class VgpuHost:
    """The vGPUs of one GPU. Everything is computed when read.

    Args:
        tenancies: of the vGPUs, in the order of the scenario.
        awake: returns when the GPU's samples began anew, at a moment.
    """

    def __init__(
        self,
        tenancies: Sequence[Tenancy],
        *,
        scheduler: Scheduler,
        timeline: GpuTimeline,
        clock: Clock,
        awake: Callable[[float], float],
    ) -> None:
        self.scheduler = scheduler
        self._timeline = timeline
        self._clock = clock
        self._awake = awake
        self._ids = {one: FIRST_INSTANCE_ID + n for n, one in enumerate(tenancies)}
        self._log = SchedulerLog(self._ids, scheduler=scheduler, timeline=timeline, clock=clock)

    def instances(self) -> tuple[VgpuInstance, ...]:
        """Return the vGPUs that run now."""
        now = self._clock.now()
        return tuple(
            _instance(vgpu, number, self._timeline.uuid)
            for one, number in self._ids.items()
            if (vgpu := one.vgpu) is not None and one.holds(now)
        )

    def samples(self, since_us: int = 0) -> tuple[VgpuSample, ...]:
        """Return the mean of each vGPU's buffered samples that are newer than a CPU time.

        Empty if there are none: where NVML says ``NOT_FOUND``.
        """
        now, period, epoch_us = self._clock.now(), SAMPLE_PERIOD_SECONDS, self._clock.epoch_us
        last = int((now + 1e-9) / period)
        begin = max(self._awake(now), (since_us - epoch_us) / 1e6)
        first = max(last - SAMPLES_KEPT, int(-(-begin // period)))
        if first >= last:
            return ()
        got = self._timeline.tenant_seconds(self._timeline.uuid, (first * period, last * period))
        percents = {
            one: 100 * float(seconds[-1]) / ((last - first) * period)
            for one, seconds in got.items()
            if one.holds(now)
        }
        if self._timeline.stage(now).garbage:
            percents = dict.fromkeys(percents, GARBAGE_WORD)
        return tuple(
            VgpuSample(
                instance=self._ids[one],
                at_us=epoch_us + round(last * period * 1e6),
                sm_percent=round(percent),
                memory_percent=round(percent * one.mix.dram),
                encoder_percent=round(percent * one.mix.encoder),
                decoder_percent=round(percent * one.mix.decoder),
            )
            for one, percent in percents.items()
        )

    def log(self) -> tuple[LogEntry, ...]:
        """Return the newest entries of the scheduler's log, oldest first."""
        return self._log.entries()


def license_at(held: License, *, now: float, epoch_us: int) -> LicenseState:
    """Return the license of a guest's GPU at a moment."""
    licensed = now < held.until
    expires_us = epoch_us + round(held.until * 1e6) if licensed else None
    return LicenseState(product=held.product, licensed=licensed, expires_us=expires_us)


def _instance(vgpu: Vgpu, number: int, gpu: str) -> VgpuInstance:
    return VgpuInstance(
        id=number,
        uuid=identity.vgpu_uuid(gpu, vgpu.vm, number),
        vm=identity.vm_uuid(vgpu.vm),
        vm_name=vgpu.vm,
        type_name=vgpu.type,
        total_bytes=int(vgpu.memory),
        used_bytes=int(vgpu.used),
        licensed=vgpu.licensed,
    )
