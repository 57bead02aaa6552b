"""The shared file as Python sees it: a mirror of state.h, and the one writer of it.

Readers are C code in this and other processes. What changes as a whole goes through the writer's
library, which has the memory barriers that Python lacks; nothing else may store into the file.
"""

import ctypes
import mmap
import re
from ctypes import Structure, c_char, c_int32, c_uint8, c_uint32, c_uint64
from pathlib import Path
from typing import Final

from testbed.driver import build

MAGIC: Final = 0x4C4D564E45434C53
VERSION: Final = 3
GPUS, SLOTS, PROFILES, EVENTS = 32, 8, 18, 256
ANSWERS, POOL_BYTES, PAYLOAD_BYTES = 2048, 192 * 1024, 32 * 1024
NO_INSTANCE: Final = 0xFFFFFFFF

# The entry points in the order of calls.h, which numbers them.
CALLS: Final = tuple(
    re.findall(r"^CALL\((\w+)\)", (build.SOURCES / "calls.h").read_text(), re.MULTILINE)
)
CALL_NUMBERS: Final = {name: number for number, name in enumerate(CALLS)}


class Memory(Structure):
    """Bytes; struct memory_state."""

    _fields_ = [(name, c_uint64) for name in ("total", "reserved", "free", "used")]


class Profile(Structure):
    """struct profile_state."""

    _fields_ = [
        *((name, c_uint32) for name in ("index", "id", "slices", "instances", "sm_count", "_pad")),
        ("memory_mib", c_uint64),
        ("name", c_char * 96),
    ]


class SlotState(Structure):
    """struct slot_state."""

    _fields_ = [
        *((name, c_uint32) for name in (
            "present", "generation", "gpu_instance", "compute_instance",
            "profile", "placement_start", "placement_size", "sm_count",
            "gpu_slices", "compute_slices", "media_engines", "_pad",
        )),
        ("memory_mib", c_uint64),
        ("memory", Memory),
        ("uuid", c_char * 96),
        ("name", c_char * 96),
    ]  # fmt: skip


class Answer(Structure):
    """struct answer; ``testbed.driver.answers`` fills it."""

    _fields_ = [
        ("call", c_uint32),
        ("scope", c_int32),
        ("key", c_uint32 * 2),
        *((name, c_uint32) for name in (
            "result", "rows", "capacity", "value_type", "offset", "size",
        )),
    ]  # fmt: skip


class GpuState(Structure):
    """struct gpu_state."""

    _fields_ = [
        *((name, c_uint32) for name in (
            "present", "generation", "error", "minor",
            "mig_capable", "mig_enabled", "mig_pending", "mig_slots",
            "profiles_held", "answers_held",
        )),
        ("event_types", c_uint64),
        ("memory", Memory),
        ("name", c_char * 96),
        ("uuid", c_char * 96),
        ("serial", c_char * 32),
        ("board", c_char * 80),
        ("vbios", c_char * 32),
        ("bus_id", c_char * 32),
        ("call_errors", c_uint32 * len(CALLS)),
        ("profiles", Profile * PROFILES),
        ("slots", SlotState * SLOTS),
        ("answers", Answer * ANSWERS),
        ("pool", c_uint8 * POOL_BYTES),
    ]  # fmt: skip


class _GpuCell(Structure):
    _fields_ = [
        ("sequence", c_uint32),
        ("hang", c_uint32),
        ("growths", c_int32),
        ("_pad", c_uint32),
        ("state", GpuState),
    ]


class SystemState(Structure):
    """struct system_state; the errors are values of nvmlReturn_t."""

    _fields_ = [
        *((name, c_uint32) for name in (
            "gpu_count", "init_error", "error", "stale_error", "cuda", "load",
        )),
        ("driver", c_char * 80),
        ("nvml", c_char * 80),
    ]  # fmt: skip


class EventState(Structure):
    """struct event_state."""

    _fields_ = [
        *((name, c_uint32) for name in ("gpu", "gpu_instance", "compute_instance", "_pad")),
        ("type", c_uint64),
        ("data", c_uint64),
    ]


class _SharedState(Structure):
    _fields_ = [
        ("magic", c_uint64),
        ("version", c_uint32),
        ("size", c_uint32),
        ("sequence", c_uint32),
        ("clients", c_uint32),
        ("event_error", c_uint32),
        ("gpm_inside", c_uint32),
        ("gpm_most", c_uint32),
        ("bell", c_uint32),
        ("system", SystemState),
        ("events_written", c_uint64),
        ("events", EventState * EVENTS),
        ("gpus", _GpuCell * GPUS),
    ]


class StateFile:
    """The writer's end. Creates the file; one writer a file, used from one thread at a time.

    Raises:
        Unavailable: the writer's library cannot be built here.
    """

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(build.writer()))
        self._library.slicewatchStateSize.restype = c_uint64
        size = ctypes.sizeof(_SharedState)
        if self._library.slicewatchStateSize() != size:
            raise RuntimeError("state.py does not mirror state.h: the sizes differ")
        with path.open("w+b") as file:
            file.truncate(size)
            self._memory = mmap.mmap(file.fileno(), size)
        self._shared = _SharedState.from_buffer(self._memory)
        self._shared.version, self._shared.size = VERSION, size
        self._shared.magic = MAGIC

    @property
    def clients(self) -> int:
        """Return how many processes have the driver initialised."""
        return self._load(_SharedState.clients.offset)

    @property
    def gpm_most_at_once(self) -> int:
        """Return how many calls at most took a GPM sample at one time, over all GPUs.

        A real driver panics when they are two, DataDog #54458.
        """
        return self._load(_SharedState.gpm_most.offset)

    def put_system(self, system: SystemState) -> None:
        """Replace what the driver says of itself, as a whole."""
        self._publish(_SharedState.sequence.offset, _SharedState.system.offset, system)

    def put_gpu(self, index: int, gpu: GpuState) -> None:
        """Replace the state of one GPU, as a whole."""
        cell = self._cell(index)
        self._publish(cell + _GpuCell.sequence.offset, cell + _GpuCell.state.offset, gpu)

    def put_event(self, event: EventState) -> None:
        """Append to the ring; sets that listen to the GPU get it once."""
        self._library.slicewatchAnnounce(ctypes.byref(self._shared), ctypes.byref(event))

    def hang(self, index: int, *, hanging: bool) -> None:
        """Let calls on one GPU not return, or let them go on."""
        self._store(self._cell(index) + _GpuCell.hang.offset, int(hanging))

    def grow_samples(self, index: int, times: int) -> None:
        """Let that many sizing calls of lists and samples announce one row too few."""
        self._store(self._cell(index) + _GpuCell.growths.offset, times)

    def fail_events(self, error: int) -> None:
        """Let every wait for events end with this nvmlReturn_t; 0 ends it."""
        self._store(_SharedState.event_error.offset, error)
        self._library.slicewatchRing(ctypes.byref(self._shared))

    def _cell(self, index: int) -> int:
        return int(_SharedState.gpus.offset) + index * ctypes.sizeof(_GpuCell)

    def _publish(self, sequence: int, target: int, source: Structure) -> None:
        self._library.slicewatchPublish(
            ctypes.byref(self._shared, sequence),
            ctypes.byref(self._shared, target),
            ctypes.byref(source),
            c_uint64(ctypes.sizeof(source)),
        )

    def _load(self, offset: int) -> int:
        return int(self._library.slicewatchLoad(ctypes.byref(self._shared, offset)))

    def _store(self, offset: int, value: int) -> None:
        self._library.slicewatchStore(ctypes.byref(self._shared, offset), c_uint32(value))
