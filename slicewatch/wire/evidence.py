"""What an exporter tells the health monitor of its node: what was read, what failed, what happened.

A metric is a latest state; to judge a GPU takes more: that a read was refused is not that it
failed, a reading has an age, and an event is told once. So readings travel as what NVML said, each
with its probe's name, and events are numbered: whoever polls with the number that it was given
last gets what came since, and is told what was dropped.
"""

from enum import StrEnum
from typing import Annotated, Any, Final, TypeVar

import msgspec

from slicewatch.catalog.model import Probe
from slicewatch.wire.layout import Device

WIRE_VERSION: Final = 1

# Run and number are asked with the next time; what could not be asked with is no evidence.
LONGEST_RUN: Final = 256
MOST_EVENTS: Final = 2**63 - 1

R = TypeVar("R")


class EvidenceError(ValueError):
    """What was received is no evidence, or of a version that this program does not know."""


class Value(msgspec.Struct, frozen=True, kw_only=True, tag="value"):
    """The read worked.

    Attributes:
        reading: the fields of the probe's reading.
        age_seconds: since it was read.
    """

    reading: msgspec.Raw
    age_seconds: float


class Unsupported(msgspec.Struct, frozen=True, kw_only=True, tag="unsupported"):
    """The device cannot report it: neither good nor bad."""

    reason: str


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """The last read failed; ``error`` is NVML's name for it."""

    error: str
    age_seconds: float


class Lost(msgspec.Struct, frozen=True, kw_only=True, tag="lost"):
    """The GPU did not answer: ``gpu_is_lost``, ``reset_required``, ``gpu_not_found``."""

    reason: str
    age_seconds: float


Reading = Value | Unsupported | Failed | Lost


class Happening(StrEnum):
    """Kinds of events. RECOVERY_ACTION: the wanted action changed; its reading says to which."""

    XID = "xid"
    SINGLE_BIT_ECC = "single_bit_ecc"
    DOUBLE_BIT_ECC = "double_bit_ecc"
    RECOVERY_ACTION = "recovery_action"


class Source(StrEnum):
    """Who told of an event. The kernel's log has it in words, and from before the exporter ran."""

    NVML = "nvml"
    KERNEL = "kernel"


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened on a GPU.

    Attributes:
        number: counts up from 1 while the exporter lives.
        age_seconds: since it happened, as far as that is known; since it arrived, otherwise.
        gpu: uuid; empty for one that cannot be told, which the kernel's log names by its bus id.
        data: of an Xid its number.
        text: what the kernel's log says after the number, at most 512 characters.
    """

    number: int
    kind: Happening
    age_seconds: float
    gpu: str
    data: int
    source: Source = Source.NVML
    pci_bus_id: str = ""
    gpu_instance: int | None = None
    compute_instance: int | None = None
    text: str = ""


class Holder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that holds the GPU or an instance of it; ``uid`` where it is known."""

    namespace: str
    pod: str
    uid: str = ""


class Gpu(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU that NVML has enumerated since the exporter's start.

    Attributes:
        silent: why it does not answer, in one word; empty while it does.
        silent_seconds: for how long it has not.
        call: the read that it is in for longer than a tick; empty for none.
        call_seconds: for how long.
        readings: by the names of the probes.
        instances: the MIG devices on it.
    """

    device: Device
    silent: str = ""
    silent_seconds: float = 0.0
    call: str = ""
    call_seconds: float = 0.0
    readings: dict[str, Reading] = {}
    instances: tuple[Device, ...] = ()
    holders: tuple[Holder, ...] = ()


class Unidentified(msgspec.Struct, frozen=True, kw_only=True):
    """An index of NVML's enumeration at which no GPU says who it is, and why."""

    index: int
    reason: str


class Driver(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How NVML stands.

    Attributes:
        down: why it is not started: ``no_library``, ``no_driver``, ``version_mismatch``,
            ``permission``, ``unknown``, ``released`` on request, ``starting`` for a moment, or for
            as long as the start hangs; empty while it is started.
        seconds: for how long it has been so.
        starts: how often it was started in this life of the exporter; what changes with it is
            handles, counters since the load of the driver, and who listens to events.
        version, nvml, cuda: as the driver states them; of the last start.
    """

    down: str = ""
    seconds: float
    starts: int
    version: str = ""
    nvml: str = ""
    cuda: str = ""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a node's GPUs at one moment.

    Attributes:
        run: identifies one life of the exporter.
        boot_id: identifies one life of the machine's kernel; empty where it is not told.
        uptime_seconds: since that began.
        tick_age_seconds: since the exporter last finished a tick; None before the first.
        listening: why nobody listens to events of NVML, in one word; empty while somebody does.
        kernel_log: why the kernel's log is not read, in one word; empty while it is, ``off``
            where nobody wants it.
        kernel_log_lost: records of it that were overwritten before they were read, in this run.
        missed: events after the number that was asked with which are no longer kept.
        newest: the number to ask with next time.
    """

    version: int = WIRE_VERSION
    node: str
    run: Annotated[str, msgspec.Meta(max_length=LONGEST_RUN)]
    boot_id: str = ""
    uptime_seconds: float
    tick_age_seconds: float | None = None
    driver: Driver
    gpus: tuple[Gpu, ...] = ()
    unidentified: tuple[Unidentified, ...] = ()
    events: tuple[Event, ...] = ()
    missed: Annotated[int, msgspec.Meta(ge=0)] = 0
    newest: Annotated[int, msgspec.Meta(ge=0, le=MOST_EVENTS)] = 0
    listening: str = ""
    kernel_log: str = ""
    kernel_log_lost: int = 0


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Evidence)


class _Version(msgspec.Struct):
    version: int


def encode(evidence: Evidence) -> bytes:
    """Return evidence as JSON."""
    return _encoder.encode(evidence)


def decode(body: bytes) -> Evidence:
    """Return the evidence in a body.

    Raises:
        EvidenceError: it is none, or of another version.
    """
    try:
        version = msgspec.json.decode(body, type=_Version).version
        if version != WIRE_VERSION:
            raise EvidenceError(
                f"the exporter speaks version {version} of /evidence, this program {WIRE_VERSION}:"
                " let both be of one release"
            )
        return _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise EvidenceError(f"not what /evidence answers: {error}") from error


def read_as(probe: Probe[R], said: Value) -> R:
    """Return what a probe read.

    Raises:
        EvidenceError: the fields are not those of the probe's reading.
    """
    try:
        reading: Any = msgspec.json.decode(said.reading, type=probe.reading)
    except (msgspec.DecodeError, RecursionError) as error:
        raise EvidenceError(f"{probe.name}: not what this probe reads: {error}") from error
    return reading  # type: ignore[no-any-return]
