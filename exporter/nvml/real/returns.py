"""What NVML's return codes mean to us: the one place that decides it. Pure."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from exporter.nvml.protocol import DriverUnavailableError, Failed, Lost, Unsupported


class Return(IntEnum):
    """``nvmlReturn_t`` of nvml.h, without success."""

    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    ALREADY_INITIALIZED = 5
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    INSUFFICIENT_POWER = 8
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    IRQ_ISSUE = 11
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    CORRUPTED_INFOROM = 14
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    OPERATING_SYSTEM = 17
    LIB_RM_VERSION_MISMATCH = 18
    IN_USE = 19
    MEMORY = 20
    NO_DATA = 21
    VGPU_ECC_NOT_SUPPORTED = 22
    INSUFFICIENT_RESOURCES = 23
    FREQ_NOT_SUPPORTED = 24
    ARGUMENT_VERSION_MISMATCH = 25
    DEPRECATED = 26
    NOT_READY = 27
    GPU_NOT_FOUND = 28
    INVALID_STATE = 29
    RESET_TYPE_NOT_SUPPORTED = 30
    UNKNOWN = 999


NoValue = Unsupported | Failed | Lost

# The call is not in this library, or its structure is newer or older than what we pass.
TOO_OLD: Final = frozenset({
    Return.FUNCTION_NOT_FOUND, Return.ARGUMENT_VERSION_MISMATCH, Return.DEPRECATED,
})  # fmt: skip
_LOST: Final = frozenset({Return.GPU_IS_LOST, Return.RESET_REQUIRED, Return.GPU_NOT_FOUND})
_DRIVER_GONE: Final = frozenset({
    Return.UNINITIALIZED, Return.DRIVER_NOT_LOADED, Return.LIB_RM_VERSION_MISMATCH,
})  # fmt: skip
# Asking again will not help.
UNSUPPORTED: Final = TOO_OLD | {Return.NOT_SUPPORTED, Return.NO_PERMISSION}
# Not this call alone fails but every one, of the GPU or of the process.
GONE: Final = _LOST | _DRIVER_GONE
_UNAVAILABLE: Final[dict[int, tuple[str, str]]] = {
    Return.LIBRARY_NOT_FOUND: (
        "no_library",
        "libnvidia-ml.so.1 is not there; run where NVIDIA's container runtime provides it",
    ),
    Return.DRIVER_NOT_LOADED: ("no_driver", "the NVIDIA kernel driver is not loaded"),
    Return.UNINITIALIZED: ("no_driver", "the NVIDIA kernel driver went away"),
    Return.LIB_RM_VERSION_MISMATCH: (
        "version_mismatch",
        "library and kernel driver differ in version; restart the pod once both are of one",
    ),
    Return.NO_PERMISSION: ("permission", "the NVIDIA device files may not be opened"),
}


def _meaning(code: Return) -> NoValue:
    if code in _LOST:
        return Lost(code.name.lower())
    if code in _DRIVER_GONE:
        return Failed(code.name, reinitialise=True)
    if code in TOO_OLD:
        return Unsupported("driver")
    if code is Return.NOT_SUPPORTED:
        return Unsupported("device")
    if code is Return.NO_PERMISSION:
        return Unsupported("permission")
    return Failed(code.name)


# Outcomes are immutable, so that a failing read costs no new object.
_OUTCOMES: Final = {int(code): _meaning(code) for code in Return}


def outcome_of(code: int) -> NoValue:
    """Return what a failed call says about a device; codes of newer drivers are failures."""
    return _OUTCOMES.get(code) or Failed(f"CODE_{code}")


def gravest(codes: Iterable[int]) -> int:
    """Return the code that says most: what is gone, then what failed, then what is not there."""
    return max(codes, key=_weight)


def _weight(code: int) -> int:
    return 2 if code in GONE else int(isinstance(outcome_of(code), Failed))


def unavailable(code: int) -> DriverUnavailableError:
    """Return the error for a driver that cannot be started or enumerated."""
    if code in _UNAVAILABLE:
        return DriverUnavailableError(*_UNAVAILABLE[code])
    name = Return(code).name if code in _OUTCOMES else str(code)
    return DriverUnavailableError("unknown", f"NVML answers {name}; the kernel log may say why")
