"""Questions that may never be answered: each has a thread of its own and is left behind in time."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from exporter.doctor.facts import NoAnswer

T = TypeVar("T")


class Question(Generic[T]):
    """A question, asked at once. Its thread is a daemon: the process ends without it.

    Args:
        ask: may block for good, and raise whatever it likes.
    """

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._answer: T | NoAnswer | None = None
        self._thread = threading.Thread(target=self._run, name="doctor", daemon=True)
        self._thread.start()

    @property
    def open(self) -> bool:
        """Tell whether it is still being asked."""
        return self._thread.is_alive()

    def answer(self, until: float) -> T | NoAnswer:
        """Return the answer, or why there is none at ``until`` of the monotonic clock."""
        self._thread.join(max(0.0, until - time.monotonic()))
        if self.open or self._answer is None:
            return NoAnswer("no answer in time")
        return self._answer

    def _run(self) -> None:
        try:
            self._answer = self._ask()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
            self._answer = NoAnswer(str(error) or type(error).__name__)
