"""NVML of this process between a start and a stop, and the change from one to the other.

Both may block in the driver, so they run on another thread while the loop goes on. Whether it is
time for one is not decided here.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from exporter.nvml.enumeration import Enumeration
from exporter.nvml.protocol import Driver, DriverUnavailableError, Nvml, Slot
from exporter.nvml.reader import Reader
from slicewatch.service.threads import Threads

# How often NVML is asked whether there are more GPUs by now.
COUNT_SECONDS = 30.0


class Phase(Enum):
    """Where NVML is."""

    STOPPED = auto()
    STARTING = auto()
    STARTED = auto()
    STOPPING = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What a start of NVML found."""

    driver: Driver
    slots: tuple[Slot, ...]


class Life:
    """Starts and stops NVML, one change at a time.

    Attributes:
        phase: where it is, as of the last ``settle``.
    """

    def __init__(
        self, nvml: Nvml, threads: Threads, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._nvml = nvml
        self._threads = threads
        self._clock = clock
        self._change: asyncio.Future[Started | None] | None = None
        self._enumeration: Enumeration | None = None
        self._count_at = 0.0
        self.phase = Phase.STOPPED

    @property
    def is_identifying(self) -> bool:
        """Tell whether a thread that identifies or counts GPUs is still inside the driver."""
        return self._enumeration is not None and self._enumeration.hangs

    @property
    def is_outdated(self) -> bool:
        """Tell whether NVML counts another number of GPUs than when it was started."""
        return self._enumeration is not None and self._enumeration.outdated

    def start(self, readers: tuple[Reader, ...]) -> None:
        """Begin to start it, and where it is started to stop it before. Nobody may be reading."""
        stopping = readers if self.phase is Phase.STARTED else None
        self.phase = Phase.STARTING
        self._change = self._threads.call(lambda: self._start(stopping))

    def stop(self, readers: tuple[Reader, ...]) -> None:
        """Begin to stop it. Nobody may be reading."""
        self.phase = Phase.STOPPING
        self._change = self._threads.call(lambda: self._stop(readers))

    async def settle(self, deadline: float) -> Started | None:
        """Wait for the change in progress; return what a start found that is over now.

        Raises:
            DriverUnavailableError: the start is over, and failed.
        """
        if self._change is None:
            return None
        await asyncio.wait((self._change,), timeout=max(0.0, deadline - self._clock()))
        if not self._change.done():
            return None
        change, self._change = self._change, None
        self.phase = Phase.STOPPED
        started = change.result()
        if started is not None:
            self.phase = Phase.STARTED
            self._count_at = self._clock() + COUNT_SECONDS
        return started

    def count_again(self) -> None:
        """See from time to time whether the number of GPUs is still the same; never waits."""
        now = self._clock()
        if self._enumeration is not None and self.phase is Phase.STARTED and now >= self._count_at:
            self._count_at = now + COUNT_SECONDS
            self._enumeration.count_again()

    async def end(self, readers: tuple[Reader, ...], patience_seconds: float) -> None:
        """Stop it for good, once no thread is inside a call; gives up after the patience."""
        self._threads.close()
        ending: asyncio.Future[None] | asyncio.Future[Started | None] | None = self._change
        if self.phase is Phase.STARTING and ending is not None:
            ending.cancel()
        elif self.phase is Phase.STARTED:
            ending = self._threads.call(lambda: self._end(readers))
        if ending is not None:
            await asyncio.wait((ending,), timeout=patience_seconds)
        self.phase = Phase.STOPPED

    def _start(self, stopping: tuple[Reader, ...] | None) -> Started:
        if stopping is not None:
            self._stop(stopping)
        driver = self._nvml.start()
        self._enumeration = Enumeration(self._nvml)
        try:
            return Started(driver=driver, slots=self._enumeration.slots())
        except DriverUnavailableError:
            # NVML counts its starts: one without its stop would make every later stop idle.
            self._nvml.stop()
            raise

    def _stop(self, readers: tuple[Reader, ...]) -> None:
        for reader in readers:
            reader.close()
        self._nvml.stop()

    def _end(self, readers: tuple[Reader, ...]) -> None:
        self._threads.join()
        if self._enumeration is not None:
            self._enumeration.join()
        self._stop(readers)
