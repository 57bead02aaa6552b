"""Who reads when: the workers take turns, and nobody waits for one that hangs.

Reads are short and Python runs one thread at a time, so that eight threads that read at once
spend their time handing the interpreter to each other. One after the other costs half of it; a
worker that keeps its turn for longer than ``PATIENCE_SECONDS`` is overtaken.

Whether a worker rests or runs is decided here alone, under one lock: its own thread could not
tell the two apart in the moment between the end of a pass and its delivery.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from exporter.nvml.reader import Cycle

PATIENCE_SECONDS = 0.05


class Runner(Protocol):
    """What the relay needs of a worker."""

    def give_turn(self) -> None:
        """Begin one pass; the end of it is reported to ``Relay.finished``."""
        ...


W = TypeVar("W", bound=Runner)


class Relay(Generic[W]):
    """Passes a turn through the workers that rest, from thread to thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
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

    def join(self, workers: Sequence[W]) -> None:
        """Take in workers, which rest until the next start."""
        with self._lock:
            self._resting.extend(workers)

    def start(self, wake: Callable[[], None]) -> bool:
        """Give those that rest a turn each; tell whether there are any.

        Whoever still waits since an earlier start comes first, then who rested longest.

        Args:
            wake: called once, on a worker's thread, when all of them have finished.
        """
        with self._lock:
            self._wake = wake
            self._waiting.extend(self._resting)
            self._resting.clear()
            self._awaited = set(self._waiting)
            if self._holder is None:
                self._pass_on()
            return bool(self._awaited)

    def finished(self, worker: W, result: Cycle | Exception) -> None:
        """Take a worker's pass and give its turn to the next. Called on the worker's thread."""
        with self._lock:
            if isinstance(result, Cycle):
                self._cycles.append(result)
            else:
                self._error = result
            self._resting.append(worker)
            if self._overtaken.pop(worker, None) is None:
                self._pass_on()
            last = self._awaited == {worker}
            self._awaited.discard(worker)
            wake = self._wake
        if last:
            wake()

    def overtake(self) -> None:
        """Let the others go on where a worker keeps its turn; call it from time to time."""
        with self._lock:
            if self._holder is not None and self._clock() - self._since > PATIENCE_SECONDS:
                self._overtaken[self._holder] = self._since
                self._pass_on()

    def halt(self) -> bool:
        """Give no further turns until the next start; tell whether every worker rests."""
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
        return {worker: now - began for worker, began in since.items()}

    def take(self) -> tuple[Cycle, ...]:
        """Return the passes that came in since the last call, or raise what a worker raised."""
        with self._lock:
            cycles, self._cycles = self._cycles, []
            error, self._error = self._error, None
        if error is not None:
            raise error
        return tuple(cycles)

    def _pass_on(self) -> None:
        self._holder = self._waiting.popleft() if self._waiting else None
        if self._holder is not None:
            self._since = self._clock()
            self._holder.give_turn()


def _nobody() -> None:
    """There is nobody to wake before the first start."""
