"""How a board is set up: modes, generation, contents of its InfoROM, membership in a fabric."""

import ctypes
from functools import partial
from typing import Final

import pynvml
from pynvml import NVMLError

from exporter.nvml.protocol import Outcome, Unsupported, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.reads.parts import parts
from exporter.nvml.real.reads.read import Reads
from exporter.nvml.real.returns import TOO_OLD, Return
from slicewatch.catalog.readings.state import (
    ComputeMode,
    Fabric,
    Generation,
    Inforom,
    InforomCheck,
    Modes,
)

# In the order of the fields of Inforom, behind the image.
_OBJECTS: Final = (pynvml.NVML_INFOROM_OEM, pynvml.NVML_INFOROM_ECC, pynvml.NVML_INFOROM_POWER)
_NEITHER: Final = (None, None)


def _modes(_: Calls, handle: Handle) -> Outcome[Modes]:
    persistence, mig, ecc = parts(
        partial(pynvml.nvmlDeviceGetPersistenceMode, handle),
        partial(pynvml.nvmlDeviceGetMigMode, handle),
        partial(pynvml.nvmlDeviceGetEccMode, handle),
    )
    return Value(Modes(persistence, *(mig or _NEITHER), *(ecc or _NEITHER)))


def _compute_mode(_: Calls, handle: Handle) -> Outcome[ComputeMode]:
    return Value(ComputeMode(pynvml.nvmlDeviceGetComputeMode(handle)))


def _generation(_: Calls, handle: Handle) -> Outcome[Generation]:
    architecture, capability = parts(
        partial(pynvml.nvmlDeviceGetArchitecture, handle),
        partial(pynvml.nvmlDeviceGetCudaComputeCapability, handle),
    )
    return Value(Generation(architecture, *(capability or _NEITHER)))


def _inforom(_: Calls, handle: Handle) -> Outcome[Inforom]:
    image = partial(_text, partial(pynvml.nvmlDeviceGetInforomImageVersion, handle))
    ask = partial(pynvml.nvmlDeviceGetInforomVersion, handle)
    objects = (partial(_text, partial(ask, number)) for number in _OBJECTS)
    return Value(Inforom(*parts(image, *objects)))


def _text(call: partial[str]) -> str | None:
    """Return a version; None for bytes that are no text."""
    try:
        return call()
    except UnicodeDecodeError:
        return None


def _inforom_check(_: Calls, handle: Handle) -> Outcome[InforomCheck]:
    try:
        pynvml.nvmlDeviceValidateInforom(handle)
    except NVMLError as error:
        if error.value != Return.CORRUPTED_INFOROM:
            raise
        return Value(InforomCheck(valid=False))
    return Value(InforomCheck(valid=True))


def _fabric(_: Calls, handle: Handle) -> Outcome[Fabric]:
    try:
        info = pynvml.c_nvmlGpuFabricInfo_v3_t()
        pynvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
    except NVMLError as error:
        if error.value not in TOO_OLD:
            raise
        info = pynvml.c_nvmlGpuFabricInfo_v2_t()
        pynvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
    if info.state == pynvml.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED:
        return Unsupported("device")
    summary = getattr(info, "healthSummary", None)
    return Value(Fabric(info.state, info.status, info.healthMask, summary))


BOARD: Final[Reads] = {
    "modes": _modes,
    "compute_mode": _compute_mode,
    "generation": _generation,
    "inforom": _inforom,
    "inforom_check": _inforom_check,
    "fabric": _fabric,
}
INSTANCE: Final[Reads] = {"compute_mode": _compute_mode}
