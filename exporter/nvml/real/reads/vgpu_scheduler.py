"""The scheduler of a host's vGPUs: how it is set, and its log.

Of the three engines that have one, the graphics engine's is read: it does what users wait for.
"""

import ctypes
import struct
from typing import Any, Final

import pynvml

from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.reads.ways import Ways
from exporter.nvml.vgpu_waits import LogEntry
from slicewatch.catalog.readings.vgpu import VgpuScheduler

ENGINE: Final = pynvml.NVML_VGPU_SCHEDULER_ENGINE_TYPE_GRAPHICS
MOST_ENTRIES: Final = pynvml.NVML_SCHEDULER_SW_MAX_LOG_ENTRIES

# Time stamp, total, last slice, run list, target slice, preemption; since version 2 the weight.
_OLD_ENTRY: Final = struct.Struct("@QQ8xI4x8xQ")
_ENTRY: Final = struct.Struct("@QQ8xI4x8xQ8x")


class SchedulerReads:
    """The reads of one session, with their buffers. One thread at a time may use it."""

    def __init__(self) -> None:
        self._buffer = pynvml.c_nvmlVgpuSchedulerLogInfo_v2_t()
        self._old_buffer = pynvml.c_nvmlVgpuSchedulerLog_t()
        self._state_ways = Ways(_state, _old_state)
        self._log_ways = Ways(self._log, self._old_log)

    def state(self, calls: Calls, handle: Handle) -> VgpuScheduler:
        """Return policy and time slice.

        Raises:
            NVMLError: the board has no such scheduler now, or the call failed.
        """
        return self._state_ways.ask(calls, handle)

    def log(self, calls: Calls, handle: Handle) -> list[LogEntry]:
        """Return what the log holds.

        Raises:
            NVMLError: the board has no such scheduler now, or the call failed.
        """
        return self._log_ways.ask(calls, handle)

    def _log(self, calls: Calls, handle: Handle) -> list[LogEntry]:
        function = "nvmlDeviceGetVgpuSchedulerLog_v2"
        return _fill(calls, function, handle, self._buffer, _ENTRY)

    def _old_log(self, calls: Calls, handle: Handle) -> list[LogEntry]:
        function = "nvmlDeviceGetVgpuSchedulerLog"
        return _fill(calls, function, handle, self._old_buffer, _OLD_ENTRY)


def _fill(
    calls: Calls,
    function: str,
    handle: Handle,
    log: Any,  # noqa: ANN401 - one of two structures of the binding
    entry: struct.Struct,
) -> list[LogEntry]:
    log.engineId = ENGINE
    calls.call(function, handle, ctypes.byref(log))
    count = min(log.entriesCount, MOST_ENTRIES)
    rows = bytes(log.logEntries)[: count * entry.size]
    return [LogEntry(runlist, at, run, wait) for at, run, runlist, wait in entry.iter_unpack(rows)]


def _state(calls: Calls, handle: Handle) -> VgpuScheduler:
    state = pynvml.c_nvmlVgpuSchedulerStateInfo_v2_t(engineId=ENGINE)
    calls.call("nvmlDeviceGetVgpuSchedulerState_v2", handle, ctypes.byref(state))
    return VgpuScheduler(state.schedulerPolicy, state.timeslice)


def _old_state(calls: Calls, handle: Handle) -> VgpuScheduler:
    state = pynvml.c_nvmlVgpuSchedulerGetState_t()
    calls.call("nvmlDeviceGetVgpuSchedulerState", handle, ctypes.byref(state))
    parameters = state.schedulerParams
    adaptive = state.arrMode == pynvml.NVML_VGPU_SCHEDULER_ARR_ENABLE
    data = parameters.vgpuSchedDataWithARR if adaptive else parameters.vgpuSchedData
    return VgpuScheduler(state.schedulerPolicy, data.timeslice)
