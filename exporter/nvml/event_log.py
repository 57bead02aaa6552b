"""The last events of the node's GPUs, numbered, so that readers of any pace miss none unnoticed.

Those of NVML and those of the kernel's log: what both tell of is here twice.

Whoever remembers the number that it was given last gets what came since, and is told how much of
that is no longer kept. May be used from any thread; nothing here waits.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Final

import msgspec

from exporter.kernel_log.xid import LoggedXid
from exporter.nvml.protocol import Event, EventKind

# A minute of 68 a second, or of 34 where the kernel's log tells of each as well.
EVENTS_KEPT: Final = 4096

Kinds = Mapping[str, frozenset[EventKind]]


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """An event, and when it arrived or, where that is known, happened.

    Attributes:
        number: counts up from 1 while the process lives.
        at_seconds: since 1970; may jump with the wall clock.
        at_monotonic_seconds: of the process; for periods.
    """

    number: int
    at_seconds: float
    at_monotonic_seconds: float
    event: Event | LoggedXid


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """What came after a number.

    Attributes:
        missed: how many of them are no longer kept.
        newest: the number to ask with next time.
    """

    events: tuple[Happened, ...]
    missed: int
    newest: int


class EventLog:
    """A bounded ring of events.

    Args:
        kept: how many there are at most.
        wall: seconds since 1970.
        monotonic: the clock of periods.
    """

    def __init__(
        self,
        *,
        kept: int = EVENTS_KEPT,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lock = threading.Lock()
        self._ring: deque[Happened] = deque(maxlen=kept)
        self._newest = 0
        self._wall = wall
        self._monotonic = monotonic
        self._kinds: Kinds = MappingProxyType({})

    @property
    def kinds(self) -> Kinds:
        """Return what was ever listened to, by uuid of the GPU; the same object until it changes."""
        return self._kinds

    def listen(self, kinds: Kinds) -> None:
        """Note that these GPUs are listened to from now on."""
        with self._lock:
            before = self._kinds
            known = {gpu: found | before.get(gpu, frozenset()) for gpu, found in kinds.items()}
            if not known.items() <= before.items():
                self._kinds = MappingProxyType({**before, **known})

    def add(self, events: Sequence[Event]) -> None:
        """Keep events that just arrived, in their order."""
        self._keep([(event, 0.0) for event in events])

    def add_logged(self, xids: Sequence[LoggedXid]) -> None:
        """Keep what was just read in the kernel's log, where it says when it happened."""
        now = self._monotonic()
        # The kernel's clock of the log runs a little apart from ours.
        self._keep([(xid, max(0.0, now - xid.at_seconds)) for xid in xids])

    def _keep(self, aged: Sequence[tuple[Event | LoggedXid, float]]) -> None:
        at, at_monotonic = self._wall(), self._monotonic()
        with self._lock:
            for number, (event, age) in enumerate(aged, start=self._newest + 1):
                self._ring.append(
                    Happened(
                        number=number,
                        at_seconds=at - age,
                        at_monotonic_seconds=at_monotonic - age,
                        event=event,
                    )
                )
            self._newest += len(aged)

    def after(self, number: int) -> Recent:
        """Return what came after the event of a number; 0 for everything.

        A number that was not given yet, for example by an earlier life of the process, counts for
        0: its reader has to tell lives apart, but loses nothing if it does not.
        """
        with self._lock:
            newest = self._newest
            came = newest - number if 0 <= number <= newest else newest
            held = min(came, len(self._ring))
            events = tuple(islice(self._ring, len(self._ring) - held, None))
        return Recent(events=events, missed=came - held, newest=newest)
