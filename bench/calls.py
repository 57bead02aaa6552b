"""What scrapes cost the driver and the kubelet: nothing, however many there are.

Every scrape gets what the last tick found. Counted in the C library and in the kubelet that
answers: with no reader, and with scrapers that ask without pause.
"""

import asyncio
from pathlib import Path
from typing import Final

import aiohttp

from bench import fleets
from bench import node as nodes
from bench.crowd import crowd
from bench.node import Exporter
from bench.report import Goal, Of, Row, Unit
from bench.spending import per_tick, spent

SECONDS: Final = 20.0
SCRAPERS: Final = 4
# What is read now and then is not in every stretch of time as often.
GOAL: Final = Goal(limit=1.02, of=Of.RATIO)
KUBELET_GOAL: Final = Goal(limit=1.25, of=Of.RATIO)


async def measure(folder: Path) -> list[Row]:
    """Return the calls while it is scraped beside those while it is left alone."""
    async with (
        aiohttp.ClientSession() as client,
        crowd(folder) as people,
        nodes.node(fleets.dense(people), folder, crowd=people) as machine,
        nodes.exporter(
            machine, folder, client, tick_seconds=1.0,
            program=("bench.programs.counted_exporter",),
        ) as exporter,
    ):  # fmt: skip
        alone, questions = await _calls(exporter, machine)
        async with asyncio.TaskGroup() as group:
            scrapers = [
                group.create_task(_scrape(exporter, client), name=f"scraper-{number}")
                for number in range(SCRAPERS)
            ]
            scraped, asked = await _calls(exporter, machine)
            for scraper in scrapers:
                scraper.cancel()
    return [
        Row(
            figure=f"calls: NVML, per tick, {SCRAPERS} scrapers without pause, beside none",
            value=scraped, unit=Unit.CALLS, peer=alone, ratio=scraped / alone, goal=GOAL,
        ),
        Row(
            figure=f"calls: kubelet, in {SECONDS:g} s, the same",
            value=asked, unit=Unit.CALLS, peer=questions, ratio=asked / questions,
            goal=KUBELET_GOAL,
        ),
    ]  # fmt: skip


async def _calls(exporter: Exporter, machine: nodes.Node) -> tuple[float, int]:
    """Return the NVML calls per tick, and how often the kubelet was asked meanwhile."""
    before = machine.kubelet.asked
    used = await spent(exporter.child, SECONDS, len(machine.simulated.gpus))
    calls = per_tick(used, len(machine.simulated.gpus)).calls
    return sum(calls.values()), machine.kubelet.asked - before


async def _scrape(exporter: Exporter, client: aiohttp.ClientSession) -> None:
    while True:
        await exporter.page(client, encoding="gzip")
