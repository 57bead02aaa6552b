"""Who is there: what a GPU and its MIG instances state of themselves.

Read once for each of them. What one does not state is left empty; it is no reason to hide it.
"""

from collections.abc import Callable, Iterator
from typing import Final

import pynvml
from pynvml import NVMLError

from exporter.nvml.protocol import Failed, Outcome, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.returns import GONE, TOO_OLD, UNSUPPORTED, outcome_of
from slicewatch.wire.layout import Device

# What tells one MIG instance from another: uuid, GPU instance, compute instance, and its
# attributes (SMs, engines, slices, memory), since the driver may give all three ids to an
# instance of another size after the GPU was partitioned anew. Made anew in every cycle, hence
# no class.
InstanceKey = tuple[bytes, int, int, tuple[int, ...]]

# The uuid is not text; NVML has no error for that.
GARBLED: Final = Failed("GARBLED_UUID")


def identify(index: int) -> Outcome[Device]:
    """Return the GPU at an index of NVML's enumeration, or why it cannot be told which it is."""
    try:
        board = _board(index, pynvml.nvmlDeviceGetHandleByIndex(index))
    except NVMLError as error:
        return outcome_of(error.value)
    except UnicodeDecodeError:
        return GARBLED
    return Value(board) if board.uuid else GARBLED


def mig_mode(calls: Calls, handle: Handle) -> tuple[bool, bool] | None:
    """Tell whether the GPU is partitioned, and whether the other mode waits for a reset.

    None for one that never can be.

    Raises:
        NVMLError: the GPU or the driver does not answer.
    """
    try:
        current, pending = calls.mig_modes(handle)
    except NVMLError as error:
        if error.value not in UNSUPPORTED:
            raise
        return None
    return current == pynvml.NVML_DEVICE_MIG_ENABLE, pending != current


def instance_key(calls: Calls, instance: Handle) -> InstanceKey:
    """Return the identity of a MIG instance.

    Raises:
        NVMLError: it is gone, or does not answer.
    """
    return (
        calls.uuid(instance),
        calls.number("nvmlDeviceGetGpuInstanceId", instance),
        calls.number("nvmlDeviceGetComputeInstanceId", instance),
        calls.attributes(instance),
    )


def describe(
    gpu: Device, handle: Handle, instance: Handle, key: InstanceKey, profiles: dict[int, str]
) -> Device:
    """Return a MIG instance with what is looked up only once: its profile and its place.

    Args:
        gpu: the GPU that it lies on, with its handle.
        handle: of that GPU.
        instance: handle of the instance.
        key: its identity.
        profiles: names by profile id, as ``profile_names`` returns them.

    Raises:
        NVMLError: the GPU, the instance or the driver does not answer.
        UnicodeDecodeError: the uuid is not text.
    """
    uuid, gpu_instance, compute_instance, attributes = key
    sm_count, *_, gpu_slices, compute_slices, _ = attributes
    info = _instance_info(handle, gpu_instance)
    profile = profiles.get(info.profileId, "") if info else ""
    if not profile:
        _, _, profile = _text(pynvml.nvmlDeviceGetName, instance).partition(" MIG ")
    elif compute_slices < gpu_slices:
        profile = f"{compute_slices}c.{profile}"
    return Device(
        uuid=uuid.decode(),
        gpu=gpu.gpu,
        model=gpu.model,
        parent=gpu.uuid,
        gpu_instance=gpu_instance,
        compute_instance=compute_instance,
        profile=profile,
        placement_start=info.placement.start if info else None,
        placement_size=info.placement.size if info else None,
        sm_count=sm_count,
    )


def profile_names(handle: Handle) -> Iterator[tuple[int, str]]:
    """Yield id and name of each MIG profile of the GPU; none where the driver has no names.

    Raises:
        NVMLError: the GPU or the driver does not answer.
    """
    for index in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = pynvml.nvmlDeviceGetGpuInstanceProfileInfoV(handle, index)
        except NVMLError as error:
            if error.value in TOO_OLD:
                return
            if error.value in GONE:
                raise
            continue
        try:
            yield info.id, info.name.removeprefix("MIG ")
        except UnicodeDecodeError:
            continue


def _board(index: int, handle: Handle) -> Device:
    partitioned, _ = mig_mode(Calls(), handle) or (False, False)
    return Device(
        uuid=pynvml.nvmlDeviceGetUUID(handle),
        gpu=index,
        model=_text(pynvml.nvmlDeviceGetName, handle),
        mig_enabled=partitioned,
        minor=_minor(handle),
        pci_bus_id=_text(_bus_id, handle),
        serial=_text(pynvml.nvmlDeviceGetSerial, handle),
        board=_text(pynvml.nvmlDeviceGetBoardPartNumber, handle),
        vbios=_text(pynvml.nvmlDeviceGetVbiosVersion, handle),
    )


def _text(call: Callable[[Handle], str], handle: Handle) -> str:
    try:
        return call(handle).strip()
    except UnicodeDecodeError:
        return ""
    except NVMLError as error:
        if error.value in GONE:
            raise
        return ""


def _bus_id(handle: Handle) -> str:
    return pynvml.nvmlDeviceGetPciInfo_v3(handle).busId


def _minor(handle: Handle) -> int | None:
    try:
        return pynvml.nvmlDeviceGetMinorNumber(handle)
    except NVMLError as error:
        if error.value in GONE:
            raise
        return None


def _instance_info(handle: Handle, gpu_instance: int) -> pynvml.c_nvmlGpuInstanceInfo_t | None:
    """Return profile and placement; None to callers that may not ask, as those without root."""
    try:
        instance = pynvml.nvmlDeviceGetGpuInstanceById(handle, gpu_instance)
        return pynvml.nvmlGpuInstanceGetInfo(instance)
    except NVMLError as error:
        if error.value not in UNSUPPORTED:
            raise
        return None
