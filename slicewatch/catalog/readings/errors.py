"""What a board remembers of its memory errors, and what it says should be done about them.

Counters are either volatile, which is since the driver was loaded, or aggregate, which is over the
life of the board. Flags are kept as the driver states them, so that a nonsensical one is seen.
"""

from enum import StrEnum
from typing import Final

import msgspec


class EccErrors(msgspec.Struct, frozen=True, gc=False):
    """ECC errors of one memory, or of all together; None for a counter that is not there."""

    corrected_volatile: int | None = None
    uncorrected_volatile: int | None = None
    corrected_aggregate: int | None = None
    uncorrected_aggregate: int | None = None

    def volatile(self) -> dict[str, float | None]:
        """Return the number of errors since the driver was loaded, by kind."""
        return {"corrected": self.corrected_volatile, "uncorrected": self.uncorrected_volatile}

    def aggregate(self) -> dict[str, float | None]:
        """Return the number of errors over the life of the board, by kind."""
        return {"corrected": self.corrected_aggregate, "uncorrected": self.uncorrected_aggregate}


class MemoryLocation(StrEnum):
    """Where ECC errors are counted; the value is a label. Boards since Turing: DRAM and SRAM."""

    L1_CACHE = "l1_cache"
    L2_CACHE = "l2_cache"
    DRAM = "dram"
    REGISTER_FILE = "register_file"
    TEXTURE_MEMORY = "texture_memory"
    TEXTURE_SHARED = "texture_shared"
    CBU = "cbu"
    SRAM = "sram"


class EccByLocation(msgspec.Struct, frozen=True, gc=False):
    """ECC errors by memory, without the memories of which nothing is counted."""

    found: tuple[tuple[MemoryLocation, EccErrors], ...]

    def volatile(self) -> dict[tuple[str, ...], float | None]:
        """Return the number of errors since the driver was loaded, by location and kind."""
        return {(at, k): n for at, errors in self.found for k, n in errors.volatile().items()}

    def aggregate(self) -> dict[tuple[str, ...], float | None]:
        """Return the number of errors over the life of the board, by location and kind."""
        return {(at, k): n for at, errors in self.found for k, n in errors.aggregate().items()}


class SramErrors(msgspec.Struct, frozen=True, gc=False):
    """ECC errors of the SRAM (nvmlEccSramErrorStatus_v1_t).

    Uncorrectable ones are told apart by what found them, a parity bit or SEC-DED, and, in the last
    five fields, by where they were found.

    Attributes:
        threshold_exceeded: 1 once so many are uncorrectable that the board should be replaced.
    """

    parity_aggregate: int
    sec_ded_aggregate: int
    corrected_aggregate: int
    parity_volatile: int
    sec_ded_volatile: int
    corrected_volatile: int
    l2_aggregate: int
    sm_aggregate: int
    pcie_aggregate: int
    microcontroller_aggregate: int
    other_aggregate: int
    threshold_exceeded: int


class RemappedRows(msgspec.Struct, frozen=True, gc=False):
    """Rows of device memory that spare rows stand in for, since Ampere.

    Attributes:
        pending: 1 while a row waits for a reset of the GPU to be remapped.
        failed: 1 once a row could not be remapped.
    """

    correctable: int
    uncorrectable: int
    pending: int
    failed: int


class RemapBanks(msgspec.Struct, frozen=True, gc=False):
    """Number of memory banks by how many of their spare rows are left, from all to none."""

    max: int
    high: int
    partial: int
    low: int
    none: int


class RetiredPages(msgspec.Struct, frozen=True, gc=False):
    """Pages of device memory that are no longer used, before Ampere; None for what is not told.

    Attributes:
        single_bit: retired since they had several corrected errors.
        double_bit: retired since they had an uncorrected one.
        pending: 1 while a page waits for the next load of the driver to be retired.
    """

    single_bit: int | None
    double_bit: int | None
    pending: int | None


class Recovery(StrEnum):
    """What brings a GPU back to health; the value is a label."""

    NONE = "none"
    GPU_RESET = "gpu_reset"
    NODE_REBOOT = "node_reboot"
    DRAIN_P2P = "drain_p2p"
    DRAIN_AND_RESET = "drain_and_reset"
    RECOVER_IMEX_DOMAIN = "recover_imex_domain"
    BUS_RESET = "bus_reset"
    SYSTEM_REBOOT = "system_reboot"


# In the order of nvmlDeviceGpuRecoveryAction_t.
RECOVERIES: Final = tuple(Recovery)
# What newer drivers may add is still a number; a word for "not available" is none.
MOST_RECOVERIES: Final = 256


class RecoveryAction(msgspec.Struct, frozen=True, gc=False):
    """The action that the driver wants, as a number of nvmlDeviceGpuRecoveryAction_t."""

    number: int

    def consistent(self) -> bool:
        """Tell whether the number can be an action."""
        return 0 <= self.number < MOST_RECOVERIES

    def wanted(self) -> dict[str, float]:
        """Return 1 for the action, 0 for each other one; all 0 for one that has no name yet."""
        return {action: float(n == self.number) for n, action in enumerate(RECOVERIES)}
