"""What a GPU model is, as far as it can be looked up rather than asked of a driver.

Pure data: nothing here reads a device. Sizes are bytes, powers watts, clocks MHz.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import NamedTuple

MEBIBYTE = 2**20
GIBIBYTE = 2**30


class HardwareError(ValueError):
    """A GPU model, MIG profile or MIG layout that does not exist; says what to use instead."""


class Architecture(StrEnum):
    """Generations of NVIDIA GPUs."""

    VOLTA = "volta"
    TURING = "turing"
    AMPERE = "ampere"
    ADA = "ada"
    HOPPER = "hopper"
    BLACKWELL = "blackwell"


class Placement(NamedTuple):
    """Where a GPU instance lies: its first memory slice, and how many it takes."""

    start: int
    size: int

    @property
    def slices(self) -> frozenset[int]:
        """Memory slices that are taken."""
        return frozenset(range(self.start, self.start + self.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class MigProfile:
    """A kind of GPU instance, as ``nvidia-smi mig -lgip`` lists it.

    Attributes:
        name: such as ``1g.10gb``; ``+me`` marks the one with the media engines.
        profile_id: the ID column, which ``nvidia-smi mig -cgi`` takes.
        memory_bytes: what a device of this profile reports as its total memory.
        placements: where it may lie, by first memory slice.
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
    """One model of GPU, in the board form that data centres mostly have.

    Attributes:
        name: what this project calls it, such as ``H100-80GB``.
        nvml_name: what NVML calls it, such as ``NVIDIA H100 80GB HBM3``.
        memory_bytes: total frame buffer as NVML reports it, ECC already taken off.
        reserved_bytes: what the driver keeps of it; depends on the driver, good to about a third.
        idle_power_watts: drawn with no kernel running; depends on the server, good to about a
            third.
        compute_slices, memory_slices: of a GPU in MIG mode; 0 without MIG.
        price_per_hour_usd: rough list price of a cloud, for comparisons only; None if unknown.
    """

    name: str
    nvml_name: str
    architecture: Architecture
    compute_capability: tuple[int, int]
    sm_count: int
    memory_bytes: int
    reserved_bytes: int
    idle_power_watts: float
    max_power_watts: float
    idle_sm_clock_mhz: int
    max_sm_clock_mhz: int
    max_memory_clock_mhz: int
    compute_slices: int = 0
    memory_slices: int = 0
    mig_profiles: tuple[MigProfile, ...] = ()
    price_per_hour_usd: float | None = None

    @property
    def supports_mig(self) -> bool:
        """Tell whether the GPU can be partitioned."""
        return bool(self.mig_profiles)

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
        raise HardwareError(f"{self.name} has no MIG profile {name!r}{suggest(name, names)}")


def suggest(wrong: str, names: list[str]) -> str:
    """Return the end of an error message: the nearest of the names, or all of them."""
    near = get_close_matches(wrong, names, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(names)}"
