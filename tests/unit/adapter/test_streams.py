"""Streams among many: those that fail, flood or stall, and all that come back at one moment."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from adapter.sources import discovery, stream
from adapter.sources.entry import Entry
from adapter.sources.exporters import Exporters
from adapter.sources.source import StreamFault, Target
from slicewatch.service.server import Address, serving
from slicewatch.wire.snapshot import encode
from testbed import fleet

SECONDS = 15.0
HAS_IPV6 = socket.has_dualstack_ipv6()

Behaviour = Callable[["Fleet", web.Request], Awaitable[web.StreamResponse]]


async def good(fleet_: "Fleet", request: web.Request) -> web.StreamResponse:
    """Send one frame of the node that the path names, and keep the stream open."""
    answer = web.StreamResponse()
    await answer.prepare(request)
    node = request.match_info["node"]
    layout = fleet.layout([fleet.gpu(0, node=node)], node=node)
    await answer.write(encode(fleet.frame(layout)))
    await fleet_.hang_up.wait()
    return answer


class Fleet:
    """Exporters on one port, told apart by their paths; each behaves as it is told to."""

    def __init__(self) -> None:
        self.behaviours: dict[str, Behaviour] = {}
        self.hang_up = asyncio.Event()
        self.asked: dict[str, int] = {}
        self.address = Address("", 0)
        self.source = Exporters(lambda: dict.fromkeys(map(self.target, self.behaviours), ""))

    def target(self, node: str) -> Target:
        return discovery.target(f"http://{self.address}/{node}")

    async def answer(self, request: web.Request) -> web.StreamResponse:
        node = request.match_info["node"]
        self.asked[node] = self.asked.get(node, 0) + 1
        return await self.behaviours[node](self, request)

    @asynccontextmanager
    async def running(self, host: str = "127.0.0.1") -> AsyncIterator[None]:
        app = web.Application()
        app.router.add_get("/{node}/snapshot", self.answer)
        async with serving(app, Address(host, 0), most=1000) as self.address:
            task = asyncio.ensure_future(self.source.run())
            try:
                yield
            finally:
                self.hang_up.set()
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    def connected(self, *nodes: str) -> bool:
        streams = [self.source.streams.get(self.target(node)) for node in nodes]
        return all(one is not None and one.connected for one in streams)

    def fault(self, node: str) -> str:
        return self.source.streams[self.target(node)].fault


async def until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(SECONDS):
            while not condition():  # noqa: ASYNC110 - polls what has no event, with a deadline
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"timed out waiting for {what}")


def sends(*pieces: bytes, pause: float = 0.0) -> Behaviour:
    async def send(fleet_: Fleet, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        with suppress(ConnectionError):
            for piece in pieces:
                await answer.write(piece)
                await asyncio.sleep(pause)
            await fleet_.hang_up.wait()
        return answer

    return send


def refuses(status: int, text: str) -> Behaviour:
    async def refuse(_: Fleet, __: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text)

    return refuse


async def stalls(fleet_: Fleet, _: web.Request) -> web.StreamResponse:
    """Accept the connection and never answer."""
    await fleet_.hang_up.wait()
    return web.Response(status=503)


@pytest.mark.parametrize(
    ("behaviour", "reason", "text"),
    [
        (sends(*[b"nonsense\n"] * 5), StreamFault.GARBAGE, "5 bad lines in a row"),
        (sends(b"x" * (5 << 20)), StreamFault.GARBAGE, ""),
        (sends(*[b"."] * 200, pause=0.05), StreamFault.SILENT, "no line for 0.3 s"),
        (sends(b'{"half'), StreamFault.SILENT, "no line for 0.3 s"),
        (stalls, StreamFault.CONNECT, "no answer within 0.3 s"),
        (refuses(503, ""), StreamFault.REFUSED, "503 Service Unavailable"),
        (refuses(302, ""), StreamFault.REFUSED, "302 Found"),
        (
            refuses(401, "send a token of snapshot_token_file\n"),
            StreamFault.UNAUTHORIZED,
            "401 Unauthorized: send a token of snapshot_token_file",
        ),
        (refuses(403, "no such name"), StreamFault.UNAUTHORIZED, "403 Forbidden: no such name"),
    ],
    ids=["garbage", "flood", "drip", "half", "stall", "503", "redirect", "token", "certificate"],
)
async def test_a_stream_that_is_none_ends_with_its_reason_and_costs_no_other(
    monkeypatch: pytest.MonkeyPatch, behaviour: Behaviour, reason: StreamFault, text: str
) -> None:
    monkeypatch.setattr(stream, "SILENCE_SECONDS", 0.3)
    monkeypatch.setattr(stream, "OPEN_SECONDS", 0.3)
    made = Fleet()
    made.behaviours = {"bad": behaviour}
    async with made.running():
        await until(lambda: made.source.faults[reason] > 0, f"a fault of {reason}")
        assert text in made.fault("bad")
        monkeypatch.setattr(stream, "SILENCE_SECONDS", 15.0)
        made.behaviours["n1"] = good
        made.source.wake()
        await until(lambda: made.connected("n1"), "the good exporter")
        assert not made.connected("bad")


async def test_an_exporter_that_cannot_be_reached_is_told_apart_and_logged_once() -> None:
    made = Fleet()
    made.source = Exporters(lambda: {discovery.target("http://127.0.0.1:1"): "n1"})
    with capture_logs() as logged:
        async with made.running():
            await until(lambda: made.source.faults[StreamFault.CONNECT] > 1, "two attempts")
    assert [entry["event"] for entry in logged] == ["exporter lost"]


async def test_a_fleet_that_is_lost_at_one_moment_comes_back_a_few_at_a_time() -> None:
    made = Fleet()
    made.source._entry = Entry(most=3)
    nodes = [f"n{number}" for number in range(30)]
    opening = most = 0

    async def slowly(fleet_: Fleet, request: web.Request) -> web.StreamResponse:
        nonlocal opening, most
        opening += 1
        most = max(most, opening)
        await asyncio.sleep(0.01)
        opening -= 1
        return await good(fleet_, request)

    made.behaviours = dict.fromkeys(nodes, slowly)
    async with made.running():
        await until(lambda: made.connected(*nodes), "all exporters")
        made.hang_up.set()
        made.hang_up = asyncio.Event()
        await until(lambda: all(made.asked[node] == 2 for node in nodes), "their second streams")
        await until(lambda: made.connected(*nodes), "all exporters again")
    assert 1 < most <= 3


async def test_exporters_that_do_not_answer_keep_nobody_else_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "OPEN_SECONDS", 0.2)
    made = Fleet()
    made.source._entry = Entry(most=1)
    made.behaviours = {f"dead{number}": stalls for number in range(3)}
    async with made.running():
        await until(lambda: made.source.faults[StreamFault.CONNECT] >= 3, "each dead one to fail")
        monkeypatch.setattr(stream, "OPEN_SECONDS", 60.0)
        asked = sum(made.asked.values())
        await until(lambda: sum(made.asked.values()) > asked, "a dead one to be tried again")
        made.behaviours |= {f"n{number}": good for number in range(5)}
        made.source.wake()
        await until(lambda: made.connected(*(f"n{number}" for number in range(5))), "the others")


async def test_the_first_waits_of_a_fleet_are_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Fleet()
    waits: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float, *_: Any) -> None:
        if seconds > 0.4:
            waits.append(seconds)
        await sleep(0 if seconds > 0.4 else seconds)

    monkeypatch.setattr(asyncio, "sleep", noted)
    made.behaviours = {f"n{number}": refuses(503, "") for number in range(60)}
    async with made.running():
        await until(lambda: len(waits) >= 60, "the waits")
    first = waits[:60]
    assert max(first) - min(first) > 0.3
    assert all(0.5 <= seconds <= 2.0 for seconds in first)


@pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6")
async def test_an_exporter_with_an_address_of_version_six_is_followed() -> None:
    made = Fleet()
    made.behaviours = {"n1": good}
    async with made.running("::1"):
        await until(lambda: made.connected("n1"), "the exporter")
    assert made.target("n1").startswith("http://[::1]:")
