"""Who is read when: the GPUs take turns on one thread, and nobody waits for one that hangs.

Reads are short and Python runs one thread at a time: a thread per GPU would spend more time on
handing the interpreter over than on reading. So a thread that is done with a GPU goes on with the
next one. Where a turn takes longer than ``PATIENCE_SECONDS`` the others go on with another thread,
and the one that is stuck ends when its call returns.

Whether a GPU rests or is being read is decided here alone, under one lock.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from exporter.nvml.reader import Cycle

PATIENCE_SECONDS = 0.05


class Runner(Protocol):
    """What the relay needs of a GPU's reader."""

    def attempt(self) -> Cycle | Exception:
        """Make one pass; return it, or what a fault in our own code raised."""
        ...


W = TypeVar("W", bound=Runner)


class Relay(Generic[W]):
    """Gives turns to the runners that rest.

    Args:
        begin: called with the runner whose turn begins while no thread is free to go on with it;
            has to ``carry`` it out on another thread, and must not wait.
    """

    def __init__(
        self, begin: Callable[[W], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._begin = begin
        self._clock = clock
        self._lock = threading.Lock()
        self._resting: deque[W] = deque()
        self._waiting: deque[W] = deque()
        self._holder: W | None = None
        self._since = 0.0
        self._overtaken: dict[W, float] = {}
        self._awaited: set[W] = set()
        self._cycles: list[Cycle] = []
        self._error: Exception | None = None
        self._wake: Callable[[], None] = _nobody

    def join(self, runners: Sequence[W]) -> None:
        """Take in runners, which rest until the next start."""
        with self._lock:
            self._resting.extend(runners)

    def start(self, wake: Callable[[], None]) -> bool:
        """Give those that rest a turn each; tell whether there are any.

        Whoever still waits since an earlier start comes first, then who rested longest.

        Args:
            wake: called once, on the thread of the last one, when all of them have finished.
        """
        with self._lock:
            self._wake = wake
            self._waiting.extend(self._resting)
            self._resting.clear()
            self._awaited = set(self._waiting)
            if self._holder is None:
                self._begin_next()
            return bool(self._awaited)

    def carry(self, runner: W) -> None:
        """Carry out the turn of ``runner``, and those that follow, on this thread."""
        following: W | None = runner
        while following is not None:
            following = self.finished(following, following.attempt())

    def finished(self, runner: W, result: Cycle | Exception) -> W | None:
        """Take a runner's pass; return whose turn begins on the same thread, or None."""
        with self._lock:
            if isinstance(result, Cycle):
                self._cycles.append(result)
            else:
                self._error = result
            self._resting.append(runner)
            following = None
            if self._overtaken.pop(runner, None) is None:
                following = self._next()
            last = self._awaited == {runner}
            self._awaited.discard(runner)
            wake = self._wake
        if last:
            wake()
        return following

    def overtake(self) -> None:
        """Let the others go on where one keeps its turn; call it from time to time."""
        with self._lock:
            if self._holder is not None and self._clock() - self._since > PATIENCE_SECONDS:
                self._overtaken[self._holder] = self._since
                self._begin_next()

    def halt(self) -> bool:
        """Give no further turns until the next start; tell whether every runner rests."""
        with self._lock:
            self._resting.extend(self._waiting)
            self._waiting.clear()
            return self._holder is None and not self._overtaken

    def running(self) -> dict[W, float]:
        """Return who makes a pass at this moment, and for how many seconds already."""
        with self._lock:
            since = dict(self._overtaken)
            if self._holder is not None:
                since[self._holder] = self._since
        now = self._clock()
        return {runner: now - began for runner, began in since.items()}

    def take(self) -> tuple[Cycle, ...]:
        """Return the passes that came in since the last call, or raise what a runner raised."""
        with self._lock:
            cycles, self._cycles = self._cycles, []
            error, self._error = self._error, None
        if error is not None:
            raise error
        return tuple(cycles)

    def _begin_next(self) -> None:
        if (following := self._next()) is not None:
            self._begin(following)

    def _next(self) -> W | None:
        self._holder = self._waiting.popleft() if self._waiting else None
        self._since = self._clock()
        return self._holder


def _nobody() -> None:
    """There is nobody to wake before the first start."""
