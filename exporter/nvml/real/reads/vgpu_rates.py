"""What each vGPU of a host kept busy since a timestamp."""

import ctypes
import struct
from typing import Final

import pynvml
from pynvml import NVMLError

from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.returns import Return
from exporter.nvml.samples import VgpuRow

MOST_ROWS: Final = 256

# The members of nvmlValue_t, by nvmlValueType_t. All rates of an answer are of one type.
_VALUES: Final = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: "d",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "I4x",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "Q",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "Q",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "q",
    pynvml.NVML_VALUE_TYPE_SIGNED_INT: "i4x",
}
# Time and instance; SMs, memory, encoder and decoder; JPEG and optical flow.
_ROW: Final = {kind: struct.Struct(f"@QI4x{4 * one}16x") for kind, one in _VALUES.items()}
_OLD_ROW: Final = {kind: struct.Struct(f"@I4xQ{4 * one}") for kind, one in _VALUES.items()}


def rows(calls: Calls, handle: Handle, since_us: int) -> list[VgpuRow]:
    """Return a row for each vGPU, by the call that drivers have since R550.

    Raises:
        NVMLError: NOT_FOUND where no sample is newer, or what else the call answers.
    """
    buffer = (pynvml.c_nvmlVgpuInstanceUtilizationInfo_v1_t * MOST_ROWS)()
    question = pynvml.c_nvmlVgpuInstancesUtilizationInfo_v1_t(
        version=pynvml.VgpuInstancesUtilizationInfo_v1,
        vgpuInstanceCount=MOST_ROWS,
        lastSeenTimeStamp=since_us,
        vgpuUtilArray=buffer,
    )
    function = "nvmlDeviceGetVgpuInstancesUtilizationInfo"
    calls.call(function, handle, ctypes.byref(question))
    layout = _of_type(_ROW, question.sampleValType)
    used = bytes(buffer)[: min(question.vgpuInstanceCount, MOST_ROWS) * layout.size]
    return [(number, at, *rates) for at, number, *rates in layout.iter_unpack(used)]


def old_rows(calls: Calls, handle: Handle, since_us: int) -> list[VgpuRow]:
    """Return a row for each vGPU, by the call that older drivers have.

    Raises:
        NVMLError: as ``rows``.
    """
    buffer = (pynvml.c_nvmlVgpuInstanceUtilizationSample_t * MOST_ROWS)()
    kind, count = ctypes.c_uint(), ctypes.c_uint(MOST_ROWS)
    calls.call(
        "nvmlDeviceGetVgpuUtilization",
        handle, ctypes.c_ulonglong(since_us), ctypes.byref(kind), ctypes.byref(count), buffer,
    )  # fmt: skip
    layout = _of_type(_OLD_ROW, kind.value)
    used = bytes(buffer)[: min(count.value, MOST_ROWS) * layout.size]
    return [(number, at, *rates) for number, at, *rates in layout.iter_unpack(used)]


def _of_type(layouts: dict[int, struct.Struct], kind: int) -> struct.Struct:
    layout = layouts.get(kind)
    if layout is None:
        # A type that was added since.
        raise NVMLError(Return.ARGUMENT_VERSION_MISMATCH)
    return layout
