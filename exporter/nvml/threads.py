"""Threads for calls into the driver, which may never return.

They are daemons: an executor of the standard library would wait for each of them at the end of
the process. One that is idle is used again, so that as long as nothing hangs there is one.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue

Job = Callable[[], None]


class Threads:
    """Runs jobs, each at once: on the idle thread, or on a new one. A job must not raise."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: SimpleQueue[Job | None] | None = None
        self._living: set[threading.Thread] = set()
        self._closed = False

    def run(self, job: Job) -> None:
        """Begin a job."""
        with self._lock:
            inbox, self._idle = self._idle, None
            if inbox is None:
                inbox = self._open()
        inbox.put(job)

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
        thread = threading.Thread(target=self._work, args=(inbox,), name="nvml", daemon=True)
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
