"""How much memory the exporter needs: its real process, after a thousand ticks.

The GPUs are as many as a node can have, the kubelet is asked over gRPC, a stream is open, and both
encodings of the page have been scraped, so that everything that is loaded late is loaded.
"""

import asyncio
from pathlib import Path
from typing import Final

import aiohttp

from bench import host, processes
from bench import node as nodes
from bench.node import Exporter
from bench.report import Goal, Of, Row, Unit

TICKS: Final = 1000
# The shortest that the exporter's settings allow.
TICK_SECONDS: Final = 0.05
LONGEST_SECONDS: Final = 120.0
SCRAPE_SECONDS: Final = 3.0
GOAL: Final = Goal(limit=80.0, of=Of.VALUE)


async def measure(folder: Path) -> list[Row]:
    """Return resident and proportional memory."""
    async with (
        aiohttp.ClientSession() as client,
        nodes.node(nodes.dense(), folder) as machine,
        nodes.exporter(machine, folder, client, tick_seconds=TICK_SECONDS) as exporter,
        asyncio.TaskGroup() as group,
    ):
        reader = group.create_task(exporter.follow(client), name="adapter")
        await _thousand_ticks(exporter, client)
        reader.cancel()
        used = host.memory(exporter.child.pid)
    return [
        Row(figure=f"memory: resident after {TICKS:,} ticks", value=used.resident,
            unit=Unit.MEGABYTES, goal=GOAL),
        Row(figure="memory: the same, shared pages in part (PSS)", value=used.proportional,
            unit=Unit.MEGABYTES),
    ]  # fmt: skip


async def _thousand_ticks(exporter: Exporter, client: aiohttp.ClientSession) -> None:
    async def over() -> bool:
        for encoding in ("identity", "gzip"):
            await exporter.page(client, encoding=encoding)
        return await exporter.ticks(client) >= TICKS

    await processes.until(
        over, what=f"{TICKS} ticks", seconds=LONGEST_SECONDS, child=exporter.child,
        every_seconds=SCRAPE_SECONDS,
    )  # fmt: skip
