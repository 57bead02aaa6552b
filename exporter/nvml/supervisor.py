"""Keeps NVML alive: start, restart after a pause, release on request, one pass per tick.

Runs on the event loop and never blocks it: whatever may block in the driver runs on another
thread. NVML is stopped only while no GPU is being read, since that would pull the driver out from
under a thread inside a call; while one hangs, the current state stays, and the GPU shows as down.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable

from exporter.nvml.life import Life, Phase, Started
from exporter.nvml.listener import Listener
from exporter.nvml.plan import Plan
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
from exporter.release import MIG_PENDING, Release
from slicewatch.service import logs
from slicewatch.service.threads import Threads, tell

# A pass that takes longer counts as hung: a restart does not wait for it, and it is logged.
HANG_SECONDS = 2.0
# How long whoever asks for a release waits for calls in progress; one that takes longer hangs.
RELEASE_PATIENCE_SECONDS = 5.0
# How long a process that is stopping waits for an orderly shutdown of the driver.
CLOSE_SECONDS = 1.0

STARTING = "starting"
RELEASED = "released"

log = logs.logger(__name__)


def _nobody(_: str) -> None:
    """Nothing holds what was read last."""


class Supervisor:
    """The driver of this node and the readers of its GPUs.

    Args:
        begin: called on the loop with what a start found.
        end: called on the loop with the reason when NVML cannot be started.
        hold: called on the loop with the reason when NVML was stopped on request: what was read
            last stays until the next ``begin`` or ``end``.
        release: when NVML is to be stopped on request.
        listener: listens to events of the GPUs while NVML is started.
    """

    def __init__(
        self,
        nvml: Nvml,
        plan: Plan,
        *,
        begin: Callable[[Driver, tuple[Slot, ...]], None],
        end: Callable[[str], None],
        hold: Callable[[str], None] = _nobody,
        release: Release | None = None,
        listener: Listener | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nvml = nvml
        self._plan = plan
        self._begin = begin
        self._end = end
        self._hold = hold
        self._release = release or Release(clock=clock)
        self._listener = listener
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._threads = Threads()
        self._life = Life(nvml, self._threads, clock)
        self._relay = self._new_relay()
        self._readers: tuple[Reader, ...] = ()
        self._restarts = Restarts(clock())
        self._complete = False
        self._fault = STARTING
        self._hanging: set[Reader] = set()

    @property
    def down_reason(self) -> str:
        """Return why there is no driver, in one word for a label; empty while there is one."""
        if self._release.granted or self._life.phase is Phase.STOPPING:
            return RELEASED
        return STARTING if self._life.phase is Phase.STARTING and not self._fault else self._fault

    def calls(self) -> dict[str, tuple[str, float]]:
        """Return which call each GPU is in that is being read, and for how many seconds; by uuid."""
        running = self._relay.running()
        return {r.gpu.uuid: (r.call, r.call_seconds) for r in running if r.call}

    def follow(self, plan: Plan) -> None:
        """Read by another plan from the next pass of each GPU on."""
        self._plan = plan
        for reader in self._readers:
            reader.plan = plan

    async def pass_all(self, patience_seconds: float) -> tuple[Cycle, ...]:
        """Let every GPU that rests be read once; return what came in.

        Returns at the latest after the patience: one that is still being read then hands its
        pass to a later call, and a start of NVML that takes longer is left to go on.
        """
        deadline = self._clock() + patience_seconds
        late = self._relay.take()
        if await self._steer(deadline):
            done = asyncio.Event()
            if self._relay.start(lambda: tell(self._loop, done.set)):
                await self._finish(done, deadline)
        cycles = late + self._relay.take()
        self._judge(cycles)
        self._say_who_hangs()
        return cycles

    async def close(self) -> None:
        """Stop reading, and NVML unless a thread is still inside a call."""
        self._relay.halt()
        readers, self._readers = self._readers, ()
        listener = self._listener
        if listener is not None and not listener.stop():
            await asyncio.wait((self._threads.call(listener.join),), timeout=CLOSE_SECONDS)
        if self._stop_listening():
            await self._life.end(readers, CLOSE_SECONDS)

    async def _finish(self, done: asyncio.Event, deadline: float) -> None:
        while (left := deadline - self._clock()) > 0 and not done.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, PATIENCE_SECONDS)):
                    await done.wait()
            self._relay.overtake()

    async def _steer(self, deadline: float) -> bool:
        """Begin the stop or start that is due, and take what is over; tell if turns may be given.

        While one is due no turns are given, so that all come to rest; but where one hangs, the
        others go on.
        """
        await self._settle(deadline)
        if self._release.is_wanted():
            return await self._let_go(deadline)
        self._life.count_again()
        if self._is_start_due():
            listens = not self._stop_listening()
            if not self._relay.halt():
                return max(self._relay.running().values(), default=0.0) > HANG_SECONDS
            if listens or self._life.is_identifying:
                return True
            self._begin_start()
            await self._settle(deadline)
        self._listen()
        return True

    def _listen(self) -> None:
        if self._listener is not None and self._life.phase is Phase.STARTED:
            self._listener.begin(tuple(reader.gpu for reader in self._readers))

    def _stop_listening(self) -> bool:
        """Tell whether nobody waits for events; who does is told to stop."""
        return self._listener is None or self._listener.stop()

    def _is_start_due(self) -> bool:
        if self._life.phase in {Phase.STARTING, Phase.STOPPING}:
            return False
        return self._release.granted or self._restarts.is_due(self._clock())

    async def _let_go(self, deadline: float) -> bool:
        """Stop NVML, as somebody asks for; tell whether turns may be given."""
        listens = not self._stop_listening()
        at_rest = self._relay.halt() and not self._life.is_identifying and not listens
        if self._life.phase is Phase.STARTED and at_rest:
            self._life.stop(self._dismiss())
            await self._settle(deadline)
        if self._life.phase is Phase.STOPPED:
            self._take_stop()
        elif self._waited_seconds() > RELEASE_PATIENCE_SECONDS:
            why = self._what_holds()
            log.warning("NVML not released", reason=self._release.reason, why=why)
            self._release.refuse(why)
            return self._life.phase is Phase.STARTED
        return False

    def _waited_seconds(self) -> float:
        """Return for how long a release waits, or a call that is in its way was waited for before.

        Whoever asks again and again while a GPU hangs would keep the others from being read.
        """
        return max((self._release.seconds_open, *self._relay.running().values()))

    def _take_stop(self) -> None:
        if not self._release.granted:
            reason, left = self._release.reason, self._release.seconds_left
            log.info("NVML released", reason=reason, seconds=round(left, 1))
            self._release.grant()
            self._hold(reason)

    def _what_holds(self) -> str:
        if self._life.phase is not Phase.STARTED:
            return f"NVML is still {self._life.phase.name.lower()}"
        calls = (f"GPU {r.gpu.gpu} in {r.call or 'a call'}" for r in self._relay.running())
        return f"calls have not returned: {', '.join(calls) or 'identification of a GPU, or the wait for events'}"

    def _begin_start(self) -> None:
        if self._release.granted:
            log.info("NVML is started again after its release")
        self._release.granted = False
        self._restarts.begun()
        self._life.start(self._dismiss())

    def _dismiss(self) -> tuple[Reader, ...]:
        """Return the readers, which get no further turns; they must all rest."""
        readers, self._readers = self._readers, ()
        self._complete = False
        # Each start has a relay of its own: its passes are not taken for those of another.
        self._relay = self._new_relay()
        return readers

    def _new_relay(self) -> Relay[Reader]:
        relay: Relay[Reader] = Relay(
            lambda reader: self._threads.run(lambda: relay.carry(reader)), self._clock
        )
        return relay

    async def _settle(self, deadline: float) -> None:
        """Take a start or a stop that is over, waiting for it until the deadline."""
        was = self._life.phase
        try:
            started = await self._life.settle(deadline)
        except DriverUnavailableError as error:
            self._restarts.driver_gone(self._clock())
            if self._fault != error.reason:
                log.warning("driver unavailable", reason=error.reason, error=str(error))
            self._fault = error.reason
            self._end(error.reason)
            return
        if started is not None:
            self._take_start(started)
        elif was is Phase.STOPPING and self._life.phase is Phase.STOPPED:
            self._take_stop()

    def _take_start(self, started: Started) -> None:
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
        all_answer = answers == len(self._readers) > 0
        self._look_for_mig_change(cycles, all_answer=all_answer)
        if answers < len(found) or self._life.is_outdated:
            self._restarts.gpu_missing(self._clock())
        elif self._complete and all_answer:
            self._restarts.all_answer()

    def _look_for_mig_change(self, cycles: tuple[Cycle, ...], *, all_answer: bool) -> None:
        if any(cycle.mig_change_pending for cycle in cycles):
            self._release.trigger(MIG_PENDING)
        elif all_answer:
            self._release.withdraw(MIG_PENDING)

    def _say_who_hangs(self) -> None:
        running = self._relay.running()
        hanging = {reader for reader, seconds in running.items() if seconds > HANG_SECONDS}
        for reader in hanging - self._hanging:
            gpu = reader.gpu
            log.warning("GPU hangs", gpu=gpu.gpu, uuid=gpu.uuid, call=reader.call)
        for reader in self._hanging - hanging:
            log.info("GPU recovered from hang", gpu=reader.gpu.gpu, uuid=reader.gpu.uuid)
        self._hanging = hanging
