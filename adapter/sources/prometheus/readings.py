"""Results of queries, shared by everyone who asks the same within a few seconds.

However many autoscalers ask, a query is under way once. Its result is used again for a short
time, and somewhat longer while the next one is late; how old its samples may be is up to whoever
serves them.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from adapter.sources.prometheus.backend import Backend
from adapter.sources.prometheus.backends import Backends
from adapter.sources.prometheus.fault import BackendError, FaultClass
from adapter.sources.prometheus.query_result import Result
from slicewatch.catalog.own import BACKEND_FAULTS, BACKEND_SECONDS
from slicewatch.service import logs
from slicewatch.service.own_metrics import OwnMetrics

log = logs.logger(__name__)

# An autoscaler asks every 15 s: this makes one query of all that ask in the same sweep.
FRESH_SECONDS: Final = 5.0
# A backend that is slower than this is waited for only by those who have nothing older.
PATIENCE_SECONDS: Final = 1.0
MOST_KEPT: Final = 2048

T = TypeVar("T")
Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What a backend is asked.

    Attributes:
        text: makes the values.
        times: makes, with the same labels, the time of the oldest sample in each of them; empty
            if that cannot be asked for.
    """

    backend: str
    text: str
    times: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What came back.

    Attributes:
        asked_at: when the query was sent, on the monotonic clock.
        evaluated_at: the time that it was about, in seconds since the epoch.
        times: time of the oldest sample by the labels of the value, in seconds since the epoch;
            None if it was not asked for, or the backend could not tell.
        times_fault: why it could not tell.
    """

    query: Query
    asked_at: float
    evaluated_at: float
    duration_seconds: float
    result: Result
    times: Mapping[Labels, float] | None = None
    times_fault: str = ""

    def read_at(self, labels: Mapping[str, str]) -> float | None:
        """Return when the oldest sample in a value was taken; None if that is unknown."""
        return None if self.times is None else self.times.get(frozenset(labels.items()))


class Readings:
    """Asks backends, and remembers what they said.

    Args:
        metrics: where the time that requests take, and their faults, are noted.
        monotonic, wall: clocks.

    Attributes:
        running: set once queries can be asked.
    """

    def __init__(
        self,
        backends: Backends,
        metrics: OwnMetrics,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._backends = backends
        self._seconds = metrics.histogram(BACKEND_SECONDS)
        self._faults = metrics.counter(BACKEND_FAULTS)
        self.monotonic, self.wall = monotonic, wall
        self._kept: dict[Query, Reading] = {}
        self._late: dict[Query, tuple[float, BackendError]] = {}
        self._asking: dict[Query, asyncio.Task[Reading | BackendError]] = {}
        self._group: asyncio.TaskGroup | None = None
        self.running = asyncio.Event()

    async def run(self) -> None:
        """Let queries be under way until cancelled; without this, nothing is answered."""
        async with asyncio.TaskGroup() as self._group:
            self.running.set()
            await asyncio.Event().wait()

    def is_current(self, reading: Reading) -> bool:
        """Tell whether the same question would get this reading still."""
        return self._kept.get(reading.query) is reading and self._is_fresh(reading)

    async def get(self, query: Query, usable_seconds: float) -> Reading:
        """Return a reading that is fresh, or at most ``usable_seconds`` old if the next is late.

        Raises:
            BackendError: the backend has none.
        """
        kept = self._kept.get(query)
        if kept is not None and self._is_fresh(kept):
            return kept
        self._check_late(query)
        asking = self._asking.get(query) or self._ask(query)
        usable = kept is not None and self.monotonic() - kept.asked_at < usable_seconds
        done, _ = await asyncio.wait({asking}, timeout=PATIENCE_SECONDS if usable else None)
        if not done and kept is not None:
            return kept
        outcome = asking.result()
        if isinstance(outcome, BackendError):
            raise _again(outcome)
        return outcome

    def _check_late(self, query: Query) -> None:
        """Let nobody wait once more for what has just timed out: autoscalers take turns."""
        late = self._late.get(query)
        if late is not None and self.monotonic() - late[0] < FRESH_SECONDS:
            raise _again(late[1])

    def _is_fresh(self, reading: Reading) -> bool:
        return self.monotonic() - reading.asked_at < FRESH_SECONDS

    def _ask(self, query: Query) -> "asyncio.Task[Reading | BackendError]":
        """Begin a query that goes on even if whoever asked first goes away."""
        if self._group is None:
            raise BackendError(query.backend, FaultClass.FAILED, "the adapter has just started")
        task = self._group.create_task(self._read(query), name=f"query {query.backend}")
        self._asking[query] = task
        task.add_done_callback(lambda done: self._done(query, done))
        return task

    async def _read(self, query: Query) -> Reading | BackendError:
        """Return what a backend says; a fault is handed to all who wait, and to nobody else."""
        asked_at, evaluated_at = self.monotonic(), self.wall()
        started = time.perf_counter()
        try:
            backend = self._backends.get(query.backend)
            result, (times, fault) = await asyncio.gather(
                backend.query(query.text, evaluated_at), self._times(backend, query, evaluated_at)
            )
        except BackendError as error:
            self._faults.labels(query.backend, error.fault.name.lower()).inc()
            return error
        except Exception as error:
            log.exception("query failed", backend=query.backend, query=query.text)
            return BackendError(query.backend, FaultClass.FAILED, f"here: {type(error).__name__}")
        finally:
            duration = time.perf_counter() - started
            self._seconds.labels(query.backend).observe(duration)
        return Reading(
            query=query,
            asked_at=asked_at,
            evaluated_at=evaluated_at,
            duration_seconds=duration,
            result=result,
            times=times,
            times_fault=fault,
        )

    async def _times(
        self, backend: Backend, query: Query, at: float
    ) -> tuple[Mapping[Labels, float] | None, str]:
        """Return the times of samples. A backend that cannot tell them still has values."""
        if not query.times:
            return None, "the query is not of a form whose samples can be dated"
        try:
            result = await backend.query(query.times, at)
        except BackendError as error:
            if not error.fault.of_the_query:
                raise
            return None, str(error)
        # What is no time is unknown: nothing of it can be compared.
        dated = (s for s in result.samples if math.isfinite(s.value))
        return {frozenset(s.labels.items()): s.value for s in dated}, ""

    def _done(self, query: Query, task: "asyncio.Task[Reading | BackendError]") -> None:
        del self._asking[query]
        outcome = None if task.cancelled() else task.result()
        self._late.pop(query, None)
        if isinstance(outcome, Reading):
            _put(self._kept, query, outcome)
        elif outcome is not None and outcome.fault is FaultClass.TIMEOUT:
            _put(self._late, query, (self.monotonic(), outcome))


def _again(error: BackendError) -> BackendError:
    """Return the same error for one more who waits, without the trace of the others."""
    return BackendError(error.backend, error.fault, error.detail)


def _put(kept: dict[Query, T], query: Query, what: T) -> None:
    """Keep it last, so that what nobody asks for any more is the first to go."""
    kept.pop(query, None)
    kept[query] = what
    while len(kept) > MOST_KEPT:
        del kept[next(iter(kept))]
