"""Keeps NVML alive: start, restart after a pause, one pass over all GPUs per tick.

Runs on the event loop and never blocks it: whatever may block in the driver runs on another
thread. NVML is restarted only while no GPU is being read, since that would pull the driver out from under
a thread inside a call; while one hangs, the current state stays, and the GPU shows as down.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from exporter.measure.plan import Plan
from exporter.nvml.enumeration import Enumeration
from exporter.nvml.protocol import (
    Driver,
    DriverUnavailableError,
    Failed,
    Nvml,
    Slot,
    Value,
)
from exporter.nvml.reader import Cycle, Reader
from exporter.nvml.relay import PATIENCE_SECONDS, Relay
from exporter.nvml.restarts import Restarts
from exporter.nvml.threads import Threads
from slicewatch.service import logs

T = TypeVar("T")

# A pass that takes longer counts as hung: a restart does not wait for it, and it is logged.
HANG_SECONDS = 2.0
# How long a process that is stopping waits for an orderly shutdown of the driver.
CLOSE_SECONDS = 1.0

STARTING = "starting"

log = logs.logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What a start of NVML found."""

    driver: Driver
    slots: tuple[Slot, ...]


class Supervisor:
    """The driver of this node and the readers of its GPUs.

    Args:
        begin: called on the loop with what a start found.
        end: called on the loop with the reason when NVML cannot be started.
    """

    def __init__(
        self,
        nvml: Nvml,
        plan: Plan,
        *,
        begin: Callable[[Driver, tuple[Slot, ...]], None],
        end: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nvml = nvml
        self._plan = plan
        self._begin = begin
        self._end = end
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._threads = Threads()
        self._relay = self._new_relay()
        self._readers: tuple[Reader, ...] = ()
        self._restarts = Restarts(clock())
        self._starting: asyncio.Future[Started] | None = None
        self._enumeration: Enumeration | None = None
        self._started = False
        self._complete = False
        self._fault = STARTING
        self._hanging: set[Reader] = set()

    @property
    def down_reason(self) -> str:
        """Return why there is no driver, in one word for a label; empty while there is one."""
        return STARTING if self._starting is not None and not self._fault else self._fault

    @property
    def readers(self) -> tuple[Reader, ...]:
        """Return the readers of the present start."""
        return self._readers

    async def pass_all(self, patience_seconds: float) -> tuple[Cycle, ...]:
        """Let every GPU that rests be read once; return what came in.

        Returns at the latest after the patience: one that is still being read then hands its
        pass to a later call, and a start of NVML that takes longer is left to go on.
        """
        deadline = self._clock() + patience_seconds
        late = self._relay.take()
        if await self._steer(deadline):
            done = asyncio.Event()
            if self._relay.start(lambda: self._on_loop(done.set)):
                await self._finish(done, deadline)
        cycles = late + self._relay.take()
        self._judge(cycles)
        self._say_who_hangs()
        return cycles

    async def close(self) -> None:
        """Stop reading, and NVML unless a thread is still inside a call."""
        self._relay.halt()
        self._threads.close()
        readers, self._readers = self._readers, ()
        if self._starting is not None:
            self._starting.cancel()
        elif self._started:
            stopping = self._in_thread(lambda: self._end_in_order(readers))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await stopping
        self._started = False

    async def _finish(self, done: asyncio.Event, deadline: float) -> None:
        while (left := deadline - self._clock()) > 0 and not done.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, PATIENCE_SECONDS)):
                    await done.wait()
            self._relay.overtake()

    async def _steer(self, deadline: float) -> bool:
        """Begin a start that is due, and take one that is over; tell whether turns may be given.

        While a start is due no turns are given, so that all come to rest; but where one
        hangs, the others go on.
        """
        if self._starting is None and self._restarts.is_due(self._clock()):
            if not self._relay.halt():
                return max(self._relay.running().values(), default=0.0) > HANG_SECONDS
            if self._enumeration is not None and self._enumeration.hangs:
                return True
            self._begin_start()
        if self._starting is not None:
            left = max(0.0, deadline - self._clock())
            await asyncio.wait((self._starting,), timeout=left)
            if self._starting.done():
                self._take_start(self._starting)
        return True

    def _begin_start(self) -> None:
        readers, self._readers = self._readers, ()
        restart, self._started = self._started, False
        self._complete = False
        # Each start has a relay of its own: its passes are not taken for those of another.
        self._relay = self._new_relay()
        self._restarts.begun()
        self._starting = self._in_thread(lambda: self._start(readers, restart))

    def _new_relay(self) -> Relay[Reader]:
        relay: Relay[Reader] = Relay(
            lambda reader: self._threads.run(lambda: relay.carry(reader)), self._clock
        )
        return relay

    def _start(self, readers: tuple[Reader, ...], restart: bool) -> Started:
        if restart:
            self._shut_down(readers)
        driver = self._nvml.start()
        self._enumeration = Enumeration(self._nvml)
        try:
            return Started(driver=driver, slots=self._enumeration.slots())
        except DriverUnavailableError:
            # NVML counts its starts: one without its stop would make every later stop idle.
            self._nvml.stop()
            raise

    def _shut_down(self, readers: tuple[Reader, ...]) -> None:
        for reader in readers:
            reader.close()
        self._nvml.stop()

    def _end_in_order(self, readers: tuple[Reader, ...]) -> None:
        self._threads.join()
        self._shut_down(readers)

    def _take_start(self, starting: "asyncio.Future[Started]") -> None:
        self._starting = None
        try:
            started = starting.result()
        except DriverUnavailableError as error:
            self._restarts.driver_gone(self._clock())
            if self._fault != error.reason:
                log.warning("driver unavailable", reason=error.reason, error=str(error))
            self._fault = error.reason
            self._end(error.reason)
            return
        self._started = True
        if self._fault:
            log.info("driver started", driver=started.driver.driver, gpus=len(started.slots))
        self._fault = ""
        self._begin(started.driver, started.slots)
        self._employ(started.slots)

    def _employ(self, slots: tuple[Slot, ...]) -> None:
        gpus = [slot.gpu.value for slot in slots if isinstance(slot.gpu, Value)]
        self._readers = tuple(
            Reader(gpu, self._nvml.open, self._plan, self._clock) for gpu in gpus
        )
        self._relay.join(self._readers)
        self._hanging.clear()
        # Without any GPU there may be one later: devices appear after the driver.
        self._complete = 0 < len(gpus) == len(slots)
        if any(isinstance(slot.gpu, Failed) and slot.gpu.reinitialise for slot in slots):
            self._restarts.driver_gone(self._clock())
        elif not self._complete:
            self._restarts.gpu_missing(self._clock())

    def _judge(self, cycles: tuple[Cycle, ...]) -> None:
        """Plan a new start where the passes say that it may help, or call it off again."""
        found = [cycle.devices for cycle in cycles]
        answers = sum(isinstance(outcome, Value) for outcome in found)
        if any(isinstance(outcome, Failed) and outcome.reinitialise for outcome in found):
            self._restarts.driver_gone(self._clock())
            return
        if answers:
            self._restarts.driver_works()
        if answers < len(found):
            self._restarts.gpu_missing(self._clock())
        elif self._complete and answers == len(self._readers) > 0:
            self._restarts.all_answer()

    def _say_who_hangs(self) -> None:
        running = self._relay.running()
        hanging = {reader for reader, seconds in running.items() if seconds > HANG_SECONDS}
        for reader in hanging - self._hanging:
            gpu = reader.gpu
            log.warning("GPU hangs", gpu=gpu.gpu, uuid=gpu.uuid, call=reader.call)
        for reader in self._hanging - hanging:
            log.info("GPU recovered from hang", gpu=reader.gpu.gpu, uuid=reader.gpu.uuid)
        self._hanging = hanging

    def _on_loop(self, callback: Callable[[], object]) -> None:
        """Call on the loop, from any thread; once the loop is closed nobody waits any more."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)

    def _in_thread(self, function: Callable[[], T]) -> "asyncio.Future[T]":
        """Run a call that may never return on another thread."""
        future: asyncio.Future[T] = self._loop.create_future()

        def call() -> None:
            try:
                result = function()
            except Exception as error:  # noqa: BLE001 - handed to whoever awaits
                self._on_loop(partial(_settle, future.set_exception, error))
            else:
                self._on_loop(partial(_settle, future.set_result, result))

        self._threads.run(call)
        return future


def _settle(tell: Callable[[T], None], what: T) -> None:
    # Nobody awaits a future any more that was cancelled meanwhile.
    with contextlib.suppress(asyncio.InvalidStateError):
        tell(what)
