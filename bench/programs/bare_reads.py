"""What the exporter reads, as a script reads it that calls NVIDIA's binding and does nothing else.

By the kind of device, and by the ticks between two reads. That these are the calls that the
exporter makes, and in its rhythm, is not claimed here but counted by whoever compares.
"""

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import pynvml

# The binding; its stubs have only what the product calls.
nvml: Final[Any] = pynvml
Handle: TypeAlias = Any
Read = Callable[[Handle], object]

_ALL_LINKS: Final = 0xFFFFFFFF
_ROWS: Final = 128


def _fields(*fields: int | tuple[int, int]) -> Read:
    return lambda gpu: nvml.nvmlDeviceGetFieldValues(gpu, fields)


def _number(name: str, *arguments: int) -> Read:
    def read(gpu: Handle) -> object:
        return getattr(nvml, name)(gpu, *arguments)

    return read


def _list(name: str) -> Read:
    """Return a read of a list of processes in one call, as a loop does that keeps its buffer."""
    rows, count = (nvml.c_nvmlProcessInfo_v3_t * _ROWS)(), ctypes.c_uint()
    function = nvml._nvmlGetFunctionPointer(name)  # noqa: SLF001 - the binding asks for sizes first

    def read(device: Handle) -> object:
        count.value = _ROWS
        nvml._nvmlCheckReturn(function(device, ctypes.byref(count), rows))  # noqa: SLF001
        return [(row.pid, row.usedGpuMemory) for row in rows[: count.value]]

    return read


def _shares() -> Read:
    """Return a read of what each process used since the last one, in one call."""
    rows = (nvml.c_nvmlProcessUtilizationInfo_v1_t * _ROWS)()
    asked = nvml.c_nvmlProcessesUtilizationInfo_v1_t()
    asked.version = nvml.ProcessesUtilizationInfo_v1
    function = nvml._nvmlGetFunctionPointer(  # noqa: SLF001 - as above
        "nvmlDeviceGetProcessesUtilizationInfo"
    )

    def read(gpu: Handle) -> object:
        asked.processSamplesCount = _ROWS
        asked.procUtilArray = rows
        nvml._nvmlCheckReturn(function(gpu, ctypes.byref(asked)))  # noqa: SLF001
        found = rows[: asked.processSamplesCount]
        asked.lastSeenTimeStamp = max((row.timeStamp for row in found), default=0)
        return [(row.pid, row.smUtil) for row in found]

    return read


def _samples() -> Read:
    seen = 0

    def read(gpu: Handle) -> object:
        nonlocal seen
        _, found = nvml.nvmlDeviceGetSamples(gpu, nvml.NVML_GPU_UTILIZATION_SAMPLES, seen)
        seen = found[-1].timeStamp
        return [sample.sampleValue.uiVal for sample in found]

    return read


_MEMORY: Final[tuple[Read, ...]] = (lambda d: nvml.nvmlDeviceGetMemoryInfo(d, nvml.nvmlMemory_v2),)
_LISTS: Final = (
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
)
_LINKS: Final = 18

Rhythm = Mapping[int, tuple[Read, ...]]


def board() -> Rhythm:
    """Return the reads of any GPU."""
    return {
        1: (
            *_MEMORY,
            _number("nvmlDeviceGetPowerUsage"),
            _fields((nvml.NVML_FI_DEV_POWER_INSTANT, 0), (nvml.NVML_FI_DEV_POWER_AVERAGE, 0)),
            _number("nvmlDeviceGetTotalEnergyConsumption"),
            _number("nvmlDeviceGetTemperatureV", nvml.NVML_TEMPERATURE_GPU),
            _number("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            _number("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
        ),
        5: (
            _number("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_VIDEO),
            _number("nvmlDeviceGetPerformanceState"),
            _number("nvmlDeviceGetCurrentClocksEventReasons"),
            _number("nvmlDeviceGetSupportedClocksEventReasons"),
            _fields(
                nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP,
                nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST,
                nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
                nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
                nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
                nvml.NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT,
                nvml.NVML_FI_DEV_PERF_POLICY_RELIABILITY,
                nvml.NVML_FI_DEV_PERF_POLICY_THERMAL,
            ),
            _fields(nvml.NVML_FI_DEV_MEMORY_TEMP),
            _number("nvmlDeviceGetMarginTemperature"),
            _fields(nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION),
        ),
        10: (
            _number("nvmlDeviceGetBAR1MemoryInfo"),
            *(
                _number("nvmlDeviceGetTotalEccErrors", kind, counter)
                for kind in (0, 1)
                for counter in (0, 1)
            ),
            lambda gpu: nvml.nvmlDeviceGetGpuFabricInfoV(
                gpu, ctypes.byref(nvml.c_nvmlGpuFabricInfoV_t())
            ),
            _number("nvmlDeviceGetCurrPcieLinkGeneration"),
            _number("nvmlDeviceGetMaxPcieLinkGeneration"),
            _number("nvmlDeviceGetGpuMaxPcieLinkGeneration"),
            _number("nvmlDeviceGetCurrPcieLinkWidth"),
            _number("nvmlDeviceGetMaxPcieLinkWidth"),
            _number("nvmlDeviceGetPcieReplayCounter"),
        ),
        60: (
            *(_number("nvmlDeviceGetMaxClockInfo", clock) for clock in range(4)),
            _number("nvmlDeviceGetEnforcedPowerLimit"),
            _number("nvmlDeviceGetPowerManagementLimit"),
            _number("nvmlDeviceGetPowerManagementDefaultLimit"),
            _number("nvmlDeviceGetPowerManagementLimitConstraints"),
            _fields(
                nvml.NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT,
                nvml.NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT,
                nvml.NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT,
                nvml.NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT,
            ),
            lambda gpu: nvml.nvmlDeviceGetSramEccErrorStatus(
                gpu, ctypes.byref(nvml.c_nvmlEccSramErrorStatus_v1_t())
            ),
            _number("nvmlDeviceGetPersistenceMode"),
            _number("nvmlDeviceGetMigMode"),
            _number("nvmlDeviceGetEccMode"),
        ),
    }


def whole() -> Rhythm:
    """Return what is read besides of a GPU that is not partitioned."""
    links = range(_LINKS)
    count = _fields(nvml.NVML_FI_DEV_NVLINK_LINK_COUNT)
    sent, received = (
        nvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES,
        nvml.NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES,
    )
    return {
        1: (
            _samples(),
            nvml.nvmlDeviceGetUtilizationRates,
            nvml.nvmlDeviceGetEncoderUtilization,
            nvml.nvmlDeviceGetDecoderUtilization,
            _shares(),
        ),
        5: (
            *map(_list, _LISTS),
            count,
            *(_number("nvmlDeviceGetNvLinkState", link) for link in links),
            count,
            _fields(
                (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, _ALL_LINKS),
                (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, _ALL_LINKS),
                *((sent, link) for link in links),
                *((received, link) for link in links),
            ),
        ),
        10: (nvml.nvmlDeviceGetRemappedRows,),
        60: (nvml.nvmlDeviceGetRowRemapperHistogram, nvml.nvmlDeviceGetComputeMode),
    }


def instance() -> Rhythm:
    """Return the reads of a MIG instance."""
    return {
        1: _MEMORY,
        5: tuple(map(_list, _LISTS)),
        10: (_number("nvmlDeviceGetBAR1MemoryInfo"),),
        60: (nvml.nvmlDeviceGetComputeMode,),
    }
