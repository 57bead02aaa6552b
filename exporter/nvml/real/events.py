"""What happens on the GPUs, through one event set of NVML."""

import contextlib
import ctypes
import math
from typing import Final

import pynvml
from pynvml import NVMLError

from exporter.nvml.protocol import (
    Event,
    EventKind,
    EventSource,
    Failed,
    Outcome,
    Unsupported,
    Value,
)
from exporter.nvml.real.returns import NoValue, Return, outcome_of
from slicewatch.wire.layout import Device

_MILLISECONDS: Final = 1000
_EVENTS_AT_ONCE: Final = 256
_NO_INSTANCE: Final = 0xFFFFFFFF
_KINDS: Final = {
    pynvml.nvmlEventTypeXidCriticalError: EventKind.XID,
    pynvml.nvmlEventTypeSingleBitEccError: EventKind.SINGLE_BIT_ECC,
    pynvml.nvmlEventTypeDoubleBitEccError: EventKind.DOUBLE_BIT_ECC,
    pynvml.nvmlEventTypeGpuRecoveryAction: EventKind.RECOVERY_ACTION,
}
_TYPES: Final = sum(_KINDS)
# A GPU's uuid, and what it reports.
_Heard = tuple[str, frozenset[EventKind]]


def listen(gpus: tuple[Device, ...]) -> Outcome[EventSource]:
    """Listen to the GPUs from now on. One that is lost or reports no events is left out."""
    try:
        event_set = pynvml.nvmlEventSetCreate()
    except NVMLError as error:
        return outcome_of(error.value)
    heard: dict[int, _Heard] = {}
    refusal: NoValue = Unsupported("device")
    for gpu in gpus:
        try:
            heard |= _register(event_set, gpu)
        except NVMLError as error:
            refusal = outcome_of(error.value)
            if isinstance(refusal, Failed):
                # NVML leaves the whole set undefined.
                _free(event_set)
                return refusal
    if gpus and not heard:
        _free(event_set)
        return refusal
    return Value(RealEvents(event_set, heard))


class RealEvents:
    """An event set; see ``protocol.EventSource``.

    The first failure ends it, since NVML leaves the set undefined: it is freed, every later wait
    answers the same, and only a new one listens again.
    """

    def __init__(self, event_set: pynvml.c_nvmlEventSet_t, heard: dict[int, _Heard]) -> None:
        self._set = event_set
        # A GPU that was just lost is not asked for its name: it is known by its address.
        self._names = {address: name for address, (name, _) in heard.items()}
        self._kinds = dict(heard.values())
        self._ended: NoValue | None = None

    @property
    def kinds(self) -> dict[str, frozenset[EventKind]]:
        """Return what is listened to, by uuid of the GPU."""
        return self._kinds

    def wait(self, timeout_seconds: float) -> Outcome[tuple[Event, ...]]:
        """Return what happened since the last call, or what ended the listening."""
        if self._ended is not None:
            return self._ended
        events: list[Event] = []
        failure = self._collect(events, math.ceil(timeout_seconds * _MILLISECONDS))
        if failure is not None:
            self._end(failure)
        # What came before a failure is not lost: the next call reports the failure.
        return failure if failure is not None and not events else Value(tuple(events))

    def close(self) -> None:
        """Free the set."""
        if self._ended is None:
            self._end(Failed(Return.INVALID_STATE.name))

    def _collect(self, events: list[Event], timeout_milliseconds: int) -> NoValue | None:
        try:
            for taken in range(_EVENTS_AT_ONCE):
                wait = 0 if taken else timeout_milliseconds
                data = pynvml.nvmlEventSetWait_v2(self._set, wait)
                # What nobody asked for must not cost the events that came with it.
                if (kind := _KINDS.get(data.eventType)) is not None:
                    events.append(self._event(kind, data))
        except NVMLError as error:
            return None if error.value == Return.TIMEOUT else outcome_of(error.value)
        return None

    def _end(self, reason: NoValue) -> None:
        self._ended = reason
        _free(self._set)

    def _event(self, kind: EventKind, data: pynvml.c_nvmlEventData_t) -> Event:
        return Event(
            kind=kind,
            gpu=self._names.get(_address(data.device)) or _name(data.device),
            data=data.eventData,
            gpu_instance=_instance_or_none(data.gpuInstanceId),
            compute_instance=_instance_or_none(data.computeInstanceId),
        )


def _register(event_set: pynvml.c_nvmlEventSet_t, gpu: Device) -> dict[int, _Heard]:
    """Register what the GPU can report; return it by the address that events carry."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(gpu.gpu)
    types = pynvml.nvmlDeviceGetSupportedEventTypes(handle) & _TYPES
    if not types:
        return {}
    pynvml.nvmlDeviceRegisterEvents(handle, types, event_set)
    kinds = frozenset(kind for bit, kind in _KINDS.items() if bit & types)
    return {_address(handle): (gpu.uuid, kinds)}


def _name(handle: pynvml.c_nvmlDevice_t) -> str:
    """Return the uuid of a GPU that NVML calls otherwise in events than elsewhere."""
    try:
        return pynvml.nvmlDeviceGetUUID(handle)
    except (NVMLError, UnicodeDecodeError):
        return ""


def _address(handle: pynvml.c_nvmlDevice_t) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _instance_or_none(number: int) -> int | None:
    return None if number == _NO_INSTANCE else number


def _free(event_set: pynvml.c_nvmlEventSet_t) -> None:
    with contextlib.suppress(NVMLError):
        pynvml.nvmlEventSetFree(event_set)
