"""When faults begin and end, those of the scenario and those that a test injects.

A story only grows towards the future: what happened before the present is never changed, so that
whatever was computed for a moment of the past stays true.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from simulator.scenario import Ecc, Fault, Xid

NEVER = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One time that a fault happens; ``end`` is NEVER if it stays, ``begin`` for an event."""

    fault: Fault
    begin: float
    end: float

    def holds(self, at: float) -> bool:
        """Tell whether the fault is there at that time."""
        return self.begin <= at < self.end


class Injection:
    """A fault in a story; ``Fleet.clear`` takes it out."""

    def __init__(self, fault: Fault, *, origin: float) -> None:
        self.fault = fault
        self._first = origin + fault.at
        self._cleared = NEVER

    def clear(self, now: float) -> None:
        """End it now, for good; what has happened stays."""
        self._cleared = min(self._cleared, now)

    def occurrences(self, until: float) -> Iterator[Occurrence]:
        """Yield each time that the fault begins, up to and including ``until``."""
        number = 0
        while (begin := self._first + number * (self.fault.every or 0)) <= until:
            if begin >= self._cleared:
                return
            yield Occurrence(fault=self.fault, begin=begin, end=self._end(begin))
            if self.fault.every is None:
                return
            number += 1

    def next_change(self, after: float) -> float:
        """Return when it next begins or ends, or NEVER."""
        every = self.fault.every
        number = max(0, math.floor((after - self._first) / every)) if every else 0
        candidates = []
        for begin in (self._first + n * (every or 0) for n in (number, number + 1)):
            if begin < self._cleared:
                candidates += [begin, self._end(begin)]
        return min((time for time in candidates if time > after), default=NEVER)

    def _end(self, begin: float) -> float:
        if isinstance(self.fault, Xid | Ecc):
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

    def occurrences(self, until: float) -> list[Occurrence]:
        """Return everything that begins up to ``until``, in the order of time."""
        found = [time for one in self._injections for time in one.occurrences(until)]
        return sorted(found, key=lambda time: time.begin)

    def next_change(self, after: float) -> float:
        """Return when anything next begins or ends, or NEVER."""
        return min((one.next_change(after) for one in self._injections), default=NEVER)
