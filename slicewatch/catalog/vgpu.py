"""Virtual GPUs, as their host sees them: what each has and uses, and who waits for whom.

The numbers are explained in ``docs/concepts/vgpu.md``. What a guest sees is in ``licensing``.
"""

from collections.abc import Callable
from typing import Final

from slicewatch.catalog.model import (
    BYTES,
    COUNT,
    FLAG,
    RATIO,
    Attribution,
    Combine,
    Label,
    Limits,
    Object,
    Probe,
    Publish,
    Scope,
    Serve,
    Unit,
)
from slicewatch.catalog.readings.vgpu import (
    VgpuRate,
    Vgpus,
    VgpuScheduler,
    VgpuUtilization,
    VgpuWaits,
)

BOARD: Final = frozenset({Scope.GPU})
# Slices are some milliseconds; a word for "not available" is four seconds.
TIME_SLICE: Final = Limits(low=0, high=1)
# More than thirty years of one vGPU.
VGPU_SECONDS: Final = Limits(low=0, high=1e9)
# No GPU has more. It keeps the weight of one read, which is the time of all vGPUs together, within
# the time that passed: windows would spread what is longer over the reads before it.
MOST_VGPUS: Final = 64

VGPUS: Final = Probe(name="vgpus", reading=Vgpus, scopes=BOARD, interval_seconds=5)
VGPU_UTILIZATION: Final = Probe(
    name="vgpu_utilization", reading=VgpuUtilization, scopes=BOARD, interval_seconds=5
)
VGPU_SCHEDULER: Final = Probe(
    name="vgpu_scheduler", reading=VgpuScheduler, scopes=BOARD, interval_seconds=60
)
# The log forgets within a fraction of a second; the totals in it do not.
VGPU_WAITS: Final = Probe(
    name="vgpu_waits", reading=VgpuWaits, scopes=BOARD, consistent=lambda r: r.consistent()
)


def _infos(reading: Vgpus) -> dict[tuple[str, ...], float | None]:
    return {(vgpu.uuid, vgpu.type_name, vgpu.vm): 1 for vgpu in reading.running}


def _ratios(
    reading: VgpuUtilization, percent: Callable[[VgpuRate], float]
) -> dict[str, float | None]:
    return {rate.uuid: percent(rate) / 100 for rate in reading.rates}


def _policy(scheduler: VgpuScheduler) -> dict[str, float] | None:
    name = scheduler.policy_name()
    return None if name is None else {name: 1}


OF_VGPUS: Final = (
    VGPUS.info(
        "gpu_vgpu_info",
        help="A vGPU that runs on the GPU, with its type and the virtual machine that has it.",
        value=_infos,
        labels=(Label.VGPU, Label.VGPU_TYPE, Label.VM),
    ),
    VGPUS.gauge(
        "gpu_vgpu_active",
        help="Number of vGPUs that run on the GPU.",
        unit=Unit.NONE,
        limits=COUNT,
        value=lambda r: r.active,
    ),
    VGPUS.gauge(
        "gpu_vgpu_memory_used_bytes",
        help="Frame buffer that the guest uses of its vGPU.",
        unit=Unit.BYTES,
        limits=BYTES,
        value=lambda r: {v.uuid: v.used_bytes for v in r.running},
        labels=(Label.VGPU,),
    ),
    VGPUS.gauge(
        "gpu_vgpu_memory_limit_bytes",
        help="Frame buffer that the type of the vGPU grants to the guest.",
        unit=Unit.BYTES,
        limits=BYTES,
        value=lambda r: {v.uuid: v.limit_bytes for v in r.running},
        labels=(Label.VGPU,),
    ),
    VGPUS.gauge(
        "gpu_vgpu_licensed",
        help="1 if the driver in the guest holds a license for its vGPU, 0 if it does not.",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: {v.uuid: v.licensed for v in r.running},
        labels=(Label.VGPU,),
    ),
)
OF_UTILIZATION: Final = (
    VGPU_UTILIZATION.gauge(
        "gpu_vgpu_sm_ratio",
        help="Share of the time since the last read in which the vGPU kept the GPU's SMs busy.",
        unit=Unit.RATIO,
        limits=RATIO,
        value=lambda r: _ratios(r, lambda rate: rate.sm_percent),
        labels=(Label.VGPU,),
    ),
    VGPU_UTILIZATION.gauge(
        "gpu_vgpu_memory_bandwidth_ratio",
        help="Share of the time since the last read in which the vGPU accessed device memory.",
        unit=Unit.RATIO,
        limits=RATIO,
        value=lambda r: _ratios(r, lambda rate: rate.memory_percent),
        labels=(Label.VGPU,),
    ),
    VGPU_UTILIZATION.gauge(
        "gpu_vgpu_encoder_ratio",
        help="Share of the GPU's video encoding that the vGPU used since the last read.",
        unit=Unit.RATIO,
        limits=RATIO,
        value=lambda r: _ratios(r, lambda rate: rate.encoder_percent),
        labels=(Label.VGPU,),
    ),
    VGPU_UTILIZATION.gauge(
        "gpu_vgpu_decoder_ratio",
        help="Share of the GPU's video decoding that the vGPU used since the last read.",
        unit=Unit.RATIO,
        limits=RATIO,
        value=lambda r: _ratios(r, lambda rate: rate.decoder_percent),
        labels=(Label.VGPU,),
    ),
)
OF_SCHEDULER: Final = (
    VGPU_SCHEDULER.info(
        "gpu_vgpu_scheduler_info",
        help="How the vGPUs of the GPU share its time.",
        value=_policy,
        labels=(Label.POLICY,),
    ),
    VGPU_SCHEDULER.gauge(
        "gpu_vgpu_scheduler_time_slice_seconds",
        help="Time for which a vGPU may run before it is the next one's turn; absent under best effort.",
        unit=Unit.SECONDS,
        limits=TIME_SLICE,
        value=lambda r: r.slice_seconds(),
    ),
    VGPU_WAITS.counter(
        "gpu_vgpu_run_seconds_total",
        help="Time that the vGPU ran on the GPU, by the scheduler's log; without vgpu: those not told apart.",
        unit=Unit.SECONDS,
        limits=VGPU_SECONDS,
        value=lambda r: {t.uuid: t.run_nanoseconds / 1e9 for t in r.totals},
        labels=(Label.VGPU,),
    ),
    VGPU_WAITS.counter(
        "gpu_vgpu_wait_seconds_total",
        help="Time that the vGPU was kept off the GPU: preemption time by the log, as NVML documents it.",
        unit=Unit.SECONDS,
        limits=VGPU_SECONDS,
        value=lambda r: {t.uuid: t.wait_nanoseconds / 1e9 for t in r.totals},
        labels=(Label.VGPU,),
    ),
    VGPU_WAITS.gauge(
        "gpu_vgpu_wait_ratio",
        help="Waiting against waiting and running of all vGPUs in the window, by the scheduler's log.",
        unit=Unit.RATIO,
        limits=RATIO,
        value=lambda r: r.ratio(),
        weight=lambda r: r.busy_seconds() / MOST_VGPUS,
        publish=Publish.WINDOW_MEAN,
        serve=Serve(
            combine=Combine.MAX,
            attribution=Attribution.DEVICE,
            objects=frozenset({Object.NODE}),
        ),
    ),
)
METRICS: Final = OF_VGPUS + OF_UTILIZATION + OF_SCHEDULER
