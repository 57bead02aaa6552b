"""``/metrics`` under four scrapers, beside a server that gives out the same bytes.

Under load nearly every answer is one that was rendered for an earlier scrape of the same tick.
Prometheus, which comes every few seconds, always finds a new tick, so that what a scrape costs
that has to render is a figure of its own.
"""

import asyncio
from pathlib import Path
from typing import Final

import aiohttp

from bench import node as nodes
from bench.load import Load, Timing
from bench.node import ACCEPT
from bench.peer import static
from bench.report import Goal, Of, Row, Unit
from bench.rounds import Comparison, alternately

ROUNDS: Final = 9
SCRAPERS: Final = 4
REQUESTS: Final = 4_000
# One after each tick, for so many ticks.
RENDERING_REQUESTS: Final = 12
ENCODINGS: Final = ("identity", "gzip")
PATH: Final = "/metrics"
GOAL: Final = Goal(limit=2.0, of=Of.RATIO)


async def measure(folder: Path) -> list[Row]:
    """Return the times of a scrape, with and without compression."""
    rows: list[Row] = []
    async with (
        aiohttp.ClientSession() as client,
        nodes.node(nodes.dense(), folder, moving=False) as machine,
        nodes.exporter(machine, folder, client, tick_seconds=1.0) as exporter,
    ):
        for encoding in ENCODINGS:
            page = await exporter.page(client, encoding=encoding)
            name = f"scrape: {encoding}, {len(page.body) / 1000:.0f} kB"
            async with static({PATH: page}, folder) as peer:
                urls = f"{exporter.url}{PATH}", f"{peer}{PATH}"
                rows += await _under_load(name, encoding, *urls)
                rows.append(await _rendering(name, encoding, *urls))
    return rows


def _headers(encoding: str) -> tuple[str, str]:
    return f"Accept: {ACCEPT}", f"Accept-Encoding: {encoding}"


async def _under_load(name: str, encoding: str, ours: str, peer: str) -> list[Row]:
    load = Load(connections=SCRAPERS, requests=REQUESTS, headers=_headers(encoding))
    rounds = await alternately(ROUNDS, lambda: load.on(ours), lambda: load.on(peer))
    return [
        _row(f"{name}, {SCRAPERS} scrapers, p50", Comparison.of(rounds, lambda t: t.p50)),
        _row(f"{name}, {SCRAPERS} scrapers, p99", Comparison.of(rounds, lambda t: t.p99), GOAL),
    ]


async def _rendering(name: str, encoding: str, ours: str, peer: str) -> Row:
    load = Load(
        connections=1, requests=RENDERING_REQUESTS, per_second=1, headers=_headers(encoding)
    )
    both: tuple[Timing, Timing] = await asyncio.gather(load.on(ours), load.on(peer))
    return _row(f"{name}, first one after a tick, p50", Comparison.of([both], lambda t: t.p50))


def _row(figure: str, times: Comparison, goal: Goal | None = None) -> Row:
    return Row(
        figure=figure, value=times.value, unit=Unit.MILLISECONDS, peer=times.peer,
        ratio=times.ratio, spread=times.spread if len(times.ours) > 1 else None, goal=goal,
    )  # fmt: skip
