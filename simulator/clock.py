"""What time it is in a fleet, and how a thread waits for a moment of it.

A fleet asks its clock whenever it is read: one on a real clock moves by itself, one on a manual
clock when a test says so. Nothing else in the simulator knows which of the two it has.
"""

import threading
import time
from typing import Protocol

# Second 0 of a manual clock: 2027-01-15 08:00 UTC, so that tests read the same timestamps.
EPOCH_OF_MANUAL_CLOCKS_US = 1_800_000_000_000_000


class Clock(Protocol):
    """Seconds since the fleet began, never backwards.

    Attributes:
        epoch_us: CPU time of second 0, microseconds since 1970: what driver timestamps count from.
    """

    epoch_us: int

    def now(self) -> float:
        """Return the seconds since the fleet began."""
        ...

    def wait(
        self, condition: threading.Condition, *, until: float | None, timeout_seconds: float | None
    ) -> None:
        """Wait on the condition, which the caller holds, and return early rather than late.

        Returns when it is notified, when the clock shows ``until``, or when ``timeout_seconds``
        of real time have passed, whichever comes first. The caller checks what it waits for.
        """
        ...


class RealTimeClock:
    """Moves with the monotonic clock of the machine."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.epoch_us = time.time_ns() // 1000

    def now(self) -> float:
        """Return the seconds since the clock was made."""
        return time.monotonic() - self._began

    def wait(
        self, condition: threading.Condition, *, until: float | None, timeout_seconds: float | None
    ) -> None:
        """Wait on the condition; ``until`` is one more limit of real time here."""
        limits = [] if timeout_seconds is None else [timeout_seconds]
        if until is not None:
            limits.append(until - self.now())
        condition.wait(max(0.0, min(limits)) if limits else None)


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, *, epoch_us: int = EPOCH_OF_MANUAL_CLOCKS_US) -> None:
        self._now = 0.0
        self.epoch_us = epoch_us
        self._lock = threading.Lock()
        self._waiting: dict[threading.Condition, int] = {}

    def now(self) -> float:
        """Return the seconds that the clock was moved to."""
        return self._now

    def advance_to(self, seconds: float) -> None:
        """Jump to that moment and wake everyone who waits.

        Raises:
            ValueError: it is in the past.
        """
        with self._lock:
            if seconds < self._now:
                raise ValueError(f"a clock cannot go back from {self._now} s to {seconds} s")
            self._now = float(seconds)
            waiting = list(self._waiting)
        for condition in waiting:
            with condition:
                condition.notify_all()

    def advance(self, seconds: float) -> None:
        """Jump by that much."""
        self.advance_to(self._now + seconds)

    def wait(
        self, condition: threading.Condition, *, until: float | None, timeout_seconds: float | None
    ) -> None:
        """Wait on the condition until someone moves the clock, notifies, or time is up."""
        with self._lock:
            if until is not None and self._now >= until:
                return
            self._waiting[condition] = self._waiting.get(condition, 0) + 1
        try:
            condition.wait(timeout_seconds)
        finally:
            with self._lock:
                self._waiting[condition] -= 1
                if not self._waiting[condition]:
                    del self._waiting[condition]
