"""What a process tells about itself when it is asked: CPU time, and calls of the C library.

A line on standard input asks, a line of JSON on standard output answers. The end of the input
ends the process, so that none outlives a benchmark that was killed.
"""

import os
import signal
import sys
import threading
import time
from typing import Final

import msgspec

from testbed.driver.loaded import LoadedDriver

# Longer than a tick spends between two calls, even where it has to wait for a core; shorter than
# the pause between two ticks.
QUIET_SECONDS: Final = 0.02


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """What a process has used since it began.

    Attributes:
        cpu_seconds: user and system time of all threads.
        calls: by entry point of the C library.
    """

    cpu_seconds: float
    calls: dict[str, int]


class Counting:
    """Answers on a thread of its own, between two ticks, so that only whole ones are counted."""

    def __init__(self, driver: LoadedDriver) -> None:
        self._driver = driver
        self._pause = threading.Event()

    def start(self) -> None:
        """Begin to answer."""
        threading.Thread(target=self._run, name="counting", daemon=True).start()

    def now(self) -> Count:
        """Wait until no call was made for a moment, and count."""
        before = self._driver.calls()
        while True:
            self._pause.wait(QUIET_SECONDS)
            calls = self._driver.calls()
            if calls == before:
                return Count(cpu_seconds=time.process_time(), calls=calls)
            before = calls

    def _run(self) -> None:
        for _ in sys.stdin.buffer:
            sys.stdout.buffer.write(msgspec.json.encode(self.now()) + b"\n")
            sys.stdout.buffer.flush()
        os.kill(os.getpid(), signal.SIGTERM)
