"""Wall clocks that jump or stand still: what is fresh stays so, what is old does not become new."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from testbed import fleet
from testbed.front_proxy import WALL, WEB, ApiPort, Asker

AGE_SECONDS = 0.5
MAX_AGE_SECONDS = 15.0
HOUR = 3600.0
JUMPS = [-HOUR, HOUR]


@dataclass(frozen=True, kw_only=True)
class Served:
    port: ApiPort
    ask: Asker

    async def written_at(self) -> float:
        """Return when the one item says that it was read, in seconds since the epoch."""
        (item,) = json.loads((await self.ask(WEB)).body)["items"]
        return datetime.fromisoformat(item["timestamp"]).timestamp()

    async def age_seconds(self) -> float:
        """Return the age of the one value, as it is explained."""
        (item,) = json.loads((await self.ask(WEB + "&explain=true")).body)["items"]
        return float(item["ageSeconds"])


@asynccontextmanager
async def streaming(folder: Path) -> AsyncIterator[Served]:
    """Yield a port with one reading that has just arrived."""
    port = ApiPort(folder, max_age_seconds=MAX_AGE_SECONDS)
    port.add(fleet.web("a", "n1"))
    port.receive(fleet.node_frame("n1", "a", 30.0, age=AGE_SECONDS))
    async with port.serving(), port.client(port.front_proxy()) as client:
        yield Served(port=port, ask=Asker(port, client))


@pytest.mark.parametrize("jump_seconds", JUMPS)
async def test_a_value_of_a_stream_lives_as_long_as_before_whatever_the_wall_clock_does(
    tmp_path: Path, jump_seconds: float
) -> None:
    async with streaming(tmp_path) as served:
        port = served.port
        assert await served.ask.values(WEB) == {"a": "30"}
        port.wall.at += jump_seconds
        port.monotonic.at += MAX_AGE_SECONDS - AGE_SECONDS - 0.1
        assert await served.ask.values(WEB) == {"a": "30"}
        port.monotonic.at += 0.2
        await served.ask.refusal(WEB, 503)
        port.receive(fleet.node_frame("n1", "a", 40.0, age=AGE_SECONDS))
        assert await served.ask.values(WEB) == {"a": "40"}
        assert await served.written_at() == int(WALL + jump_seconds - AGE_SECONDS)
        assert await served.age_seconds() == AGE_SECONDS


async def test_by_a_wall_clock_that_stands_still_values_become_old_all_the_same(
    tmp_path: Path,
) -> None:
    async with streaming(tmp_path) as served:
        port = served.port
        for _ in range(3):
            assert await served.ask.values(WEB) == {"a": "30"}
            port.monotonic.at += MAX_AGE_SECONDS
            await served.ask.refusal(WEB, 503)
            port.receive(fleet.node_frame("n1", "a", 30.0))
        assert await served.written_at() == int(WALL - AGE_SECONDS)
