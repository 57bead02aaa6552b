"""Xids as NVIDIA's kernel driver writes them into the log. Pure.

    NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python, GPU has fallen off the bus.
    NVRM: Xid (PCI:0000:3b:00 GPU-I:05 GPU-CI:00): 94, pid=4711, ...

Process and text may be missing, and the domain may have eight digits (``kernel_rc.c`` of the open
kernel modules). SXids are those of NVSwitches, which are no GPUs: they are not looked for.
"""

import re
from typing import Final, NamedTuple

import msgspec

MOST_TEXT: Final = 512
# What every such line has, to find few among many cheaply.
MARK: Final = "NVRM: Xid"

_XID: Final = re.compile(
    r"NVRM: Xid \(PCI:(?P<bus_id>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?)"
    r"(?: GPU-I:(?P<gpu_instance>[0-9]{1,4}))?(?: GPU-CI:(?P<compute_instance>[0-9]{1,4}))?\): "
    r"(?P<number>[0-9]{1,9})(?![0-9])[, ]*(?P<text>.*)",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)
_BUS_ID: Final = re.compile(
    r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-9a-f])?", re.ASCII | re.IGNORECASE
)


class Address(NamedTuple):
    """Where a GPU is on PCI. Its function says nothing: the log has none."""

    domain: int
    bus: int
    device: int


class LoggedXid(msgspec.Struct, frozen=True, kw_only=True):
    """An Xid in the kernel's log.

    Attributes:
        pci_bus_id: as the log has it, such as ``0000:3b:00``.
        number: the Xid.
        at_seconds: since boot, on the kernel's monotonic clock.
        text: what follows the number.
    """

    pci_bus_id: str
    number: int
    at_seconds: float
    gpu_instance: int | None = None
    compute_instance: int | None = None
    text: str = ""


def xid_in(text: str, at_seconds: float) -> LoggedXid | None:
    """Return the Xid that a line of the kernel's tells of, or None."""
    found = _XID.match(text) if text.startswith(MARK) else None
    if found is None:
        return None
    return LoggedXid(
        pci_bus_id=found["bus_id"].lower(),
        number=int(found["number"]),
        at_seconds=at_seconds,
        gpu_instance=_number(found["gpu_instance"]),
        compute_instance=_number(found["compute_instance"]),
        text=found["text"].strip()[:MOST_TEXT],
    )


def address_of(pci_bus_id: str) -> Address | None:
    """Return the address in a bus id of the log's form or NVML's; None for any other text."""
    found = _BUS_ID.fullmatch(pci_bus_id)
    return None if found is None else Address(*(int(part, 16) for part in found.groups()))


def _number(digits: str | None) -> int | None:
    return None if digits is None else int(digits)
