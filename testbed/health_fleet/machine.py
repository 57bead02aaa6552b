"""A machine with GPUs as its monitor sees it: what its exporter says, through boots and repairs.

It is an ``EvidenceSource``. All that it says follows from what was done to it and from the clock,
so that a minute and a month take the same time. It asks nothing and writes nothing.
"""

import asyncio
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from health.source import Cursor, Silence, SilenceError
from slicewatch.catalog.nvlink import STATES
from slicewatch.catalog.readings.nvlink import Nvlinks
from slicewatch.catalog.readings.state import Fabric
from slicewatch.catalog.state import FABRIC
from slicewatch.hardware.xids import Tier, tier_of
from slicewatch.wire.evidence import (
    Driver,
    Event,
    Evidence,
    Gpu,
    Happening,
    Source,
    Unidentified,
)
from testbed.health_fleet import boards
from testbed.health_fleet.ailments import LINKS, Ailment, Told
from testbed.health_fleet.showing import reads, with_readings

DAY_SECONDS: Final = 86_400.0
KEPT_EVENTS: Final = 4096
TICK_SECONDS: Final = 1.0
# NVML's number while the fabric manager is not done.
IN_PROGRESS: Final = 2
MISSING: Final = "gpu_not_found"

_DARK_LINKS: Final = reads(STATES, Nvlinks((1,) * 4 + (0,) * (LINKS - 4)))
_JOINING: Final = reads(FABRIC, Fabric(state=IN_PROGRESS, status=0, health_mask=0))


@dataclass(slots=True)
class Board:
    """One GPU: which it is, and what ails it since when."""

    gpu: Gpu
    ailing: list[tuple[float, Ailment]] = field(default_factory=list)

    def mute(self, before: float) -> str:
        """Return why it did not say who it is when it was asked at a moment; empty if it did."""
        found = (one.mute for since, one in self.ailing if one.mute and since <= before)
        return next(found, "")


