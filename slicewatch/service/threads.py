"""Threads for calls that may never return: into a driver, or into a file system.

They are daemons: an executor of the standard library would wait for each of them at the end of
the process. One that is idle is used again, so that as long as nothing hangs there is one.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")
Job = Callable[[], None]


class Threads:
    """Runs jobs, each at once: on the idle thread, or on a new one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: SimpleQueue[Job | None] | None = None
        self._living: set[threading.Thread] = set()
        self._closed = False

    def run(self, job: Job) -> None:
        """Begin a job, which must not raise."""
        with self._lock:
            inbox, self._idle = self._idle, None
            if inbox is None:
                inbox = self._open()
        inbox.put(job)

    def call(self, function: Callable[[], T]) -> "asyncio.Future[T]":
        """Begin a call that may never return; the future brings its result to the running loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def job() -> None:
            try:
                result = function()
            except Exception as error:  # noqa: BLE001 - handed to whoever awaits
                tell(loop, partial(_settle, future.set_exception, error))
            else:
                tell(loop, partial(_settle, future.set_result, result))

        self.run(job)
        return future

    def close(self) -> None:
        """Let every thread end when its job is over."""
        with self._lock:
            self._closed = True
            if self._idle is not None:
                self._idle.put(None)
                self._idle = None

    def join(self) -> None:
        """Wait until the threads have ended, however long their jobs take. After ``close``."""
        with self._lock:
            living = self._living - {threading.current_thread()}
        for thread in living:
            thread.join()

    def _open(self) -> "SimpleQueue[Job | None]":
        inbox: SimpleQueue[Job | None] = SimpleQueue()
        thread = threading.Thread(target=self._work, args=(inbox,), name="calls", daemon=True)
        self._living.add(thread)
        thread.start()
        return inbox

    def _work(self, inbox: "SimpleQueue[Job | None]") -> None:
        while (job := inbox.get()) is not None:
            job()
            with self._lock:
                if self._closed or self._idle is not None:
                    break
                self._idle = inbox
        with self._lock:
            self._living.discard(threading.current_thread())


def tell(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    """Call on a loop, from any thread; once it is closed nobody waits any more."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)


def _settle(report: Callable[[T], None], what: T) -> None:
    # Nobody awaits a future any more that was cancelled meanwhile.
    with contextlib.suppress(asyncio.InvalidStateError):
        report(what)
