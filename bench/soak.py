"""``python -m bench.soak``: a day of an exporter's life in minutes, to see what it keeps.

Thousands of pods come and go, GPUs are repartitioned, lost and hang, the driver is unloaded and
comes back. Whatever a process keeps of what is gone shows as growth. Time is that of a manual
clock, which moves when a tick is over; reads, threads, windows and pages are the product's own.
"""

import argparse
import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bench import host
from bench.report import number
from exporter.measure.attribution import Attribution
from exporter.measure.board import Board
from exporter.measure.event_counts import EventCounts
from exporter.nvml.event_log import EventLog
from exporter.nvml.plan import Plan
from exporter.nvml.simulated import SimulatedNvml
from exporter.nvml.supervisor import Supervisor
from exporter.publication import Publication
from exporter.tenants.protocol import Allocation
from exporter.tenants.simulated import SimulatedProcesses
from exporter.tenants.tenants import TenantMap
from exporter.ticker import Ticker
from simulator import soak
from simulator.fleet import Fleet
from slicewatch.catalog import CATALOG, own
from slicewatch.service import logs
from slicewatch.service.exposition import Format
from slicewatch.service.own_metrics import OwnMetrics

TICKS: Final = 100_000
TICK_SECONDS: Final = 1.0
WINDOW_SECONDS: Final = 15.0
CONTENTION_WINDOW_SECONDS: Final = 60.0
STALE_SECONDS: Final = 5.0
# As often as the kubelet is asked and as Prometheus comes.
KUBELET_TICKS: Final = 5
SCRAPE_TICKS: Final = 15
# A pod runs for half a minute on one of eleven places: so many ticks of all of them are one pod's.
TICKS_OF_A_POD: Final = 3
# Until everything was allocated that is allocated once, and every kind of fault has been there.
WARM_UP_SHARE: Final = 0.1
# Until a new exporter shows everything: all windows are full, all reads were due.
FRESH_TICKS: Final = 75
SAMPLES: Final = 20

# What an exporter may hold, beside one that was just started: some caches fill slowly.
MOST_HELD_RATIO: Final = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What the process holds at a tick.

    Attributes:
        resident_megabytes: of the kernel's count, simulator included.
        blocks: allocations that Python has not freed.
    """

    tick: int
    resident_megabytes: float
    blocks: int
    threads: int

    @classmethod
    def at(cls, tick: int) -> "Footprint":
        """Return what is held now, garbage not counted."""
        gc.collect()
        return cls(
            tick=tick,
            resident_megabytes=host.memory(os.getpid()).resident,
            blocks=sys.getallocatedblocks(),
            threads=threading.active_count(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an exporter came through.

    Attributes:
        footprints: from the end of the warm-up to the end, with all that the simulator remembers
            of the past, which grows: whatever happened in a fleet can be asked for.
        held_blocks: what was freed when the exporter ended, and ``held_blocks_anew`` when one did
            that was started shortly before the end of the same fleet.
        layouts: how many there were.
        most_series: of all scrapes.
        left_over: series at the end that an exporter started anew does not have.
        missing: the other way round.
        threads_left: that were not there before it started.
    """

    ticks: int
    pods: int
    seconds: float
    footprints: tuple[Footprint, ...]
    layouts: int
    most_series: int
    series: int
    left_over: frozenset[str]
    missing: frozenset[str]
    held_blocks: int
    held_blocks_anew: int
    threads_left: int

    def faults(self) -> list[str]:
        """Return what it kept that it should not, in sentences; empty if nothing."""
        found = []
        if self.held_blocks > self.held_blocks_anew * MOST_HELD_RATIO:
            found.append(
                f"it holds {self.held_blocks:,} blocks, one started anew {self.held_blocks_anew:,}"
            )
        for what, series in (("are left over", self.left_over), ("are missing", self.missing)):
            if series:
                found.append(f"{len(series)} series {what}, such as {min(series)}")
        if self.threads_left:
            found.append(f"{self.threads_left} threads are left")
        return found


