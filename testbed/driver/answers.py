"""What one GPU answers: by call, by the GPU or a MIG slot, and by the arguments of the call.

The C side knows of most calls only where their results go, so what a payload says is decided by
who puts it here. A call without an answer is not supported.
"""

import ctypes
import struct
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias

import pynvml

from testbed.driver import state

# The binding, whose structures and constants are the payloads. Its stubs have only what the
# product calls.
nvml: Final[Any] = pynvml

Key: TypeAlias = tuple[int, int]
Number: TypeAlias = (
    ctypes.c_uint32 | ctypes.c_int32 | ctypes.c_uint64 | ctypes.c_int64 | ctypes.c_double
)
# An int is an unsigned word and is cut to its 32 bits, as a driver would cut it.
Payload: TypeAlias = int | bytes | Number | ctypes.Structure | ctypes.Union

NO_KEY: Final[Key] = (0, 0)
ANY_KEY: Final[Key] = (0xFFFFFFFF, 0xFFFFFFFF)
# NVML_VALUE_TYPE_*.
DOUBLE, UNSIGNED_INT, UNSIGNED_LONG_LONG, SIGNED_LONG_LONG, SIGNED_INT = 0, 1, 3, 4, 5

_VALUE_TYPES: Final[dict[type, int]] = {
    ctypes.c_double: DOUBLE,
    ctypes.c_uint32: UNSIGNED_INT,
    ctypes.c_uint64: UNSIGNED_LONG_LONG,
    ctypes.c_int64: SIGNED_LONG_LONG,
    ctypes.c_int32: SIGNED_INT,
}
_WORD: Final = 0xFFFFFFFF
# nvmlFieldValue_t, in which the driver fills in the question and the return code.
_FIELD: Final = struct.Struct("=8xqqI4x8s")
# struct counter of gpm.c.
_COUNTER: Final = struct.Struct("=dd")
# struct answer. A table of hundreds of rows is made ten times a second.
_ROW: Final = struct.Struct("=Ii8I")


class Sample(ctypes.Structure):
    """A row of nvmlDeviceGetSamples: a CPU time, and a word of nvmlValue_t."""

    _fields_ = [("at_us", ctypes.c_uint64), ("value", ctypes.c_uint64)]


class RetiredPage(ctypes.Structure):
    """A row of nvmlDeviceGetRetiredPages_v2: an address, and microseconds since 1970."""

    _fields_ = [("address", ctypes.c_uint64), ("at_us", ctypes.c_uint64)]


class _Question(NamedTuple):
    """In the order in which the driver searches."""

    call: int
    scope: int
    key: Key


class _Answer(NamedTuple):
    payload: bytes = b""
    result: int = 0
    rows: int = 1
    capacity: int = 0
    value_type: int = 0