class Machine:
    """One node.

    Args:
        name: of the node.
        clock: seconds, also the monitor's.
        gpus: how many.
        kernel_log: whether the exporter reads the kernel's log, which has what happened before the
            exporter began.
        up_seconds: for how long everything has been up.
    """

    def __init__(
        self,
        name: str,
        clock: Callable[[], float],
        *,
        gpus: int = 8,
        kernel_log: bool = False,
        up_seconds: float = DAY_SECONDS,
    ) -> None:
        self.name = name
        self.boards = [Board(boards.gpu(name, index)) for index in range(gpus)]
        self._clock = clock
        self._kernel_log = kernel_log
        self._boots = self._runs = 1
        self._starts = 1
        self._down = ""
        began = clock() - up_seconds
        self._booted_at = self._exporter_at = self._driver_at = self._trained_at = began
        self._silent_until = self._unloaded_at = self._changed_at = self._repeated_at = began
        self._log: list[tuple[float, Event]] = []
        self._events: list[tuple[float, Event]] = []

    def boot(self, *, down: float, driver: float, training: float) -> None:
        """Begin a new life of the kernel; what was, is not known any more.

        Args:
            down: seconds until the exporter answers.
            driver: seconds after which the driver is loaded.
            training: seconds from then on after which all links are up.
        """
        now = self._clock()
        self._boots += 1
        self._booted_at = self._changed_at = now
        self._log.clear()
        self._begin_run(now + down)
        self._load_driver(now + driver, "no_driver", training)
        self._starts = 1

    def restart_exporter(self, *, silent: float) -> None:
        """Begin a new life of the exporter, which says nothing for so many seconds."""
        self._changed_at = self._clock()
        self._begin_run(self._changed_at + silent)
        self._starts = 1

    def reload_driver(self, *, why: str, seconds: float, training: float) -> None:
        """Take the driver away, and load another one after so many seconds."""
        self._changed_at = self._clock()
        self._load_driver(self._changed_at + seconds, why, training)
        self._starts += 1

    def fall_silent(self, seconds: float) -> None:
        """Let the exporter not answer for so long."""
        self._changed_at = self._clock()
        self._silent_until = self._changed_at + seconds

    def fall_ill(self, index: int, ailment: Ailment) -> None:
        """Let something befall a GPU from now on."""
        now = self._changed_at = self._clock()
        self.boards[index].ailing.append((now, ailment))
        for told in ailment.told:
            self._tell(index, told, now)

    def recover(self, index: int, ailment: Ailment | None = None) -> None:
        """End one thing that ails a GPU, or all."""
        self._changed_at = self._clock()
        board = self.boards[index]
        board.ailing = [one for one in board.ailing if ailment not in {None, one[1]}]

    def replace(self, index: int, number: int) -> None:
        """Put another board in its place, which is well."""
        self._changed_at = self._clock()
        self.boards[index] = Board(boards.gpu(self.name, index, number))

    @property
    def settled_at(self) -> float:
        """Return since when it has said the same, or will, clocks and counters apart."""
        if any(not one.is_steady for board in self.boards for _, one in board.ailing):
            return math.inf
        latest = self._events[-1][0] if self._events else 0.0
        return max(
            self._changed_at, self._exporter_at, self._driver_at, self._trained_at,
            self._silent_until, latest,
        )  # fmt: skip

    @property
    def repeated_at(self) -> float:
        """Return when it last told of an Xid of which several make a finding."""
        return self._repeated_at

    def faults(self) -> list[Ailment]:
        """Return what is wrong with its GPUs."""
        return [one for board in self.boards for _, one in board.ailing if one.is_fault]

    async def ask(self, cursor: Cursor) -> Evidence:
        """Return what is known now; see ``health.source.EvidenceSource``."""
        await asyncio.sleep(0)
        now = self._clock()
        if now < max(self._exporter_at, self._silent_until):
            why = Silence.TIMEOUT if now >= self._exporter_at else Silence.NO_SOCKET
            raise SilenceError(why, "the exporter does not answer yet")
        down = self._down if now < self._driver_at else ""
        # With the driver away, GPUs are those that were known before it went.
        known_at = max(self._exporter_at, 0.0 if down else self._driver_at)
        never = bool(down) and self._exporter_at > self._unloaded_at
        run = self._run
        events, missed = self._after(cursor.newest if cursor.run == run else 0, now)
        return Evidence(
            node=self.name,
            run=run,
            boot_id=boards.identifier(self.name, "boot", self._boots),
            uptime_seconds=now - self._booted_at,
            tick_age_seconds=0.5 if now - self._exporter_at >= TICK_SECONDS else None,
            driver=self._driver(down, now),
            gpus=() if never else tuple(self._gpus(down, known_at, now)),
            unidentified=() if down else tuple(self._unidentified(known_at)),
            events=events,
            missed=missed,
            newest=self._newest(now),
            kernel_log="" if self._kernel_log else "off",
        )

    @property
    def _run(self) -> str:
        return boards.identifier(self.name, "run", self._runs)

    def _begin_run(self, at: float) -> None:
        self._runs += 1
        self._exporter_at = at
        self._events = [one for one in self._events if one[0] >= at and one not in self._log]
        # The kernel's log is read from its beginning.
        self._events = sorted(self._log + self._events, key=_time)

    def _load_driver(self, at: float, why: str, training: float) -> None:
        self._down, self._driver_at, self._trained_at = why, at, at + training
        self._unloaded_at = self._clock()

    def _driver(self, down: str, now: float) -> Driver:
        since = self._unloaded_at if down else self._driver_at
        return Driver(
            down=down,
            seconds=now - max(since, self._exporter_at),
            starts=self._starts - bool(down),
            version="580.95.05",
        )

    def _gpus(self, down: str, known_at: float, now: float) -> Iterator[Gpu]:
        rest = boards.at_rest(now - max(self._exporter_at, self._driver_at), now - self._driver_at)
        for board in self.boards:
            if board.mute(known_at):
                continue
            if down:
                yield msgspec.structs.replace(
                    board.gpu, silent=down, silent_seconds=now - self._unloaded_at
                )
                continue
            yield self._shown(with_readings(board.gpu, rest), board, now)

    def _shown(self, gpu: Gpu, board: Board, now: float) -> Gpu:
        if now < self._trained_at:
            gpu = _JOINING(_DARK_LINKS(gpu, 0.0), 0.0)
        for since, ailment in board.ailing:
            gpu = ailment.shows(gpu, now - since)
        return gpu

    def _unidentified(self, known_at: float) -> Iterator[Unidentified]:
        for index, board in enumerate(self.boards):
            why = board.mute(known_at)
            if why and why != MISSING:
                yield Unidentified(index=index, reason=why)

    def _tell(self, index: int, told: Told, now: float) -> None:
        """Let both sources tell of an Xid, NVML by its number and the kernel's log in words."""
        device = self.boards[index].gpu.device
        heard = Event(
            number=0, kind=Happening.XID, age_seconds=0.0, gpu=device.uuid, data=told.xid,
            pci_bus_id=device.pci_bus_id,
        )  # fmt: skip
        text = f"pid=1234, name=python, {told.text}"
        logged = msgspec.structs.replace(heard, source=Source.KERNEL, text=text, gpu="")
        times = [now + number * told.apart_seconds for number in range(told.times)]
        self._events += [(at, heard) for at in times]
        if tier_of(told.xid) is Tier.REPEAT:
            self._repeated_at = max(self._repeated_at, times[-1])
        if self._kernel_log:
            self._log += [(at, logged) for at in times]
            self._events += [(at, logged) for at in times]
        self._events.sort(key=_time)

    def _newest(self, now: float) -> int:
        return bisect_right(self._events, now, key=_time)

    def _after(self, number: int, now: float) -> tuple[tuple[Event, ...], int]:
        """Return the events after a number that are kept, and how many are not."""
        newest = self._newest(now)
        first = max(number, newest - KEPT_EVENTS)
        events = tuple(
            msgspec.structs.replace(event, number=position, age_seconds=now - at)
            for position, (at, event) in enumerate(self._events[first:newest], start=first + 1)
        )
        return events, max(0, first - number)


def _time(one: tuple[float, Event]) -> float:
    return one[0]
