"""What a GPU model is, as far as it can be looked up instead of read from a driver.

Pure data: nothing here reads a device. Sizes are bytes, powers watts, clocks MHz.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from slicewatch.hardware.limits import BoardLimits
from slicewatch.hardware.links import BoardLinks
from slicewatch.suggestion import choices

MEBIBYTE = 2**20
GIBIBYTE = 2**30


class HardwareError(ValueError):
    """A GPU model, MIG profile or MIG layout that does not exist; says what does."""


class Placement(NamedTuple):
    """Where a GPU instance is placed: its first memory slice, and how many it takes."""

    start: int
    size: int


class Architecture(StrEnum):
    """Generation of a GPU, oldest first."""

    VOLTA = "volta"
    TURING = "turing"
    AMPERE = "ampere"
    ADA = "ada"
    HOPPER = "hopper"
    BLACKWELL = "blackwell"


SINCE_ADA = frozenset({Architecture.ADA, Architecture.HOPPER, Architecture.BLACKWELL})


@dataclass(frozen=True, slots=True, kw_only=True)
class MigProfile:
    """A kind of GPU instance, as ``nvidia-smi mig -lgip`` lists it.

    Attributes:
        name: such as ``1g.10gb``; ``+me`` marks the one with the media engines.
        profile_id: the ID column, which ``nvidia-smi mig -cgi`` takes.
        memory_bytes: what a device of this profile reports as its total memory.
        placements: where it may be placed, by first memory slice.
        max_instances: how many of it fit on one GPU.
    """

    name: str
    profile_id: int
    compute_slices: int
    memory_slices: int
    memory_bytes: int
    sm_count: int
    placements: tuple[Placement, ...]
    max_instances: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """One GPU model, in the form factor most common in data centres.

    Attributes:
        name: what this project calls it, such as ``H100-80GB``.
        nvml_name: what NVML calls it, such as ``NVIDIA H100 80GB HBM3``.
        memory_bytes: total frame buffer as NVML reports it, ECC already deducted.
        reserved_bytes: what the driver keeps of it; depends on the driver, good to about a third.
        idle_power_watts: drawn with no kernel running; depends on the server, good to about a
            third.
        limits: of heat, power and clocks.
        links: PCIe and NVLink.
        compute_slices, memory_slices: of a GPU in MIG mode; 0 without MIG.
    """

    name: str
    nvml_name: str
    architecture: Architecture
    sm_count: int
    memory_bytes: int
    reserved_bytes: int
    idle_power_watts: float
    max_power_watts: float
    idle_sm_clock_mhz: int
    max_sm_clock_mhz: int
    max_memory_clock_mhz: int
    limits: BoardLimits
    links: BoardLinks
    compute_slices: int = 0
    memory_slices: int = 0
    mig_profiles: tuple[MigProfile, ...] = ()

    @property
    def supports_mig(self) -> bool:
        """Tell whether the GPU can be partitioned."""
        return bool(self.mig_profiles)

    @property
    def averages_power(self) -> bool:
        """Tell whether the driver's power draw is the mean of a second; on GA100 it is not."""
        return self.architecture in SINCE_ADA

    @property
    def states_margins(self) -> bool:
        """Tell whether thresholds are stated as margins (T.Limit), not as temperatures."""
        return self.architecture in SINCE_ADA

    @property
    def gpm(self) -> bool:
        """Tell whether the driver can count what parts of the GPU are busy (``nvmlGpm…``)."""
        return self.architecture in {Architecture.HOPPER, Architecture.BLACKWELL}

    def profile(self, name: str) -> MigProfile:
        """Return the MIG profile of that name.

        Raises:
            HardwareError: the model has no MIG, or no such profile.
        """
        if not self.supports_mig:
            raise HardwareError(f"{self.name} has no MIG; leave its MIG layout out")
        for profile in self.mig_profiles:
            if profile.name == name:
                return profile
        names = [profile.name for profile in self.mig_profiles]
        raise HardwareError(f"{self.name} has no MIG profile {name!r}{choices(name, names)}")