class Answers:
    """Collects the answers of one GPU. A later answer to the same question replaces the earlier.

    Everywhere, ``call`` is the name of the C entry point, ``slot`` the MIG index or None for the
    GPU itself, and ``key`` the arguments that choose between answers, as README.md lists them.

    Raises:
        ValueError: the driver has no such call, or the payload is larger than it takes.
    """

    def __init__(self) -> None:
        self._answers: dict[_Question, _Answer] = {}

    def put(
        self,
        call: str,
        *payload: Payload,
        slot: int | None = None,
        key: Key = NO_KEY,
        value_type: int = 0,
    ) -> None:
        """Let a call succeed; the parts of the payload are its out parameters, in their order.

        Args:
            call: the entry point.
            payload: words, numbers, structures, or one text without its NUL.
            slot: MIG index.
            key: the arguments.
            value_type: the kind of the id, of nvmlVgpuInstanceGetVmID.
        """
        answer = _Answer(payload=b"".join(map(_bytes, payload)), value_type=value_type)
        self._store(call, slot, key, answer)

    def put_version(
        self, call: str, structure: ctypes.Structure, *, slot: int | None = None, second: int = 0
    ) -> None:
        """Let a call succeed with a structure that begins with its version.

        Structures of several versions may be put; a caller's of another is a version mismatch.

        Args:
            call: the entry point.
            structure: with its version set.
            slot: MIG index.
            second: another argument that chooses, such as the sensor.

        Raises:
            ValueError: the version is that of a structure of another size.
        """
        payload = bytes(structure)
        version = int.from_bytes(payload[:4], "little")
        # The driver trusts it: so many bytes are what the caller has room for.
        if version >> 24 and version & 0xFFFFFF != len(payload):
            raise ValueError(
                f"the structure for {call} has {len(payload)} bytes and the version 0x{version:x} "
                f"of one with {version & 0xFFFFFF}; set its version"
            )
        self._store(call, slot, (version, second), _Answer(payload=payload))

    def put_list(
        self,
        call: str,
        rows: Iterable[Payload],
        *,
        slot: int | None = None,
        key: Key = NO_KEY,
        capacity: int = 0,
        value_type: int = UNSIGNED_INT,
    ) -> None:
        """Let a call succeed with rows, of which there may be none.

        Args:
            call: the entry point.
            rows: structures or numbers, all of one type.
            slot: MIG index.
            key: the arguments.
            capacity: what sizing calls announce in place of the number of rows, as NVML does of
                the utilization of processes.
            value_type: NVML_VALUE_TYPE_* of the values in the rows, where the call tells it.
        """
        parts = [_bytes(row) for row in rows]
        answer = _Answer(
            payload=b"".join(parts), rows=len(parts), capacity=capacity, value_type=value_type
        )
        self._store(call, slot, key, answer)

    def add_rows(
        self, call: str, rows: Iterable[Payload], *, slot: int | None = None, key: Key = NO_KEY
    ) -> None:
        """Append rows to a list that is there already, for tests of what does not belong there.

        Raises:
            KeyError: there is no such list.
        """
        before = self._answers[_question(call, slot, key)]
        parts = [_bytes(row) for row in rows]
        payload = before.payload + b"".join(parts)
        longer = before._replace(payload=payload, rows=before.rows + len(parts))
        self._store(call, slot, key, longer)

    def put_field(
        self,
        field: int,
        value: Number,
        *,
        scope: int = 0,
        timestamp_us: int = 0,
        latency_us: int = 0,
    ) -> None:
        """Let nvmlDeviceGetFieldValues know a field.

        Args:
            field: NVML_FI_*.
            value: of the ctypes type that NVML gives it.
            scope: the link or what else the field is of; 0xFFFFFFFF for all links.
            timestamp_us: CPU time of the value.
            latency_us: what the driver says that the read took.
        """
        value_type = _VALUE_TYPES[type(value)]
        answer = _FIELD.pack(timestamp_us, latency_us, value_type, bytes(value))
        self.put("nvmlDeviceGetFieldValues", answer, key=(field, scope))

    def put_gpm(
        self, metric: int, *, total: float, seconds: float, slot: int | None = None
    ) -> None:
        """Let GPM know a metric.

        Args:
            metric: NVML_GPM_METRIC_*.
            total: its integral up to now, such as percent times seconds, or MiB.
            seconds: now, of a clock that only goes forward.
            slot: MIG index.
        """
        self.put("nvmlGpmMetricsGet", _COUNTER.pack(total, seconds), slot=slot, key=(metric, 0))

    def refuse(self, call: str, code: int, *, slot: int | None = None, key: Key = ANY_KEY) -> None:
        """Let a call fail with an nvmlReturn_t; without a key, wherever no other answer fits.

        Of field values and GPM metrics, this is the return code of the single value.
        """
        self._store(call, slot, key, _Answer(result=code, rows=0))

    def forget(self, call: str) -> None:
        """Take every answer to a call back, so that it is not supported."""
        number = _number(call)
        self._answers = {
            question: answer
            for question, answer in self._answers.items()
            if question.call != number
        }

    def write(self, gpu: state.GpuState) -> None:
        """Put everything into the state of a GPU, in place of what stood there.

        Raises:
            ValueError: there is more than the state has room for.
        """
        found = sorted(self._answers.items())
        pool = b"".join(answer.payload for _, answer in found)
        if len(found) > state.ANSWERS or len(pool) > state.POOL_BYTES:
            raise ValueError(
                f"{len(found)} answers of {len(pool)} bytes: the state of a GPU takes "
                f"{state.ANSWERS} of {state.POOL_BYTES}; enlarge both in state.h and state.py"
            )
        table, offset = bytearray(), 0
        for question, answer in found:
            table += _ROW.pack(
                question.call, question.scope, *question.key, answer.result, answer.rows,
                answer.capacity, answer.value_type, offset, len(answer.payload),
            )  # fmt: skip
            offset += len(answer.payload)
        gpu.answers_held = len(found)
        ctypes.memmove(gpu.answers, bytes(table), len(table))
        ctypes.memmove(gpu.pool, pool, len(pool))

    def _store(self, call: str, slot: int | None, key: Key, answer: _Answer) -> None:
        if len(answer.payload) > state.PAYLOAD_BYTES:
            raise ValueError(
                f"the answer to {call} has {len(answer.payload)} bytes; the driver takes at most "
                f"{state.PAYLOAD_BYTES}"
            )
        self._answers[_question(call, slot, key)] = answer


def error_counter(error_type: int, counter: int, location: int) -> Key:
    """Return the key of nvmlDeviceGetMemoryErrorCounter, which has three arguments."""
    return (error_type << 16 | counter, location)


def _question(call: str, slot: int | None, key: Key) -> _Question:
    scope = -1 if slot is None else slot
    return _Question(_number(call), scope, (key[0] & _WORD, key[1] & _WORD))


def _number(call: str) -> int:
    try:
        return state.CALL_NUMBERS[call]
    except KeyError:
        raise ValueError(f"the driver has no {call}; add it to calls.h") from None


def _bytes(part: Payload) -> bytes:
    if isinstance(part, int):
        return (part & _WORD).to_bytes(4, "little")
    return bytes(part)
