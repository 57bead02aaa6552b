"""Memory errors of a board, what was done about them, and what should be."""

import ctypes
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pynvml
from pynvml import NVMLError

from exporter.nvml.protocol import Outcome, Unsupported, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.reads.parts import parts
from exporter.nvml.real.reads.read import Read, Reads
from exporter.nvml.real.returns import Return
from slicewatch.catalog.readings.errors import (
    EccByLocation,
    EccErrors,
    MemoryLocation,
    RecoveryAction,
    RemapBanks,
    RemappedRows,
    RetiredPages,
    SramErrors,
)

_ECC_OFF: Final = Unsupported("ecc_off")
_MIG_ENABLED: Final = Unsupported("mig_enabled")
# Error type and counter type, in the order of the fields of EccErrors.
_COUNTERS: Final = (
    (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_VOLATILE_ECC),
    (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC),
    (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_AGGREGATE_ECC),
    (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_AGGREGATE_ECC),
)
# In the order of nvmlMemoryLocation_t.
_LOCATIONS: Final = tuple(enumerate(MemoryLocation))
_RETIRED: Final = (
    (pynvml.NVML_FI_DEV_RETIRED_SBE, 0),
    (pynvml.NVML_FI_DEV_RETIRED_DBE, 0),
    (pynvml.NVML_FI_DEV_RETIRED_PENDING, 0),
)
# nvmlEccSramErrorStatus_v1_t: a version, then the fields of SramErrors.
_SRAM: Final = struct.Struct("@I11QI")
_RECOVERY: Final = (pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0)


def _with_ecc(read: Read) -> Read:
    """Return the read with its own reason for what is not counted because ECC is off."""
    return _explained(read, lambda handle: _ECC_OFF if _is_ecc_off(handle) else None)


def _unless_mig_enabled(read: Read) -> Read:
    return _explained(read, lambda _: _MIG_ENABLED)


def _explained(read: Read, reason: Callable[[Handle], Unsupported | None]) -> Read:
    def explained(calls: Calls, handle: Handle) -> Outcome[Any]:
        try:
            return read(calls, handle)
        except NVMLError as error:
            found = reason(handle) if error.value == Return.NOT_SUPPORTED else None
            if found is None:
                raise
            return found

    return explained


def _is_ecc_off(handle: Handle) -> bool:
    try:
        current, _ = pynvml.nvmlDeviceGetEccMode(handle)
    except NVMLError:
        return False
    return bool(current == pynvml.NVML_FEATURE_DISABLED)


def _ecc(_: Calls, handle: Handle) -> Outcome[EccErrors]:
    ask = partial(pynvml.nvmlDeviceGetTotalEccErrors, handle)
    return Value(EccErrors(*parts(*(partial(ask, *counter) for counter in _COUNTERS))))


def _ecc_locations(_: Calls, handle: Handle) -> Outcome[EccByLocation]:
    questions = [(*counter, number) for number, _ in _LOCATIONS for counter in _COUNTERS]
    ask = partial(pynvml.nvmlDeviceGetMemoryErrorCounter, handle)
    numbers = iter(parts(*(partial(ask, *question) for question in questions)))
    found = (
        (location, EccErrors(*(next(numbers) for _ in _COUNTERS))) for _, location in _LOCATIONS
    )
    return Value(
        EccByLocation(tuple((at, errors) for at, errors in found if errors != EccErrors()))
    )


def _ecc_locations_of_instance(_: Calls, handle: Handle) -> Outcome[EccByLocation]:
    """Read what an instance has: uncorrected errors since the load of the driver, without DRAM."""
    places = [(n, location) for n, location in _LOCATIONS if location is not MemoryLocation.DRAM]
    ask = partial(pynvml.nvmlDeviceGetMemoryErrorCounter, handle, *_COUNTERS[1])
    numbers = parts(*(partial(ask, n) for n, _ in places))
    return Value(
        EccByLocation(
            tuple(
                (location, EccErrors(uncorrected_volatile=number))
                for (_, location), number in zip(places, numbers, strict=True)
                if number is not None
            )
        )
    )


def _sram(_: Calls, handle: Handle) -> Outcome[SramErrors]:
    status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    pynvml.nvmlDeviceGetSramEccErrorStatus(handle, ctypes.byref(status))
    _, *numbers = _SRAM.unpack_from(status)
    return Value(SramErrors(*numbers))


def _remapped_rows(_: Calls, handle: Handle) -> Outcome[RemappedRows]:
    return Value(RemappedRows(*pynvml.nvmlDeviceGetRemappedRows(handle)))


def _remap_banks(_: Calls, handle: Handle) -> Outcome[RemapBanks]:
    banks = pynvml.nvmlDeviceGetRowRemapperHistogram(handle)
    return Value(RemapBanks(banks.max, banks.high, banks.partial, banks.low, banks.none))


def _retired_pages(calls: Calls, handle: Handle) -> Outcome[RetiredPages]:
    # The lists of pages are as long as there are pages; the fields only count them.
    return Value(RetiredPages(*calls.fields(handle, *_RETIRED)))


def _recovery(calls: Calls, handle: Handle) -> Outcome[RecoveryAction]:
    (number,) = calls.fields(handle, _RECOVERY)
    return Unsupported("device") if number is None else Value(RecoveryAction(number))


BOARD: Final[Reads] = {
    "ecc": _with_ecc(_ecc),
    "ecc_locations": _with_ecc(_ecc_locations),
    "sram_ecc": _with_ecc(_sram),
    "remapped_rows": _remapped_rows,
    "row_remap_banks": _remap_banks,
    "retired_pages": _retired_pages,
    "recovery_action": _recovery,
}
INSTANCE: Final[Reads] = {"ecc_locations": _ecc_locations_of_instance}
# Of a GPU in MIG mode. Drivers may learn to tell this, so they are asked; if not, that is why.
PARTITIONED: Final[Reads] = {
    "remapped_rows": _unless_mig_enabled(_remapped_rows),
    "row_remap_banks": _unless_mig_enabled(_remap_banks),
}
