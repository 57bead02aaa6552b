"""What a tick costs: the exporter's process beside a bare loop of the same calls.

Both run over the same C library in processes of their own, in the same rhythm; one stands still
while the other is measured. Each counts its calls, and ticks that made different ones give no
figure.

The C library answers at once, from memory. A real driver takes its time over each call, for both
alike: on a GPU the ratio is smaller than here.
"""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import aiohttp

from bench import fleets, processes
from bench import node as nodes
from bench.crowd import crowd
from bench.node import Exporter
from bench.processes import Child
from bench.report import Goal, Of, Row, Unit
from bench.rounds import Comparison, alternately
from bench.spending import Tick, per_tick, rest, same_calls, spent

ROUNDS: Final = 5
# A tick stands for a second. The driver's file is refreshed twice in each, as GPM needs.
FAST_TICK_SECONDS: Final = 0.2
# A minute of ticks: all that is read now and then is read once.
ROUND_SECONDS: Final = 60 * FAST_TICK_SECONDS
# A process that stood still finds cold caches; that is not what a tick costs.
SETTLE_SECONDS: Final = 0.5
PRODUCTION_SECONDS: Final = 60.0
SCRAPE_SECONDS: Final = 15.0
GOAL: Final = Goal(limit=2.0, of=Of.RATIO)
CASES: Final = {
    "8 GPUs × 7 MIG, 56 pods": fleets.dense,
    "8 GPUs shared by 60 pods": fleets.shared,
}


async def measure(folder: Path) -> list[Row]:
    """Return the cost of a tick at a high rate, and in production's rhythm."""
    rows: list[Row] = []
    for number, (name, fleet) in enumerate(CASES.items()):
        place = folder / str(number)
        place.mkdir()
        async with (
            aiohttp.ClientSession() as client,
            crowd(place) as people,
            nodes.node(fleet(people), place, crowd=people) as machine,
        ):
            size = f"{name}, {len(people.pids)} processes"
            rows.append(await _fast(size, machine, place, client))
            rows.append(await _in_production(name, machine, place, client))
    return rows


async def _fast(
    size: str, machine: nodes.Node, folder: Path, client: aiohttp.ClientSession
) -> Row:
    gpus = len(machine.simulated.gpus)
    async with AsyncExitStack() as stack:
        ours, peer = await _both(stack, machine, folder, client, FAST_TICK_SECONDS)
        pairs = await alternately(
            ROUNDS,
            lambda: _alone(ours.child, peer, gpus),
            lambda: _alone(peer, ours.child, gpus),
        )
    calls = same_calls(pairs)
    cost = Comparison.of(pairs, lambda tick: 1000 * tick.cpu_seconds)
    return Row(
        figure=f"tick: CPU, {size}, {calls:.0f} NVML calls",
        value=cost.value, unit=Unit.MILLISECONDS, peer=cost.peer, ratio=cost.ratio,
        spread=cost.spread, goal=GOAL,
    )  # fmt: skip


async def _in_production(
    name: str, machine: nodes.Node, folder: Path, client: aiohttp.ClientSession
) -> Row:
    gpus = len(machine.simulated.gpus)
    async with AsyncExitStack() as stack:
        ours, peer = await _both(stack, machine, folder, client, 1.0)
        async with asyncio.TaskGroup() as group:
            reader = group.create_task(ours.follow(client), name="adapter")
            scraper = group.create_task(_scrape(ours, client), name="prometheus")
            # At the same time: the loop ticks when the exporter rests.
            own, bare = await asyncio.gather(
                spent(ours.child, PRODUCTION_SECONDS, gpus),
                spent(peer, PRODUCTION_SECONDS, gpus),
            )
            reader.cancel()
            scraper.cancel()
    share, peers = (100 * c.cpu_seconds / PRODUCTION_SECONDS for c in (own, bare))
    return Row(
        figure=f"tick: share of a core at 1 Hz, {name}, with adapter and Prometheus",
        value=share, unit=Unit.PERCENT, peer=peers, ratio=share / peers,
    )  # fmt: skip


async def _both(
    stack: AsyncExitStack,
    machine: nodes.Node,
    folder: Path,
    client: aiohttp.ClientSession,
    tick_seconds: float,
) -> tuple[Exporter, Child]:
    program = ("bench.programs.counted_exporter",)
    ours = await stack.enter_async_context(
        nodes.exporter(machine, folder, client, tick_seconds=tick_seconds, program=program)
    )
    loop = ["bench.programs.bare_loop", f"{tick_seconds:g}"]
    peer = await stack.enter_async_context(
        processes.running("bare_loop", loop, folder, machine.environment)
    )
    return ours, peer


async def _alone(child: Child, other: Child, gpus: int) -> Tick:
    """Return what a tick of the child takes while the other stands still."""
    # One that is stopped within a tick would take its GPUs for hung ones.
    await rest(other)
    with other.paused():
        await asyncio.sleep(SETTLE_SECONDS)
        return per_tick(await spent(child, ROUND_SECONDS, gpus), gpus)


async def _scrape(exporter: Exporter, client: aiohttp.ClientSession) -> None:
    """Scrape in the rhythm of Prometheus."""
    while True:
        await exporter.page(client, encoding="gzip")
        await asyncio.sleep(SCRAPE_SECONDS)
