"""Waiting for a condition with a deadline: the only place where the harness lets time pass."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

T = TypeVar("T")

COMMAND_SECONDS: Final = 60.0
"""How long a short command may take before it counts as hung."""
_TAIL_LINES: Final = 30


class ClusterError(Exception):
    """The test cluster did not do what was asked; the message says what, and shows the log."""


def until(
    attempt: Callable[[], T | None],
    *,
    what: str,
    seconds: float,
    log: Path | None = None,
    every_seconds: float = 0.1,
) -> T:
    """Repeat ``attempt`` until it returns something true, and return that.

    Raises:
        ClusterError: the deadline passed, or ``attempt`` raised it; with the tail of ``log``.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = attempt()
        if answer:
            return answer
        if time.monotonic() >= deadline:
            raise ClusterError(f"waited {seconds:g} s in vain for {what}{_shown(log)}")
        time.sleep(every_seconds)  # noqa: TID251 - this is the wait with a deadline


def tail(log: Path, lines: int = _TAIL_LINES) -> str:
    """Return the last lines of a log, or why there are none."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except OSError as error:
        return f"(no log: {error})"


def _shown(log: Path | None) -> str:
    return f"; the end of {log.name}:\n{tail(log)}" if log else ""
