"""What a read of ``/dev/kmsg`` returns. Pure; whatever is no record is left out, nothing raises.

Format: the kernel's ``Documentation/ABI/testing/dev-kmsg``. A record is one line,
``priority,sequence,microseconds,flags[,more];text``, after which lines that begin with a space
hold its properties. Whoever may write to the file can put records there, but not as the kernel:
theirs have another facility.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

KERNEL: Final = 0
_FACILITY_SHIFT: Final = 3
# Of 64 bits each; a longer number is none of the kernel's.
_MOST_DIGITS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record.

    Attributes:
        facility: 0 for the kernel itself.
        sequence: counts up by one; what is missing was overwritten before it was read.
        at_seconds: since boot, on the kernel's monotonic clock.
        text: one line; the kernel escapes what cannot be shown.
    """

    facility: int
    sequence: int
    at_seconds: float
    text: str


def records(chunk: bytes) -> Iterator[Record]:
    """Yield the records of what was read, without their properties."""
    for line in chunk.split(b"\n"):
        # Properties, and the rest of what cannot be told.
        if line[:1].isdigit() and (record := _record(line)) is not None:
            yield record


def _record(line: bytes) -> Record | None:
    prefix, separator, text = line.partition(b";")
    fields = prefix.split(b",")[:3]
    if not separator or len(fields) < 3 or not all(map(_is_number, fields)):
        return None
    priority, sequence, microseconds = map(int, fields)
    return Record(
        facility=priority >> _FACILITY_SHIFT,
        sequence=sequence,
        at_seconds=microseconds / 1e6,
        text=text.decode("utf-8", "backslashreplace"),
    )


def _is_number(field: bytes) -> bool:
    return field.isdigit() and len(field) <= _MOST_DIGITS
