"""Listens to what happens on the GPUs, in a thread of its own.

Waiting for events blocks in the driver, and an event is told once: so nothing else is done on that
thread, and where the listening fails it begins anew by itself. What happened in between is lost,
which is why it is said when nobody listens.
"""

import threading
from collections.abc import Callable
from typing import Final

from exporter.nvml.event_log import EventLog
from exporter.nvml.protocol import EventSource, Failed, Lost, Nvml, Unsupported, Value
from slicewatch.service import logs
from slicewatch.service.backoff import Backoff
from slicewatch.wire.layout import Device

# Who asks NVML to be let go waits for so long at most.
WAIT_SECONDS: Final = 0.5
# What is not supported is asked for again too: a permission may be given meanwhile.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 60.0

LISTENS: Final = ""
NOT_YET: Final = "starting"
NO_GPUS: Final = "no_gpus"
STOPPED: Final = "stopped"
FAULT: Final = "fault"

log = logs.logger(__name__)


def _nobody(_: str) -> None:
    """Nobody wants to know."""


class Listener:
    """Fills a log with the events of the GPUs. For one thread, which it never makes wait.

    Args:
        nvml: the driver.
        events: where they go.
        report: called, on any thread, with why nobody listens in one word for a label, or with an
            empty text, whenever that changes.
        pause: makes the pauses after failures in a row; for tests.
    """

    def __init__(
        self,
        nvml: Nvml,
        events: EventLog,
        *,
        report: Callable[[str], None] = _nobody,
        pause: Callable[[], Backoff] = lambda: Backoff(
            first_seconds=FIRST_PAUSE_SECONDS, most_seconds=LONGEST_PAUSE_SECONDS
        ),
    ) -> None:
        self._nvml = nvml
        self._events = events
        self._report = report
        self._pause = pause
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._listening: _Listening | None = None

    @property
    def reason(self) -> str:
        """Return why nobody listens, in one word; empty while somebody does. For any thread."""
        return NOT_YET if self._reason is None else self._reason

    def begin(self, gpus: tuple[Device, ...]) -> None:
        """Listen to these GPUs; to be called again and again while NVML is started.

        Where they are listened to, nothing changes. Where a thread that was told to stop has not
        left NVML yet, a later call begins.
        """
        current = self._listening
        if current is not None and current.is_alive():
            if current.gpus != gpus:
                self.stop()
            return
        if not gpus:
            self._say(NO_GPUS)
            return
        self._listening = _Listening(self._nvml, gpus, self._events, self._pause(), self._say_of)
        self._listening.start()

    def stop(self) -> bool:
        """Stop listening, before a stop of NVML; tell whether the thread has left NVML.

        It has within ``WAIT_SECONDS``, unless the driver hangs: call it again until then.
        """
        if self._listening is None:
            return True
        self._listening.stopping.set()
        self._say(STOPPED)
        return not self._listening.is_alive()

    def join(self) -> None:
        """Wait until the thread has left NVML, however long its call takes. After ``stop``."""
        if self._listening is not None:
            self._listening.join()

    def _say_of(self, listening: "_Listening", reason: str) -> None:
        """Say what became of a thread, unless it is one that was told to stop."""
        with self._lock:
            if not listening.stopping.is_set():
                self._say_locked(reason)

    def _say(self, reason: str) -> None:
        with self._lock:
            self._say_locked(reason)

    def _say_locked(self, reason: str) -> None:
        if reason == self._reason:
            return
        self._reason = reason
        self._report(reason)
        if reason in {LISTENS, STOPPED, NO_GPUS}:
            log.info("events of GPUs", listening=reason == LISTENS, reason=reason)
        else:
            log.warning("nobody listens to events of GPUs", reason=reason)


class _Listening(threading.Thread):
    """Listens until it is told to stop. A daemon: its call may never return."""

    def __init__(
        self,
        nvml: Nvml,
        gpus: tuple[Device, ...],
        events: EventLog,
        pause: Backoff,
        say: "Callable[[_Listening, str], None]",
    ) -> None:
        super().__init__(name="nvml-events", daemon=True)
        self.stopping = threading.Event()
        self._nvml = nvml
        self.gpus = gpus
        self._events = events
        self._pause = pause
        self._say = say

    def run(self) -> None:
        """Listen, and begin anew after each failure."""
        while not self.stopping.is_set():
            try:
                reason = self._listen()
            except Exception:
                log.exception("listening to events of GPUs failed")
                reason = FAULT
            self._say(self, reason)
            self.stopping.wait(self._pause.next_seconds())

    def _listen(self) -> str:
        """Listen until it fails; return why, in one word."""
        opened = self._nvml.events(self.gpus)
        if not isinstance(opened, Value):
            return _word(opened)
        source = opened.value
        try:
            return self._follow(source)
        finally:
            source.close()

    def _follow(self, source: EventSource) -> str:
        self._events.listen(source.kinds)
        self._say(self, LISTENS)
        last = False
        while not last:
            # What is there already is taken along on the way out.
            last = self.stopping.is_set()
            came = source.wait(0 if last else WAIT_SECONDS)
            if not isinstance(came, Value):
                return _word(came)
            self._pause.reset()
            if came.value:
                self._events.add(came.value)
        return STOPPED


def _word(outcome: Unsupported | Failed | Lost) -> str:
    return outcome.error.lower() if isinstance(outcome, Failed) else outcome.reason
