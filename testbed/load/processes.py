"""The load programs that run on a node, as its kernel shows them.

A load program is any process that ignores the words after ``load`` in its arguments, as the pause
image does. Like a program of CUDA it works on the devices that its environment names.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

MARK: Final = "load"
DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
"""The variable by which a device plugin tells a container what it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a program keeps of each of its devices.

    Attributes:
        share: of the device's time, 0 to 1.
        memory_bytes: that it holds there.
    """

    share: float
    memory_bytes: int

    def arguments(self) -> list[str]:
        """Return what a program is started with."""
        return [MARK, str(self.share), str(self.memory_bytes)]

    @classmethod
    def of(cls, command: list[str]) -> Self | None:
        """Return what a command line says; None if it is no load program's."""
        if len(command) != 4 or command[1] != MARK:
            return None
        return cls(share=float(command[2]), memory_bytes=int(command[3]))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProcess:
    """A running load program.

    Attributes:
        pid: in the PID namespace of the procfs that showed it.
        devices: uuids.
    """

    pid: int
    devices: frozenset[str]
    demand: Demand


def running(proc: Path) -> tuple[LoadProcess, ...]:
    """Return the load programs of a procfs, by rising PID."""
    return tuple(sorted(_found(proc), key=lambda process: process.pid))


def _found(proc: Path) -> Iterator[LoadProcess]:
    for folder in proc.iterdir():
        if not folder.name.isdecimal():
            continue
        demand = Demand.of(_words(folder / "cmdline"))
        if demand is not None:
            devices = frozenset(_devices(_words(folder / "environ")))
            yield LoadProcess(pid=int(folder.name), devices=devices, demand=demand)


def _devices(environment: list[str]) -> Iterator[str]:
    for setting in environment:
        name, _, value = setting.partition("=")
        if name == DEVICES:
            yield from filter(None, value.split(","))


def _words(file: Path) -> list[str]:
    """Return the words of a file of procfs; none of a process that has ended in the meantime."""
    try:
        return file.read_text(errors="replace").split("\0")[:-1]
    except OSError:
        return []
