"""A fleet through weeks, in minutes: node by node, each polled only while something can change.

One process has one cluster with its own API server and budget. What is counted of writes in time
that is left out is the heartbeat, by the time that lies between two of them where none is.
"""

import asyncio
import heapq
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from health.actions.conditions import HEARTBEAT_SECONDS
from health.settings import HealthSettings
from slicewatch.service import logs
from testbed.health_fleet import schedule
from testbed.health_fleet.ailments import BY_NAME, Ailment
from testbed.health_fleet.clusters import POLL_SECONDS, Cluster
from testbed.health_fleet.life import Found, Life
from testbed.health_fleet.machine import DAY_SECONDS

GPUS: Final = 8
# A heartbeat is written by the first poll that finds it due, which is never sooner than after
# ``HEARTBEAT_SECONDS`` and some: the next poll after that.
SECONDS_BETWEEN_HEARTBEATS: Final = HEARTBEAT_SECONDS + POLL_SECONDS
HOUR_SECONDS: Final = 3600.0
# Objects of the API server that nobody asks for again are dropped so often, in polls.
COMPACT_POLLS: Final = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be lived through.

    Attributes:
        faults: whether there are any, beside the noise.
        skips: whether time in which nothing can change is left out.
    """

    nodes: int
    days: float
    seed: str = "fleet"
    faults: bool = False
    skips: bool = True


@dataclass(kw_only=True)
class Outcome:
    """What came of it, of one cluster or of several.

    Attributes:
        cordons: of all kinds; ``unfounded`` those without a fault that warrants one, in words.
        left: nodes that are out of service at the end without a fault.
        writes: by kind, those of the polls that were made.
        flips: how often each condition changed its status.
    """

    nodes: int = 0
    days: float = 0.0
    polls: int = 0
    skipped_seconds: float = 0.0
    seconds: float = 0.0
    cordons: int = 0
    uncordons: int = 0
    unfounded: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    writes: Counter[str] = field(default_factory=Counter)
    flips: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Outcome") -> None:
        """Take the outcome of another cluster of the same plan in."""
        self.days = other.days
        self.seconds = max(self.seconds, other.seconds)
        self.nodes += other.nodes
        self.polls += other.polls
        self.skipped_seconds += other.skipped_seconds
        self.cordons += other.cordons
        self.uncordons += other.uncordons
        self.unfounded += other.unfounded
        self.left += other.left
        self.found += other.found
        self.writes += other.writes
        self.flips += other.flips

    @property
    def missed(self) -> list[Found]:
        """Return the faults that were not found in time."""
        return [one for one in self.found if one.seconds is None]

    @property
    def node_hours(self) -> float:
        """Return the time that all nodes lived through."""
        return self.nodes * self.days * DAY_SECONDS / HOUR_SECONDS

    def writes_per_hour(self) -> float:
        """Return how often a monitor writes in an hour, heartbeats that were left out included."""
        left_out = self.skipped_seconds / SECONDS_BETWEEN_HEARTBEATS
        return (self.writes.total() + left_out) / self.node_hours

    def flips_per_hour(self) -> float:
        """Return how often a condition of a node changes its status in an hour."""
        return self.flips.total() / self.node_hours

    def by_fault(self) -> dict[Ailment, list[float]]:
        """Return how long it took to find each kind of fault, of those that were found."""
        times: dict[Ailment, list[float]] = {}
        for one in self.found:
            times.setdefault(BY_NAME[one.fault], [])
            if one.seconds is not None:
                times[BY_NAME[one.fault]].append(one.seconds)
        return times

    def harms(self) -> list[str]:
        """Return what should not have been, in sentences."""
        found = [f"cordoned without a fault that warrants it: {one}" for one in self.unfounded]
        found += [f"still out of service without a fault: {one}" for one in self.left]
        found += [f"not found: {one.fault} on {one.node}" for one in self.missed]
        return found


def alone(plan: Plan, first: int) -> Outcome:
    """Let a cluster live in a process of its own; see ``run``."""
    logs.configure("error")
    return asyncio.run(run(plan, first))


async def run(plan: Plan, first: int = 0) -> Outcome:
    """Let a cluster live; return what came of it.

    Args:
        plan: of the cluster.
        first: number of its first node, so that clusters of one fleet differ.

    Raises:
        HarmError: a monitor did what no monitor may ever do.
    """
    began = time.process_time()
    cluster = Cluster(plan.nodes, GPUS, HealthSettings(node_name="filled-in"))
    await cluster.set_up()
    end = plan.days * DAY_SECONDS
    lives = [_life(cluster, plan, number, first + number) for number in range(plan.nodes)]
    queue = [(life.next_at, number) for number, life in enumerate(lives)]
    heapq.heapify(queue)
    writes: Counter[str] = Counter()
    polls = 0
    while queue and queue[0][0] < end:
        _, number = heapq.heappop(queue)
        writes += (await lives[number].poll()).writes
        heapq.heappush(queue, (lives[number].next_at, number))
        polls += 1
        if polls % COMPACT_POLLS == 0:
            cluster.kube.compact()
    outcome = _outcome(cluster, plan, lives, time.process_time() - began)
    outcome.writes = writes
    return outcome


def _life(cluster: Cluster, plan: Plan, number: int, name: int) -> Life:
    happenings = schedule.of_node(plan.seed, name, plan.days, GPUS, faults=plan.faults)
    return Life(
        cluster, number, happenings, phase=POLL_SECONDS * number / plan.nodes, skips=plan.skips
    )


def _outcome(cluster: Cluster, plan: Plan, lives: Sequence[Life], seconds: float) -> Outcome:
    for life in lives:
        life.end(plan.days * DAY_SECONDS)
    ill = {machine.name for machine in cluster.machines if machine.faults()}
    return Outcome(
        nodes=plan.nodes,
        days=plan.days,
        polls=sum(life.polls for life in lives),
        skipped_seconds=sum(life.skipped_seconds for life in lives),
        seconds=seconds,
        cordons=len(cluster.kube.cordons),
        uncordons=len(cluster.kube.uncordons),
        unfounded=[one for life in lives for one in life.unfounded],
        left=sorted(cluster.kube.out() - ill),
        found=[one for life in lives for one in life.found],
        flips=cluster.kube.flips,
    )


def lines(outcome: Outcome) -> Iterable[str]:
    """Yield the figures, a line each."""
    yield (
        f"{outcome.nodes:,} nodes of {GPUS} GPUs for {outcome.days:g} days: {outcome.polls:,} polls"
        f" made, {outcome.skipped_seconds / POLL_SECONDS:,.0f} left out; at most"
        f" {outcome.seconds:,.0f} s of CPU in a process"
    )
    yield (
        f"{outcome.cordons} cordons, {len(outcome.unfounded)} of them without a fault;"
        f" {outcome.uncordons} taken back, {len(outcome.left)} left over"
    )
    yield (
        f"writes per node and hour: {outcome.writes_per_hour():.2f}; changes of a condition:"
        f" {outcome.flips_per_hour():.4f} ({dict(sorted(outcome.flips.items()))})"
    )
    if outcome.found:
        yield f"faults: {len(outcome.found)}, missed: {len(outcome.missed)}"
    for fault, times in sorted(outcome.by_fault().items(), key=lambda one: one[0].name):
        p50 = f"{statistics.median(times):5.0f}" if times else "    -"
        longest = f"{max(times):5.0f}" if times else "    -"
        yield (
            f"  {fault.family:5} {fault.name:28} {fault.asks.name.lower():7} {len(times):4} found,"
            f" p50 {p50} s, max {longest} s"
        )
