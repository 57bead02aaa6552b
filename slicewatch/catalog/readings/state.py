"""How a board is set up: modes, generation, contents of its InfoROM, membership in a fabric.

Modes and states are NVML's own numbers; None is what a board does not have.
"""

from enum import StrEnum
from typing import Final

import msgspec


class Modes(msgspec.Struct, frozen=True, gc=False):
    """What is switched on, 0 or 1; ``pending`` is what holds after the next reset."""

    persistence: int | None
    mig_current: int | None
    mig_pending: int | None
    ecc_current: int | None
    ecc_pending: int | None

    def consistent(self) -> bool:
        """Tell whether each mode is on, off or not there."""
        mig, ecc = (self.mig_current, self.mig_pending), (self.ecc_current, self.ecc_pending)
        return {self.persistence, *mig, *ecc} <= {None, 0, 1}


class ComputeMode(msgspec.Struct, frozen=True, gc=False):
    """Who may have a context on the device, a number of nvmlComputeMode_t."""

    number: int

    def name(self) -> str | None:
        """Return the name of the mode, as nvidia-smi has it; None for no known mode."""
        return COMPUTE_MODES[self.number] if self.number in range(len(COMPUTE_MODES)) else None


# In the order of nvmlComputeMode_t.
COMPUTE_MODES: Final = ("default", "exclusive_thread", "prohibited", "exclusive_process")


class Generation(msgspec.Struct, frozen=True, gc=False):
    """Generation of the GPU: a number of NVML_DEVICE_ARCH_*, and what CUDA can do on it."""

    architecture: int | None
    cuda_major: int | None
    cuda_minor: int | None

    def consistent(self) -> bool:
        """Tell whether the capability can be one; an unknown architecture is a newer one."""
        return all(part is None or 0 <= part < 100 for part in (self.cuda_major, self.cuda_minor))

    def architecture_name(self) -> str:
        """Return the name of the architecture; empty for one that is not known."""
        return ARCHITECTURES.get(self.architecture or 0, "")

    def cuda_capability(self) -> str:
        """Return the compute capability, such as ``9.0``; empty if it is not known."""
        if self.cuda_major is None or self.cuda_minor is None:
            return ""
        return f"{self.cuda_major}.{self.cuda_minor}"


ARCHITECTURES: Final = {
    2: "kepler", 3: "maxwell", 4: "pascal", 5: "volta", 6: "turing", 7: "ampere", 8: "ada",
    9: "hopper", 10: "blackwell", 13: "rubin",
}  # fmt: skip


class Inforom(msgspec.Struct, frozen=True, gc=False):
    """Versions in the board's InfoROM: of the whole image, and of the objects in it."""

    image: str | None
    oem: str | None
    ecc: str | None
    power: str | None


class InforomCheck(msgspec.Struct, frozen=True, gc=False):
    """Whether the checksums of the InfoROM are right."""

    valid: bool


class FabricState(StrEnum):
    """How far a GPU is with joining the NVLink fabric; the value is a label."""

    NOT_STARTED = "not_started"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


# By NVML_GPU_FABRIC_STATE_*. A GPU of state 0 has no fabric to join.
FABRIC_STATES: Final = dict(enumerate(FabricState, start=1))


class FabricFault(StrEnum):
    """What can be wrong with a GPU's place in the fabric; the value is a label."""

    DEGRADED_BANDWIDTH = "degraded_bandwidth"
    ROUTE_RECOVERY = "route_recovery"
    ROUTE_UNHEALTHY = "route_unhealthy"
    ACCESS_TIMEOUT_RECOVERY = "access_timeout_recovery"
    INCORRECT_CONFIGURATION = "incorrect_configuration"


# Where NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_* puts each two bits: 0 unknown, 1 true, 2 false.
FAULT_SHIFTS: Final = {
    FabricFault.DEGRADED_BANDWIDTH: 0,
    FabricFault.ROUTE_RECOVERY: 2,
    FabricFault.ROUTE_UNHEALTHY: 4,
    FabricFault.ACCESS_TIMEOUT_RECOVERY: 6,
}
# Four bits: 0 unknown, 1 as it should be, more for what is wrong.
CONFIGURATION_SHIFT: Final = 8
# NVML_GPU_FABRIC_HEALTH_SUMMARY_*; 0 is unknown.
HEALTHY, UNHEALTHY, LIMITED_CAPACITY = 1, 2, 3


class Fabric(msgspec.Struct, frozen=True, gc=False):
    """Registration of a GPU with the fabric manager (nvmlGpuFabricInfo_v3_t).

    Attributes:
        state: a number of NVML_GPU_FABRIC_STATE_*.
        status: an nvmlReturn_t, 0 for success; it counts only once the state is completed.
        health_mask: see ``FAULT_SHIFTS``.
        health_summary: NVML_GPU_FABRIC_HEALTH_SUMMARY_*; None from drivers that have none.
    """

    state: int
    status: int
    health_mask: int
    health_summary: int | None = None

    def consistent(self) -> bool:
        """Tell whether the state is one that NVML knows."""
        return self.state in FABRIC_STATES

    def states(self) -> dict[str, float]:
        """Return 1 for the state that it is in, 0 for each other one."""
        return {state: float(n == self.state) for n, state in FABRIC_STATES.items()}

    def faults(self) -> dict[str, float | None]:
        """Return 1 for each fault that it has, 0 for one that it has not, None if not known."""
        bits = {fault: self.health_mask >> at & 3 for fault, at in FAULT_SHIFTS.items()}
        found: dict[str, float | None] = {
            fault: {1: 1.0, 2: 0.0}.get(two) for fault, two in bits.items()
        }
        configuration = self.health_mask >> CONFIGURATION_SHIFT & 0xF
        wrong = float(configuration > 1) if configuration else None
        return found | {FabricFault.INCORRECT_CONFIGURATION: wrong}

    def healthy(self) -> float | None:
        """Return whether the GPU can use the fabric in full, 0 or 1; None if not known (yet)."""
        if FABRIC_STATES.get(self.state) is not FabricState.COMPLETED:
            return None
        if self.status:
            return 0.0
        if self.health_summary in {HEALTHY, UNHEALTHY, LIMITED_CAPACITY}:
            return float(self.health_summary == HEALTHY)
        known = [fault for fault in self.faults().values() if fault is not None]
        return float(not any(known)) if known else None
