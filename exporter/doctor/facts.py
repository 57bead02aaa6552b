"""What the checks judge. Holds no opinion: whether a fact is bad is said by a check alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from exporter.nvml.protocol import Driver, Failed, Outcome
from exporter.tenants.protocol import Allocation, Offer
from slicewatch.catalog.model import Probe
from slicewatch.wire.layout import Device

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A question that failed or took too long; ``reason`` is that of the driver, if it is one."""

    why: str
    reason: str = ""


class NotKnownError(Exception):
    """A check needs what nobody could tell; the message says why."""


def known(answer: T | NoAnswer) -> T:
    """Return the answer; raise ``NotKnownError`` where there is none."""
    if isinstance(answer, NoAnswer):
        raise NotKnownError(answer.why)
    return answer


class Read(NamedTuple):
    """One probe of one device, and what came."""

    device: Device
    probe: Probe[Any]
    outcome: Outcome[Any]


def word(outcome: Outcome[Any]) -> str:
    """Return why there is no value, in one word; empty where there is one."""
    return outcome.error if isinstance(outcome, Failed) else getattr(outcome, "reason", "")


class MigInstance(NamedTuple):
    """A compute instance, by the numbers that the kernel's driver gives."""

    minor: int
    gpu_instance: int
    compute_instance: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """What one index of NVML's enumeration answered.

    Attributes:
        silence: why it does not answer; empty if it does.
        devices: the GPU first, then its MIG instances.
        ahead_seconds: how far the newest sample of the driver is ahead of our clock.
    """

    index: int
    silence: str = ""
    devices: tuple[Device, ...] = ()
    mig_change_pending: bool = False
    reads: tuple[Read, ...] = ()
    ahead_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the kernel shows of the driver.

    Attributes:
        module: version of the loaded kernel module; empty where none is loaded.
        pci_gpus: PCI address of each GPU that this machine has, and the kernel driver that is
            bound to it, or an empty text; None where there is no sysfs.
        files: by path, why a device file that belongs here cannot be opened; empty if it can.
        instances: of MIG; None where the kernel does not show them.
    """

    module: str = ""
    pci_gpus: Mapping[str, str] | None = None
    files: Mapping[str, str]
    instances: frozenset[MigInstance] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that is known about a node. None: there is no such thing, or nobody wants it.

    Attributes:
        library: file of the NVML that a process gets.
        gpus: empty while NVML is not started.
        services: by check, what was good about a neighbour of the GPUs, or what was not.
        dcgm: a dcgm-exporter is to fill in what NVML has not.
    """

    library: str | NoAnswer | None = None
    machine: Machine | NoAnswer | None = None
    driver: Driver | NoAnswer
    gpus: tuple[Gpu, ...] = ()
    allocations: tuple[Allocation, ...] | NoAnswer | None = None
    offers: tuple[Offer, ...] | NoAnswer | None = None
    services: Mapping[str, str | NoAnswer | None]
    dcgm: bool = False

    @property
    def has_gpus(self) -> bool:
        """Tell whether there may be NVIDIA GPUs: only a bus without any rules them out."""
        bus = self.machine.pci_gpus if isinstance(self.machine, Machine) else None
        return isinstance(self.driver, Driver) or bus is None or bool(bus)

    @property
    def answering(self) -> tuple[Gpu, ...]:
        """Return the GPUs that answered."""
        return tuple(gpu for gpu in self.gpus if not gpu.silence)

    @property
    def devices(self) -> tuple[Device, ...]:
        """Return every device that answered."""
        return tuple(device for gpu in self.answering for device in gpu.devices)

    @property
    def reads(self) -> tuple[Read, ...]:
        """Return every read of every device."""
        return tuple(read for gpu in self.answering for read in gpu.reads)
