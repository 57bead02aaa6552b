"""When the exporter lets go of the driver, for how long, and what those who ask are told.

A client that has NVML initialised keeps the driver in use: as long as it does, a GPU can be
neither reset nor unbound, and MIG neither switched nor repartitioned. So whoever wants to do that
asks for a window in which NVML is stopped here. A window never becomes the usual state: all that
is asked for together lasts at most ``LONGEST_SECONDS``, and what the exporter notices by itself,
and would notice again right after the window, counts only after a pause.
"""

import asyncio
import math
import re
import time
from collections.abc import Callable
from typing import Final

USUAL_SECONDS: Final = 60.0
LONGEST_SECONDS: Final = 600.0
FIRST_PAUSE_SECONDS: Final = 60.0
LONGEST_PAUSE_SECONDS: Final = 3600.0

# Reasons become a label, so they are words.
MIG_PENDING: Final = "mig_pending"
MIG_CONFIG: Final = "mig_config"
SIGNAL: Final = "signal"
REQUEST: Final = "request"
_REASON: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")


class ReleaseRefusedError(Exception):
    """NVML was not stopped; the message says why."""


class Pause:
    """Keeps one reason from counting again too soon; the longer, the more often it came."""

    def __init__(self) -> None:
        self._next_seconds = FIRST_PAUSE_SECONDS
        self._over_at = -math.inf

    def holds(self, now: float) -> bool:
        """Tell whether the reason does not count yet."""
        return now < self._over_at

    def begin(self, now: float) -> None:
        """A window for this reason ended now."""
        self._over_at = now + self._next_seconds
        self._next_seconds = min(2 * self._next_seconds, LONGEST_PAUSE_SECONDS)

    def settle(self) -> None:
        """The reason is gone: the pause after the next window is the first one again."""
        self._next_seconds = FIRST_PAUSE_SECONDS


class ReleaseWindow:
    """The window of one driver: who asked for it, and until when.

    Args:
        usual_seconds: how long it stays open after the last time that somebody asked.
    """

    def __init__(self, usual_seconds: float) -> None:
        self._usual_seconds = usual_seconds
        self._opened_at = -math.inf
        self._until: dict[str, float] = {}
        self._pauses: dict[str, Pause] = {}

    @property
    def reason(self) -> str:
        """Return who asked first; empty while it is closed."""
        return next(iter(self._until), "")

    def is_open(self, now: float) -> bool:
        """Tell whether the driver is to be left alone now."""
        for reason, until in tuple(self._until.items()):
            if until <= now:
                self._end(reason, until)
        return bool(self._until)

    def seconds_open(self, now: float) -> float:
        """Return for how long it has been open; 0 while it is closed."""
        return now - self._opened_at if self.is_open(now) else 0.0

    def seconds_left(self, now: float) -> float:
        """Return for how long it stays open if nobody asks again; 0 while it is closed."""
        return max(self._until.values()) - now if self.is_open(now) else 0.0

    def ask(self, reason: str, now: float, seconds: float | None = None) -> None:
        """Open it, or keep it open for longer; never shortens it.

        Raises:
            ValueError: the reason is no word for a label, or the time is not within the limits.
        """
        check_reason(reason)
        wanted = self._usual_seconds if seconds is None else check_seconds(seconds)
        if not self.is_open(now):
            self._opened_at = now
        until = min(now + wanted, self._opened_at + LONGEST_SECONDS)
        self._until[reason] = max(until, self._until.get(reason, now))

    def trigger(self, reason: str, now: float) -> None:
        """Ask for what was noticed, as often as it is noticed; ignored in the pause after it."""
        pause = self._pauses.setdefault(reason, Pause())
        self.is_open(now)  # What ran out meanwhile begins its pause.
        if not pause.holds(now):
            self.ask(reason, now)

    def withdraw(self, reason: str, now: float) -> None:
        """What was noticed is over; whatever else keeps the window open stays."""
        if self.is_open(now) and reason in self._until:
            self._end(reason, now)
        if reason in self._pauses:
            self._pauses[reason].settle()

    def close(self, now: float) -> None:
        """Close it, whoever asked for it."""
        for reason in tuple(self._until):
            self._end(reason, now)

    def _end(self, reason: str, at: float) -> None:
        del self._until[reason]
        if reason in self._pauses:
            self._pauses[reason].begin(at)


