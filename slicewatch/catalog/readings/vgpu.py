"""The virtual GPUs that a host makes of one GPU, and how they share its time.

A vGPU is named by its uuid. None stands for what the driver does not say of one of them.
"""

from enum import StrEnum
from typing import Final

import msgspec


class Vgpu(msgspec.Struct, frozen=True, gc=False):
    """A running vGPU.

    Attributes:
        type_name: such as ``NVIDIA L40S-12Q``; empty where it is not stated.
        vm: id of the virtual machine in the form of the hypervisor; empty where not stated.
        used_bytes: frame buffer that the guest uses.
        limit_bytes: frame buffer of its type.
        licensed: 1 or 0; None also while no driver runs in the guest.
    """

    uuid: str
    type_name: str
    vm: str
    used_bytes: int | None = None
    limit_bytes: int | None = None
    licensed: int | None = None


class Vgpus(msgspec.Struct, frozen=True, gc=False):
    """The running vGPUs; ``active`` also counts those that do not say who they are."""

    active: int
    running: tuple[Vgpu, ...]


class VgpuRate(msgspec.Struct, frozen=True, gc=False):
    """What one vGPU kept busy of the whole GPU, in percent of the time since the last read."""

    uuid: str
    sm_percent: float
    memory_percent: float
    encoder_percent: float
    decoder_percent: float


class VgpuUtilization(msgspec.Struct, frozen=True, gc=False):
    """The rates of the vGPUs that have new samples."""

    rates: tuple[VgpuRate, ...]


class SchedulerPolicy(StrEnum):
    """How vGPUs share the time of a GPU; the value is a label."""

    BEST_EFFORT = "best_effort"
    EQUAL_SHARE = "equal_share"
    FIXED_SHARE = "fixed_share"


# NVML_VGPU_SCHEDULER_POLICY_*.
POLICIES: Final = dict(enumerate(SchedulerPolicy, start=1))


class VgpuScheduler(msgspec.Struct, frozen=True, gc=False):
    """The scheduler of the graphics engine.

    Attributes:
        policy: NVML_VGPU_SCHEDULER_POLICY_*.
        time_slice_nanoseconds: 0 while it schedules nothing.
    """

    policy: int
    time_slice_nanoseconds: int

    def policy_name(self) -> SchedulerPolicy | None:
        """Return the policy; None for one that is unknown to NVML or to us."""
        return POLICIES.get(self.policy)

    def slice_seconds(self) -> float | None:
        """Return the time slice; None where nothing is scheduled, or none is kept to."""
        # nvml.h: of best effort the parameters say nothing.
        if not self.time_slice_nanoseconds or self.policy_name() is SchedulerPolicy.BEST_EFFORT:
            return None
        return self.time_slice_nanoseconds / 1e9


class VgpuTime(msgspec.Struct, frozen=True, gc=False):
    """How long a vGPU was seen to run and to wait, as far back as the exporter has watched it.

    Attributes:
        uuid: empty for the sum of all run lists of which it is not known whose they are.
    """

    uuid: str
    run_nanoseconds: int
    wait_nanoseconds: int


class VgpuWaits(msgspec.Struct, frozen=True, gc=False):
    """What the scheduler's log tells of running and waiting.

    Attributes:
        totals: of each vGPU that runs.
        run_nanoseconds, wait_nanoseconds: what this read adds, of all vGPUs together.
        accepted, rejected: number of run lists whose counters moved on as time does, and of those
            whose counters did not.
    """

    totals: tuple[VgpuTime, ...]
    run_nanoseconds: int = 0
    wait_nanoseconds: int = 0
    accepted: int = 0
    rejected: int = 0

    def consistent(self) -> bool:
        """Tell whether the log can mean what we take it for: one vGPU may begin anew, not all."""
        return not self.rejected or self.accepted > 0

    def busy_seconds(self) -> float:
        """Return the time that all vGPUs together had work, running or waiting, in this read."""
        return (self.run_nanoseconds + self.wait_nanoseconds) / 1e9

    def ratio(self) -> float | None:
        """Return waiting against waiting and running; None where nobody had work."""
        busy = self.run_nanoseconds + self.wait_nanoseconds
        return self.wait_nanoseconds / busy if busy else None
