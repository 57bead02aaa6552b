"""The vGPUs of a host. Boards of other machines are asked for their mode, and nothing else."""

import ctypes
from collections.abc import Callable
from typing import Any, Final

import pynvml
from pynvml import NVMLError

from exporter.nvml.protocol import Outcome, Unsupported, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.reads import vgpu_rates
from exporter.nvml.real.reads.read import Read, Reads
from exporter.nvml.real.reads.table import not_while_mig_enabled
from exporter.nvml.real.reads.vgpu_scheduler import SchedulerReads
from exporter.nvml.real.reads.ways import Ways
from exporter.nvml.real.returns import GONE, Return
from exporter.nvml.samples import Cursors, VgpuRow
from slicewatch.catalog.readings.vgpu import Vgpu, Vgpus, VgpuScheduler, VgpuUtilization, VgpuWaits

NO_HOST: Final = Unsupported("no_vgpu_host")
# A GPU has at most 48; a driver in trouble may claim any number.
MOST_INSTANCES: Final = 256
_NOTHING_ELSE: Final[frozenset[int]] = frozenset()
# What NVML answers while no driver runs in the guest. Of the host's own it would be the end.
_OF_THE_GUEST: Final = frozenset({Return.DRIVER_NOT_LOADED})
_VM_BYTES: Final = 80


class VgpuReads:
    """The reads of one session. One thread at a time may use it.

    Args:
        cursors: how far the GPU was read.
        now_us: the clock that the driver stamps its samples with, since 1970.
    """

    def __init__(self, cursors: Cursors, now_us: Callable[[], int]) -> None:
        self._cursor = cursors.vgpus
        self._wait_cursor = cursors.vgpu_waits
        self._now_us = now_us
        self._scheduler = SchedulerReads()
        self._rates = Ways(vgpu_rates.rows, vgpu_rates.old_rows)
        self._uuids: dict[int, str] = {}
        self._numbers = (ctypes.c_uint * MOST_INSTANCES)()
        of_vgpus: Reads = {"vgpus": self._vgpus, "vgpu_utilization": self._utilization}
        of_scheduler: Reads = {"vgpu_scheduler": self._state, "vgpu_waits": self._waits}
        # A partitioned GPU has no scheduler for all of its vGPUs.
        without = dict.fromkeys(of_scheduler, not_while_mig_enabled)
        self.of_board: Reads = {k: _on_host(v) for k, v in (of_vgpus | of_scheduler).items()}
        self.of_partitioned: Reads = {k: _on_host(v) for k, v in (of_vgpus | without).items()}

    def _vgpus(self, calls: Calls, handle: Handle) -> Outcome[Vgpus]:
        numbers = self._active(calls, handle)
        found = (_describe(calls, n, uuid) for n, uuid in self._known(numbers).items())
        return Value(Vgpus(len(numbers), tuple(vgpu for vgpu in found if vgpu is not None)))

    def _utilization(self, calls: Calls, handle: Handle) -> Outcome[VgpuUtilization]:
        running = self._known(self._active(calls, handle))
        now_us = self._now_us()
        rows: list[VgpuRow] = []
        try:
            rows = self._rates.ask(calls, handle, self._cursor.since_us(now_us))
        except NVMLError as error:
            if error.value != Return.NOT_FOUND:
                raise
        return Value(self._cursor.take(rows, running, now_us))

    def _state(self, calls: Calls, handle: Handle) -> Outcome[VgpuScheduler]:
        return Value(self._scheduler.state(calls, handle))

    def _waits(self, calls: Calls, handle: Handle) -> Outcome[VgpuWaits]:
        running = self._known(self._active(calls, handle))
        return Value(self._wait_cursor.take(self._scheduler.log(calls, handle), running))

    def _active(self, calls: Calls, handle: Handle) -> list[int]:
        """Return the ids of the vGPUs that run."""
        count = ctypes.c_uint(MOST_INSTANCES)
        calls.call("nvmlDeviceGetActiveVgpus", handle, ctypes.byref(count), self._numbers)
        return self._numbers[: min(count.value, MOST_INSTANCES)]

    def _known(self, numbers: list[int]) -> dict[int, str]:
        """Return the uuid of each vGPU that states one, by its id; each is asked once."""
        before = self._uuids
        stated = {n: before.get(n) or _stated(pynvml.nvmlVgpuInstanceGetUUID, n) for n in numbers}
        self._uuids = {number: uuid for number, uuid in stated.items() if uuid}
        return self._uuids


def _on_host(read: Read) -> Read:
    def ask(calls: Calls, handle: Handle) -> Outcome[Any]:
        mode = calls.number("nvmlDeviceGetVirtualizationMode", handle)
        if mode != pynvml.NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU:
            return NO_HOST
        return read(calls, handle)

    return ask


def _describe(calls: Calls, number: int, uuid: str) -> Vgpu | None:
    """Return what a vGPU says of itself; None for one that ended meanwhile."""
    try:
        kind = pynvml.nvmlVgpuInstanceGetType(number)
    except NVMLError as error:
        if error.value in GONE:
            raise
        if error.value == Return.NOT_FOUND:
            return None
        kind = None
    return Vgpu(
        uuid,
        "" if kind is None else _stated(pynvml.nvmlVgpuTypeGetName, kind) or "",
        _stated(_vm, calls, number) or "",
        _stated(_used_bytes, calls, number),
        None if kind is None else _stated(pynvml.nvmlVgpuTypeGetFramebufferSize, kind),
        _stated(_licensed, number, besides=_OF_THE_GUEST),
    )


def _used_bytes(calls: Calls, number: int) -> int:
    # The binding has room for half of the word that the driver writes.
    used = ctypes.c_ulonglong()
    calls.call("nvmlVgpuInstanceGetFbUsage", number, ctypes.byref(used))
    return used.value


def _licensed(number: int) -> int:
    licensed: int = pynvml.nvmlVgpuInstanceGetLicenseInfo_v2(number).isLicensed
    return licensed


def _vm(calls: Calls, number: int) -> str:
    # The binding tells the driver of more room than it made.
    text, kind = ctypes.create_string_buffer(_VM_BYTES), ctypes.c_uint()
    calls.call("nvmlVgpuInstanceGetVmID", number, text, _VM_BYTES, ctypes.byref(kind))
    return text.value.decode()


def _stated(
    call: Callable[..., Any], *arguments: object, besides: frozenset[int] = _NOTHING_ELSE
) -> Any:  # noqa: ANN401 - what the call returns
    """Return what a call of one vGPU returns; None for one that fails, or for bytes that are no text.

    Raises:
        NVMLError: the GPU or the driver is gone; ``besides`` means something else here.
    """
    try:
        return call(*arguments)
    except UnicodeDecodeError:
        return None
    except NVMLError as error:
        if error.value in GONE - besides:
            raise
        return None
