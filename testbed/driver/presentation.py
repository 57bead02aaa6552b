"""What a simulated node looks like in the structures of the shared file. Pure but for the reads.

Values are cut to the width that NVML gives them, as a driver would: nonsense stays nonsense.
"""

from collections.abc import Mapping
from typing import Final

from simulator.driver import Driver
from simulator.gpu import MemoryState, SimulatedGpu
from simulator.node import EventKind, GpuEvent
from simulator.timeline import GpuState as State
from simulator.timeline import MigDevice
from slicewatch.hardware import MigProfile
from testbed.driver import state
from testbed.driver.answers import Answers
from testbed.driver.answers_of import DOMAINS

MEBIBYTE: Final = 2**20

# NVML_GPU_INSTANCE_PROFILE_*: by slices, and for the variants of one and two slices.
_BY_SLICES: Final = {1: 0x0, 2: 0x1, 3: 0x2, 4: 0x3, 7: 0x4, 8: 0x5, 6: 0x6}
_WITH_MEDIA: Final = {1: 0x7, 2: 0x8}
_MORE_MEMORY: Final = 0x9

# nvmlReturn_t.
DRIVER_NOT_LOADED, GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH = 9, 15, 16, 18

_ERRORS: Final = {State.LOST: GPU_IS_LOST, State.RESET_REQUIRED: RESET_REQUIRED}
# What a ``failing`` GPU answers.
_FAILURES: Final = {
    "INSUFFICIENT_POWER": 8, "IRQ_ISSUE": 11, "CORRUPTED_INFOROM": 14, "UNKNOWN": 999,
}  # fmt: skip
_EVENT_TYPES: Final = {
    EventKind.SINGLE_BIT_ECC: 0x1,
    EventKind.DOUBLE_BIT_ECC: 0x2,
    EventKind.XID: 0x8,
    EventKind.RECOVERY_ACTION: 0x8000,
}


def system_state(driver: Driver, gpu_count: int) -> state.SystemState:
    """Return what the driver says of itself, and how it refuses."""
    error = 0
    if not driver.loaded:
        error = DRIVER_NOT_LOADED
    elif not driver.matches:
        error = VERSION_MISMATCH
    major, minor = driver.cuda.split(".")
    return state.SystemState(
        gpu_count=gpu_count,
        init_error=error,
        error=error,
        stale_error=VERSION_MISMATCH if driver.replaced else DRIVER_NOT_LOADED,
        cuda=1000 * int(major) + 10 * int(minor),
        load=driver.generation,
        driver=driver.version.encode(),
        nvml=f"{major}.{driver.version}".encode(),
    )


def gpu_state(gpu: SimulatedGpu, slots: Mapping[int, int]) -> state.GpuState:
    """Return what one GPU is now, without its answers.

    Args:
        gpu: the simulated GPU.
        slots: by MIG index, how often another instance came to lie there.
    """
    identity, model = gpu.identity, gpu.model
    mig_enabled = gpu.mig_enabled
    shown = state.GpuState(
        present=1,
        generation=1,
        error=_ERRORS.get(gpu.state) or _FAILURES.get(gpu.stage.error, 0),
        minor=identity.minor,
        mig_capable=model.supports_mig,
        mig_enabled=mig_enabled,
        mig_pending=mig_enabled != gpu.stage.mig_change_pending,
        mig_slots=gpu.max_mig_devices,
        profiles_held=len(model.mig_profiles),
        event_types=sum(_EVENT_TYPES.values()),
        memory=_memory(gpu.memory),
        name=model.nvml_name.encode(),
        uuid=identity.uuid.encode(),
        serial=identity.serial.encode(),
        board=identity.board_part_number.encode(),
        vbios=identity.vbios.encode(),
        bus_id=identity.pci_bus_id.encode(),
    )
    for row, profile in enumerate(model.mig_profiles):
        shown.profiles[row] = _profile(profile)
    for device in gpu.mig_devices:
        shown.slots[device.index] = _slot(gpu, device, slots[device.index])
    return shown


def answers(gpu: SimulatedGpu) -> Answers:
    """Return what one GPU answers now to the calls that only pass on what they are told."""
    collected = Answers()
    for domain in DOMAINS:
        domain(gpu, collected)
    return collected


def is_hanging(gpu: SimulatedGpu) -> bool:
    """Tell whether calls on the GPU do not return."""
    return gpu.state is State.HUNG


def event_state(event: GpuEvent, gpu: int) -> state.EventState:
    """Return an event as NVML delivers it."""
    return state.EventState(
        gpu=gpu,
        gpu_instance=_instance(event.gpu_instance_id),
        compute_instance=_instance(event.compute_instance_id),
        type=_EVENT_TYPES[event.kind],
        data=event.data,
    )


def _instance(number: int | None) -> int:
    return state.NO_INSTANCE if number is None else number


def _slot(gpu: SimulatedGpu, device: MigDevice, generation: int) -> state.SlotState:
    profile = device.profile
    return state.SlotState(
        present=1,
        generation=generation,
        gpu_instance=device.gpu_instance_id,
        compute_instance=device.compute_instance_id,
        profile=profile.profile_id,
        placement_start=device.placement.start,
        placement_size=device.placement.size,
        sm_count=profile.sm_count,
        gpu_slices=profile.compute_slices,
        compute_slices=profile.compute_slices,
        media_engines=profile.name.endswith("+me"),
        memory_mib=profile.memory_bytes // MEBIBYTE,
        memory=_memory(gpu.mig_memory(device)),
        uuid=device.uuid.encode(),
        name=f"{gpu.model.nvml_name} MIG {profile.name}".encode(),
    )


def _memory(memory: MemoryState) -> state.Memory:
    return state.Memory(
        total=memory.total_bytes,
        reserved=memory.reserved_bytes,
        free=memory.free_bytes,
        used=memory.used_bytes,
    )


def _profile(profile: MigProfile) -> state.Profile:
    return state.Profile(
        index=_profile_index(profile),
        id=profile.profile_id,
        slices=profile.compute_slices,
        instances=profile.max_instances,
        sm_count=profile.sm_count,
        memory_mib=profile.memory_bytes // MEBIBYTE,
        name=f"MIG {profile.name}".encode(),
    )


def _profile_index(profile: MigProfile) -> int:
    if profile.name.endswith("+me"):
        return _WITH_MEDIA[profile.compute_slices]
    if (profile.compute_slices, profile.memory_slices) == (1, 2):
        return _MORE_MEMORY
    return _BY_SLICES[profile.compute_slices]