class _Time:
    """The time of a fleet: a call that hangs takes real time, all else takes none."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._since = time.monotonic()

    def now(self) -> float:
        return self._fleet.now + time.monotonic() - self._since

    def advance(self) -> None:
        self._fleet.advance_to(max(self._fleet.now + TICK_SECONDS, self.now()))
        self._since = time.monotonic()


class Exporter:
    """An exporter without its ports: what ticks, and what is published."""

    def __init__(self, fleet: Fleet, clock: Callable[[], float]) -> None:
        node = fleet.nodes[0]
        self._fleet = fleet
        self._ticks = 0
        metrics = OwnMetrics(own.EXPORTER)
        self._tenants = TenantMap()
        rejected = metrics.counter(own.REJECTED)

        def reject(name: str) -> None:
            rejected.labels(name).inc()

        # Its own metrics are left out of the page: they count what has happened.
        self.publication = Publication(CATALOG.metrics, lambda _: b"", clock)
        board = Board(
            run="soak", node=node.name, labels={}, window_seconds=WINDOW_SECONDS,
            tick_seconds=TICK_SECONDS, stale_seconds=STALE_SECONDS, reject=reject,
        )  # fmt: skip
        self._supervisor = Supervisor(
            SimulatedNvml(node),
            Plan.of(CATALOG.metrics),
            begin=lambda driver, slots: board.begin(driver.driver, slots, clock()),
            end=board.end,
            clock=clock,
        )
        attribution = Attribution(
            SimulatedProcesses(node), window_seconds=CONTENTION_WINDOW_SECONDS,
            short_window_seconds=WINDOW_SECONDS, reject=reject,
        )  # fmt: skip
        self._ticker = Ticker(
            supervisor=self._supervisor, board=board, tenants=self._tenants,
            attribution=attribution, publication=self.publication, own_metrics=metrics,
            event_counts=EventCounts(EventLog(), lambda _: None),
            tick_seconds=TICK_SECONDS, clock=clock,
        )  # fmt: skip

    async def tick(self) -> None:
        """Run one tick, with the kubelet's answer where one is due."""
        if self._ticks % KUBELET_TICKS == 0:
            self._tenants.take(_allocations(self._fleet), self._fleet.now)
        self._ticks += 1
        await self._ticker.tick()

    def series(self) -> frozenset[str]:
        """Return the series of a scrape, without their values."""
        page = self.publication.exposition(Format.TEXT, compressed=False).decode()
        return frozenset(
            line.rpartition(" ")[0] for line in page.splitlines() if not line.startswith("#")
        )

    def layouts(self) -> int:
        """Return how many layouts there have been."""
        return 0 if self.publication.layout is None else self.publication.layout.number

    async def close(self) -> None:
        """Stop reading."""
        await self._supervisor.close()


async def run(ticks: int, say: Callable[[str], object] = lambda _: None) -> Outcome:
    """Let an exporter live through that many ticks, and compare it with itself and a new one.

    Args:
        ticks: of a second each.
        say: called with how far it is.
    """
    pods = ticks // TICKS_OF_A_POD
    fleet = Fleet(soak.scenario(pods=pods))
    clock, began, threads = _Time(fleet), time.monotonic(), threading.active_count()
    old = [Exporter(fleet, clock.now)]
    footprints, most = await _live(old[0], clock, ticks, say)
    new = [Exporter(fleet, clock.now)]
    for _ in range(FRESH_TICKS):
        await old[0].tick()
        await new[0].tick()
        clock.advance()
    series, others, layouts = old[0].series(), new[0].series(), old[0].layouts()
    return Outcome(
        ticks=ticks, pods=pods, seconds=time.monotonic() - began, footprints=footprints,
        layouts=layouts, most_series=most, series=len(series), left_over=series - others,
        missing=others - series, held_blocks=await _freed(old), held_blocks_anew=await _freed(new),
        threads_left=threading.active_count() - threads,
    )  # fmt: skip


async def _live(
    exporter: Exporter, clock: _Time, ticks: int, say: Callable[[str], object]
) -> tuple[tuple[Footprint, ...], int]:
    """Return what the process held, and the most series of a scrape."""
    footprints, most = [], 0
    step = max(1, ticks // SAMPLES)
    for tick in range(1, ticks + 1):
        await exporter.tick()
        clock.advance()
        if tick % SCRAPE_TICKS == 0:
            most = max(most, len(exporter.series()))
        if tick % step == 0 and tick >= ticks * WARM_UP_SHARE:
            footprints.append(Footprint.at(tick))
            say(_line(footprints[-1]))
    return tuple(footprints), most


async def _freed(only: list[Exporter]) -> int:
    """End an exporter that nobody else holds; return how many allocations that frees."""
    await only[0].close()
    gc.collect()
    before = sys.getallocatedblocks()
    only.clear()
    gc.collect()
    return before - sys.getallocatedblocks()


def _allocations(fleet: Fleet) -> list[Allocation]:
    return [
        Allocation(
            namespace=held.namespace, pod=held.pod, container=held.container,
            resource=held.resource, device_id=device_id,
        )
        for held in fleet.truth.allocations(fleet.nodes[0].name, fleet.now)
        for device_id in held.device_ids
    ]  # fmt: skip


def _line(footprint: Footprint) -> str:
    return (
        f"tick {footprint.tick:>7,}: {number(footprint.resident_megabytes)} MB resident, "
        f"{footprint.blocks:,} blocks, {footprint.threads} threads"
    )


def main(arguments: Sequence[str]) -> int:
    """Run it and print the figures; the exit status is 1 if something was kept."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--ticks", type=int, default=TICKS, help=f"seconds; {TICKS} by default")
    ticks = parser.parse_args(arguments).ticks
    logs.configure("error")
    print(f"{host.description()}\n")
    outcome = asyncio.run(run(ticks, lambda line: print(line, flush=True)))
    print(
        f"\n{outcome.ticks:,} ticks, {outcome.pods:,} pods, {outcome.layouts:,} layouts; "
        f"at most {outcome.most_series:,} series, {outcome.series:,} at the end, as many as a "
        f"new exporter has but for {len(outcome.left_over)} more and {len(outcome.missing)} less; "
        f"{outcome.held_blocks:,} blocks held, by a new one {outcome.held_blocks_anew:,}; "
        f"{outcome.threads_left} threads left; in {outcome.seconds:.0f} s"
    )
    for fault in outcome.faults():
        print(f"KEPT: {fault}")
    return int(bool(outcome.faults()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
