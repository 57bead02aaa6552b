"""Processes of a device, and how much each of them used.

What the driver fills are lists of unknown length: a buffer is kept, and enlarged where the driver
says that it is too small. Asking for the length first would double the calls.
"""

import ctypes
import struct
from typing import Final

import pynvml
from pynvml import NVMLError

from exporter.nvml.protocol import Outcome, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.reads.ways import Ways
from exporter.nvml.real.returns import UNSUPPORTED, Return, outcome_of
from slicewatch.catalog.readings.processes import GpuProcess, Processes, ProcessKind

ATTEMPTS: Final = 4
FIRST_ROWS: Final = 128
# A driver in trouble may ask for room for billions.
MOST_ROWS: Final = 2**14

_PROCESS: Final = struct.Struct("@IQII")
_SHARE: Final = struct.Struct("@QIIIIIII4x")
_OLD_SHARE: Final = struct.Struct("@IQIIII")

_LISTS: Final = (
    (ProcessKind.MPS, "nvmlDeviceGetMPSComputeRunningProcesses_v3"),
    (ProcessKind.COMPUTE, "nvmlDeviceGetComputeRunningProcesses_v3"),
    (ProcessKind.GRAPHICS, "nvmlDeviceGetGraphicsRunningProcesses_v3"),
)
# pid, CPU timestamp in microseconds, percent.
Entry = tuple[int, int, int]


class ProcessReads:
    """The reads of one session, with their buffer. One thread at a time may use it.

    What was read is looked at in the buffer, which the next read fills anew.
    """

    def __init__(self) -> None:
        self._rows = FIRST_ROWS
        self._buffer = ctypes.create_string_buffer(FIRST_ROWS * _SHARE.size)
        self._count = ctypes.c_uint()
        self._question = pynvml.c_nvmlProcessesUtilizationInfo_v1_t()
        self._ways = Ways(self._shares, self._old_shares)

    def of_device(self, calls: Calls, handle: Handle) -> Outcome[Processes]:
        """Return the processes of a GPU or MIG instance, each once."""
        found: dict[int, GpuProcess] = {}
        refusals = []
        for kind, function in _LISTS:
            try:
                rows = self._list(calls, function, handle)
            except NVMLError as error:
                if error.value not in UNSUPPORTED:
                    raise
                refusals.append(outcome_of(error.value))
                continue
            for pid, used, *_ in _PROCESS.iter_unpack(rows):
                known = None if used == pynvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value else used
                # A process that computes and draws is in two lists, with the same memory.
                found.setdefault(pid, GpuProcess(pid, kind, known))
        if len(refusals) == len(_LISTS):
            return refusals[0]
        return Value(Processes(tuple(found.values())))

    def shares(self, calls: Calls, handle: Handle, since_us: int) -> list[Entry]:
        """Return what each process used since a timestamp.

        Raises:
            NVMLError: NOT_FOUND where nothing ran, or what else the call answers.
        """
        return self._ways.ask(calls, handle, since_us)

    def _list(self, calls: Calls, function: str, handle: Handle) -> memoryview:
        for _ in range(ATTEMPTS):
            self._count.value = self._rows
            if calls.fits(function, handle, ctypes.byref(self._count), self._buffer):
                return memoryview(self._buffer)[: self._count.value * _PROCESS.size]
            self._enlarge(self._count.value)
        raise NVMLError(Return.INSUFFICIENT_SIZE)

    def _shares(self, calls: Calls, handle: Handle, since_us: int) -> list[Entry]:
        question = self._question
        question.version = pynvml.ProcessesUtilizationInfo_v1
        question.lastSeenTimeStamp = since_us
        for _ in range(ATTEMPTS):
            question.processSamplesCount = self._rows
            question.procUtilArray = ctypes.cast(
                self._buffer, ctypes.POINTER(pynvml.c_nvmlProcessUtilizationInfo_v1_t)
            )
            if calls.fits("nvmlDeviceGetProcessesUtilizationInfo", handle, ctypes.byref(question)):
                rows = memoryview(self._buffer)[: question.processSamplesCount * _SHARE.size]
                return [(pid, at, sm) for at, pid, sm, *_ in _SHARE.iter_unpack(rows)]
            self._enlarge(question.processSamplesCount)
        raise NVMLError(Return.INSUFFICIENT_SIZE)

    def _old_shares(self, calls: Calls, handle: Handle, since_us: int) -> list[Entry]:
        since = ctypes.c_ulonglong(since_us)
        for _ in range(ATTEMPTS):
            self._count.value = self._rows
            if calls.fits(
                "nvmlDeviceGetProcessUtilization",
                handle, self._buffer, ctypes.byref(self._count), since,
            ):  # fmt: skip
                rows = memoryview(self._buffer)[: self._count.value * _OLD_SHARE.size]
                return [(pid, at, sm) for pid, at, sm, *_ in _OLD_SHARE.iter_unpack(rows)]
            self._enlarge(self._count.value)
        raise NVMLError(Return.INSUFFICIENT_SIZE)

    def _enlarge(self, rows: int) -> None:
        # Some more, for those that start before the next attempt.
        self._rows = min(2 * max(rows, self._rows), MOST_ROWS)
        self._buffer = ctypes.create_string_buffer(self._rows * _SHARE.size)
