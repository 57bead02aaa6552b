"""One engine that several clients want at the same time: who ran, who waited, and for whom.

The ground truth for estimates of contention: a GPU that is time-sliced, with clients that work,
think and work again. It models the queue and nothing of what makes a slice slower: caches, memory
bandwidth and clocks are the same for everyone. Times are whole microseconds, so that what runs
and what idles add up exactly.
"""

import heapq
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Micros = npt.NDArray[np.int64]

SLICE_US = 2_000
NOBODY = -1

# 72 samples in 10 s, as the open part of the driver keeps them (595.45).
SAMPLES_PER_SECOND = 7.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A process that submits a job, waits until it is done, thinks and submits the next.

    Attributes:
        work_us: mean of the exponential engine time of a job.
        think_us: mean of the exponential pause after it; 0 for one that always has work.
    """

    work_us: float
    think_us: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """What happened on the engine, from 0 to the end.

    Attributes:
        clients: how many.
        begins, ends, runners: each stretch in which one client ran, in order. The first is an
            empty one of NOBODY, so that there is one at any time.
        submitted, done, owners: each job, from when it was ready to when it was finished.
    """

    clients: int
    begins: Micros
    ends: Micros
    runners: Micros
    submitted: Micros
    done: Micros
    owners: Micros

    def run_us(self, times: Sequence[int] | Micros) -> Micros:
        """Return how long each client has run until each time: [client, time]."""
        at = np.asarray(times, dtype=np.int64)
        last = self._last(at)
        # Of the last stretch that has begun, a part may be still to come.
        ahead = np.maximum(self.ends[last] - at, 0)
        lengths = self.ends - self.begins
        run = np.empty((self.clients, len(at)), dtype=np.int64)
        for client in range(self.clients):
            own = self.runners == client
            run[client] = np.cumsum(own * lengths)[last] - own[last] * ahead
        return run

    def wait_us(self, begin: int, end: int) -> Micros:
        """Return how long each client had work while each other one ran: [waiting, running]."""
        ready = np.clip([self.submitted, self.done], begin, end)
        meanwhile = self.run_us(ready[1]) - self.run_us(ready[0])
        waits = np.zeros((self.clients, self.clients), dtype=np.int64)
        np.add.at(waits, self.owners, meanwhile.T)
        np.fill_diagonal(waits, 0)
        return waits

    def runners_at(self, times: Sequence[int] | Micros) -> Micros:
        """Return who ran at each time, or NOBODY."""
        at = np.asarray(times, dtype=np.int64)
        last = self._last(at)
        return np.where(at < self.ends[last], self.runners[last], NOBODY)

    def last_runners(self, times: Sequence[int] | Micros) -> Micros:
        """Return who ran at each time or, if the engine was idle then, last before it."""
        return self.runners[self._last(np.asarray(times, dtype=np.int64))]

    def _last(self, at: Micros) -> Micros:
        """Return the last stretch that has begun by each time."""
        return np.searchsorted(self.begins, at, side="right") - 1


def simulate(clients: Sequence[Client], *, seconds: float, seed: int) -> History:
    """Let clients share an engine in turns of a slice each; the same seed, the same history."""
    chance = random.Random(seed)  # noqa: S311 - a simulation, not a secret
    engine = _Engine(clients=clients, end_us=round(seconds * 1e6), chance=chance)
    engine.run()
    return engine.history()


@dataclass(kw_only=True)
class _Engine:
    """The engine while it runs.

    Attributes:
        thinking: (when it submits, client), a heap.
        ready: clients with work, in the order of their turns.
        submitted_us, left_us: of each client's job: when it came, how much of it is left.
        runs, jobs: what ``History`` has, as (from, to, client).
    """

    clients: Sequence[Client]
    end_us: int
    chance: random.Random
    now_us: int = 0
    thinking: list[tuple[int, int]] = field(default_factory=list)
    ready: deque[int] = field(default_factory=deque)
    submitted_us: list[int] = field(init=False)
    left_us: list[int] = field(init=False)
    runs: list[tuple[int, int, int]] = field(default_factory=lambda: [(0, 0, NOBODY)])
    jobs: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.submitted_us = [0] * len(self.clients)
        self.left_us = [0] * len(self.clients)

    def run(self) -> None:
        """Go on until the end."""
        for client in range(len(self.clients)):
            self._think(client)
        while self.now_us < self.end_us and (self.ready or self.thinking):
            if self.ready:
                self._turn(self.ready.popleft())
            else:
                self.now_us = self.thinking[0][0]
                self._wake()
        self.jobs += [(self.submitted_us[client], self.end_us, client) for client in self.ready]

    def history(self) -> History:
        """Return what happened before the end."""
        # The last turn may have gone on behind the end, and jobs may have come meanwhile.
        runs = np.array(self.runs, dtype=np.int64).reshape(-1, 3)
        jobs = np.array(self.jobs, dtype=np.int64).reshape(-1, 3)
        runs[:, :2] = np.minimum(runs[:, :2], self.end_us)
        jobs[:, :2] = np.minimum(jobs[:, :2], self.end_us)
        return History(
            clients=len(self.clients),
            begins=runs[:, 0], ends=runs[:, 1], runners=runs[:, 2],
            submitted=jobs[:, 0], done=jobs[:, 1], owners=jobs[:, 2],
        )  # fmt: skip

    def _think(self, client: int) -> None:
        pause_us = self._draw(self.clients[client].think_us)
        heapq.heappush(self.thinking, (self.now_us + pause_us, client))

    def _wake(self) -> None:
        """Let those submit whose pause is over."""
        while self.thinking and self.thinking[0][0] <= self.now_us:
            at, client = heapq.heappop(self.thinking)
            self.submitted_us[client] = at
            self.left_us[client] = max(1, self._draw(self.clients[client].work_us))
            self.ready.append(client)

    def _turn(self, client: int) -> None:
        begin = self.now_us
        self.now_us += self._turn_us(client)
        self.left_us[client] -= self.now_us - begin
        self.runs.append((begin, self.now_us, client))
        is_done = not self.left_us[client]
        if is_done:
            self.jobs.append((self.submitted_us[client], self.now_us, client))
            self._think(client)
        # Who came during the turn stands before the one whose turn it was.
        self._wake()
        if not is_done:
            self.ready.append(client)

    def _turn_us(self, client: int) -> int:
        """Return how long a client runs: alone, slice after slice until somebody comes."""
        left_us = self.left_us[client]
        if self.ready or left_us <= SLICE_US:
            return min(left_us, SLICE_US)
        if not self.thinking:
            return left_us
        undisturbed = (self.thinking[0][0] - self.now_us) // SLICE_US
        return min(left_us, (undisturbed + 1) * SLICE_US)

    def _draw(self, mean_us: float) -> int:
        return round(self.chance.expovariate(1 / mean_us)) if mean_us else 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """What a driver notes of an engine: one sample per period, with one winner each.

    Attributes:
        clients: how many there are.
        period_us: length of a period.
        busy_us: how much of each period the engine was busy, whoever ran.
        winners: the client that gets the whole of it: the one that ran when the period ended, or
            last before that; NOBODY while none has ever run.
    """

    clients: int
    period_us: int
    busy_us: Micros
    winners: Micros

    def percents(self, first: int, end: int) -> Micros:
        """Return the busy percent of each client over the samples from first to before end.

        Cut off to whole percents, as NVML gives them.
        """
        winners, busy_us = self.winners[first:end], self.busy_us[first:end]
        somebody = winners != NOBODY
        sums = np.bincount(winners[somebody], busy_us[somebody], minlength=self.clients)
        return np.floor(100 * sums / (len(winners) * self.period_us)).astype(np.int64)


def sample(
    history: History, *, begin_us: int, end_us: int, per_second: float = SAMPLES_PER_SECOND
) -> Samples:
    """Sample a history the way that the driver of NVIDIA does it."""
    period_us = round(1e6 / per_second)
    times = np.arange(begin_us, end_us + 1, period_us)
    return Samples(
        clients=history.clients,
        period_us=period_us,
        busy_us=np.diff(history.run_us(times).sum(axis=0)),
        winners=history.last_runners(times[1:]),
    )
