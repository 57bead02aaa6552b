"""The part of the scenario language that is about virtual GPUs: of a host, and inside a guest."""

from enum import StrEnum

from simulator.language import Bytes, Load, Mix, Part, Seconds


class SchedulerPolicy(StrEnum):
    """How a host shares a GPU between vGPUs.

    ``best_effort``: as needed; ``equal_share``: an equal part for each vGPU that runs;
    ``fixed_share``: the part that a vGPU of its type has when the GPU is full of them.
    """

    BEST_EFFORT = "best_effort"
    EQUAL_SHARE = "equal_share"
    FIXED_SHARE = "fixed_share"


class Scheduler(Part, frozen=True, kw_only=True):
    """The scheduler of a host's GPU."""

    policy: SchedulerPolicy = SchedulerPolicy.BEST_EFFORT
    time_slice: Seconds = Seconds(0.002)


class Vgpu(Part, frozen=True, kw_only=True, rename={"begin": "from"}):
    """A virtual GPU of a running virtual machine.

    Attributes:
        type: such as ``NVIDIA L40S-12Q``.
        memory: frame buffer that the host sets aside for it.
        used: what the guest has allocated of it.
        load: what the guest asks for.
        weight: of its part, where vGPUs are served as needed.
    """

    type: str
    memory: Bytes
    vm: str
    used: Bytes = Bytes(0)
    load: Load | float | None = None
    weight: int = 1
    licensed: bool = True
    mix: Mix = Mix()
    begin: Seconds = Seconds(0)
    until: Seconds | None = None


class License(Part, frozen=True, kw_only=True):
    """The license of a virtual GPU, as its guest sees it.

    Attributes:
        until: when it expires; 0: there is none.
    """

    product: str = "NVIDIA Virtual Compute Server"
    until: Seconds
