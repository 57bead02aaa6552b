"""What the exporter asks of a driver, whoever answers.

All of it blocks, so it is never called on a thread that runs an event loop; a session is used by
one thread at a time. No call raises for what a device or driver did; that is an outcome.
Programming errors raise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

import msgspec

from slicewatch.catalog.model import Probe
from slicewatch.wire.layout import Device

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Value(msgspec.Struct, Generic[R_co], frozen=True, gc=False):
    """The read worked. A struct, as readings are: hundreds are made in every tick."""

    value: R_co


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The device, the driver or its mode cannot report this; asking again will not help.

    ``reason`` is one of a few words that become a label: ``mig_enabled``, ``mig_instance``,
    ``shared_gpu_instance``, ``ecc_off``, ``no_vgpu_host``, ``no_vgpu_guest``, ``device``,
    ``driver``, ``permission``.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """This read failed; the next one may work.

    Attributes:
        error: NVML's name for it, such as ``UNKNOWN``.
        reinitialise: the driver's state is gone for the whole process (unloaded, replaced, not
            initialised): only a new start of NVML can help.
    """

    error: str
    reinitialise: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """The GPU does not answer any more: ``gpu_is_lost``, ``reset_required``, ``gpu_not_found``."""

    reason: str


Outcome = Value[R] | Unsupported | Failed | Lost


class DriverUnavailableError(Exception):
    """NVML cannot be started; ``reason`` is a word for a label, the message is for people.

    Reasons: ``no_library``, ``no_driver``, ``version_mismatch``, ``permission``, ``unknown``.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """Versions that the driver states, for humans and labels."""

    driver: str
    nvml: str
    cuda: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One index of NVML's enumeration and what answered there: a GPU, or why none did."""

    index: int
    gpu: Outcome[Device]


class EventKind(StrEnum):
    """Kinds of events that NVML reports."""

    XID = "xid"
    SINGLE_BIT_ECC = "single_bit_ecc"
    DOUBLE_BIT_ECC = "double_bit_ecc"
    RECOVERY_ACTION = "recovery_action"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened on a GPU.

    ``data`` of an XID is its number. What it is of a recovery action is documented nowhere: ask
    for the action.
    """

    kind: EventKind
    gpu: str
    data: int
    gpu_instance: int | None = None
    compute_instance: int | None = None


class Session(Protocol):
    """One GPU, used by one thread at a time. Never keeps a device handle between cycles."""

    def devices(self) -> Outcome[tuple[Device, ...]]:
        """Resolve anew: the GPU itself first, then its MIG devices in the order of NVML.

        A MIG device that vanishes between two steps is left out. Must be called before the
        reads of each cycle: handles of an earlier cycle may belong to another instance by now.
        """
        ...

    @property
    def mig_change_pending(self) -> bool:
        """Tell whether the last ``devices()`` found a MIG mode that waits for a reset."""
        ...

    def read(self, probe: Probe[R], device: Device) -> Outcome[R]:
        """Read one probe of a device that the last ``devices()`` returned."""
        ...

    def close(self) -> None:
        """Forget the GPU; the session is not used again."""
        ...


class EventSource(Protocol):
    """Events of all GPUs, used by one thread."""

    @property
    def kinds(self) -> Mapping[str, frozenset[EventKind]]:
        """Return what is listened to, by uuid of the GPU; without those that report nothing."""
        ...

    def wait(self, timeout_seconds: float) -> Outcome[tuple[Event, ...]]:
        """Return what happened, at the latest after the timeout; an empty tuple is normal."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class Nvml(Protocol):
    """NVML of this process. Sessions and event sources end when it is stopped."""

    def start(self) -> Driver:
        """Initialise.

        Raises:
            DriverUnavailableError: there is no library or driver, or they do not fit together.
        """
        ...

    def stop(self) -> None:
        """Shut down. Only while no session and no event source is inside a call."""
        ...

    def count(self) -> int:
        """Return how many GPUs NVML enumerates.

        Raises:
            DriverUnavailableError: the driver went away after the start.
        """
        ...

    def identify(self, index: int) -> Outcome[Device]:
        """Return the GPU at an index below ``count()``, or why it does not say who it is."""
        ...

    def open(self, gpu: Device) -> Session:
        """Return a session for a GPU that was identified."""
        ...

    def events(self, gpus: tuple[Device, ...]) -> Outcome[EventSource]:
        """Listen to these GPUs; ``Unsupported`` where the platform has no events."""
        ...