class Release:
    """The one window of this process, for those who ask and for whoever stops NVML.

    To be used on the event loop only.

    Attributes:
        granted: NVML is stopped because of it, or nothing of the driver was held anyway.
    """

    def __init__(
        self, usual_seconds: float = USUAL_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._window = ReleaseWindow(usual_seconds)
        self._clock = clock
        self._waiting: list[asyncio.Future[str]] = []
        self._mig_is_configured = False
        self.granted = False

    @property
    def reason(self) -> str:
        """Return what NVML was asked to be stopped for first; empty while it is not."""
        return self._window.reason

    @property
    def seconds_left(self) -> float:
        """Return for how long NVML is still to be left alone."""
        return self._window.seconds_left(self._clock())

    @property
    def seconds_open(self) -> float:
        """Return for how long it has been asked for."""
        return self._window.seconds_open(self._clock())

    async def obtain(self, reason: str, seconds: float | None = None) -> None:
        """Ask for it; return once NVML is stopped and nothing of the driver is held.

        Args:
            reason: a word for a label.
            seconds: for how long from now on, at most ``LONGEST_SECONDS``; as usual by default.

        Raises:
            ValueError: the reason or the time is not possible.
            ReleaseRefusedError: a call hangs, or the window was over before all had returned.
        """
        self.ask(reason, seconds)
        if self.granted:
            return
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        if refusal := await answer:
            raise ReleaseRefusedError(refusal)

    def ask(self, reason: str, seconds: float | None = None) -> None:
        """Ask for it as ``obtain`` does, without waiting."""
        self._window.ask(reason, self._clock(), seconds)

    def trigger(self, reason: str) -> None:
        """Ask for it because of what was noticed; to be called for as long as it is noticed.

        Right after a release for the same reason it does not count for a while.
        """
        self._window.trigger(reason, self._clock())

    def withdraw(self, reason: str) -> None:
        """What was noticed is over; a release for another reason goes on."""
        self._window.withdraw(reason, self._clock())

    def follow_mig_state(self, state: str) -> None:
        """Take a new value of the node's label ``nvidia.com/mig.config.state``.

        As long as it is ``pending``, the MIG manager repartitions the GPUs or is about to.
        """
        self._mig_is_configured = state == "pending"
        if not self._mig_is_configured:
            self.withdraw(MIG_CONFIG)

    def resume(self) -> None:
        """End it now, whoever asked for it."""
        self._window.close(self._clock())

    def is_wanted(self) -> bool:
        """Tell whether NVML is to be stopped, or to stay so; to be called with every tick."""
        if self._mig_is_configured:
            self.trigger(MIG_CONFIG)
        wanted = self._window.is_open(self._clock())
        if not wanted:
            self._answer("the release was over before every call had returned")
        return wanted

    def grant(self) -> None:
        """NVML is stopped."""
        self.granted = True
        self._answer("")

    def refuse(self, why: str) -> None:
        """NVML cannot be stopped: nobody asks for it any more."""
        self._window.close(self._clock())
        self._answer(why)

    def dismiss(self, why: str) -> None:
        """Whoever waits has waited in vain; NVML is to be stopped all the same."""
        self._answer(why)

    def _answer(self, refusal: str) -> None:
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            # Whoever asked may have left.
            if not answer.done():
                answer.set_result(refusal)


def check_reason(reason: str) -> str:
    """Return the reason; raise ``ValueError`` if it is no word for a label."""
    if not _REASON.fullmatch(reason):
        raise ValueError(
            f"reason: {reason!r} is no word of at most 40 of a-z, 0-9 and _, as in driver_upgrade"
        )
    return reason


def check_seconds(seconds: float) -> float:
    """Return the length of a window; raise ``ValueError`` if it is not within the limits."""
    if not 0 < seconds <= LONGEST_SECONDS:
        raise ValueError(f"{seconds:g} s is not above 0 and at most {LONGEST_SECONDS:g} s")
    return seconds
