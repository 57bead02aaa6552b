"""When faults begin and end, those of the scenario and those that a test injects.

A story only grows towards the future: the past is never changed, so that whatever was computed
for a moment of it stays true.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar, get_args

from simulator.scenario import Fault, GpuFault, Momentary

NEVER = math.inf

F = TypeVar("F", bound=GpuFault)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One time that a fault happens; ``end`` is NEVER if it stays, ``begin`` for an event."""

    fault: Fault
    begin: float
    end: float

    def holds(self, at: float) -> bool:
        """Tell whether the fault is active at that time."""
        return self.begin <= at < self.end


class Injection:
    """A fault in a story; ``Fleet.clear`` ends it."""

    def __init__(self, fault: Fault, *, origin: float) -> None:
        self.fault = fault
        self._first = origin + fault.at
        self._cleared = NEVER

    def clear(self, now: float) -> None:
        """End it now, for good; the past stays."""
        self._cleared = min(self._cleared, now)

    def occurrences(self, since: float, until: float) -> Iterator[Occurrence]:
        """Yield each time that the fault begins up to ``until``, if not long over by ``since``."""
        every = self.fault.every
        number = max(0, math.floor((since - self._first) / every)) if every else 0
        while (begin := self._first + number * (every or 0)) <= min(until, self._cleared):
            if begin < self._cleared:
                yield Occurrence(fault=self.fault, begin=begin, end=self._end(begin))
            if every is None:
                return
            number += 1

    def begun(self, until: float) -> int:
        """Return how often it has begun by a moment; costs the same however often that is."""
        every = self.fault.every or 0
        number = math.ceil((min(until, self._cleared) - self._first) / every) if every else 0
        while number >= 0:
            begin = self._first + number * every
            if begin <= until and begin < self._cleared:
                return number + 1
            number -= 1
        return 0

    def next_change(self, after: float) -> float:
        """Return when it next begins or ends, or NEVER."""
        until = max(after, self._first) + (self.fault.every or 0)
        times = (time for o in self.occurrences(after, until) for time in (o.begin, o.end))
        return min((time for time in times if time > after), default=NEVER)

    def _end(self, begin: float) -> float:
        if isinstance(self.fault, Momentary):
            return begin
        if self.fault.lasts is None:
            return self._cleared
        return min(begin + self.fault.lasts, self._cleared)


class Story:
    """The faults of one node."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self._injections = [Injection(fault, origin=0.0) for fault in faults]

    def add(self, fault: Fault, *, now: float) -> Injection:
        """Let a fault happen; its times count from now."""
        injection = Injection(fault, origin=now)
        self._injections.append(injection)
        return injection

    def clear(self, injection: Injection | None, *, now: float) -> None:
        """End one fault now, or all of them."""
        for one in self._injections:
            if injection is None or one is injection:
                one.clear(now)

    def occurrences(
        self, since: float, until: float, kinds: tuple[type[Fault], ...] = get_args(Fault)
    ) -> list[Occurrence]:
        """Return what begins up to ``until`` and is not long over by ``since``, in order."""
        found = [
            time
            for one in self._injections
            if isinstance(one.fault, kinds)
            for time in one.occurrences(since, until)
        ]
        return sorted(found, key=lambda time: time.begin)

    def current(self, at: float, gpu: int) -> list[Fault]:
        """Return the faults that a GPU or its node has at that time, the oldest first."""
        current = [time for time in self.occurrences(at, at) if time.holds(at)]
        return [time.fault for time in current if _concerns(time.fault, gpu)]

    def begun(self, kind: type[F], gpu: int, since: float, until: float) -> list[tuple[F, int]]:
        """Return the faults of a kind that a GPU has, and how often each began in that time.

        Args:
            kind: the class.
            gpu: index on the node.
            since: not included, unless it is the beginning of the fleet.
            until: included.
        """
        return [
            (one.fault, one.begun(until) - (one.begun(since) if since > 0 else 0))
            for one in self._injections
            if isinstance(one.fault, kind) and one.fault.gpu == gpu
        ]

    def next_change(self, after: float, gpu: int | None = None) -> float:
        """Return when anything next begins or ends, for one GPU or for all, or NEVER."""
        concerned = (i for i in self._injections if gpu is None or _concerns(i.fault, gpu))
        return min((one.next_change(after) for one in concerned), default=NEVER)


def _concerns(fault: Fault, gpu: int) -> bool:
    return fault.gpu == gpu if isinstance(fault, GpuFault) else True
