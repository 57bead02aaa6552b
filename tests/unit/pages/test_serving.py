"""What a page may do is written on it; states are told as they come, to a bounded number."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from slicewatch.pages.events import EventStreams
from slicewatch.pages.static import Site
from slicewatch.service.server import Address, serving


class Told:
    """A state that may be changed, behind event streams."""

    def __init__(self, most=3):
        self.state = b'{"a":1}'
        self.streams = EventStreams(most=most)

    def app(self):
        app = web.Application()
        Site("node").add(app)
        app.router.add_get("/events", self._tell)
        self.streams.add(app)
        return app

    async def _tell(self, request):
        return await self.streams.answer(request, lambda: self.state, lambda: asyncio.sleep(0.01))


@asynccontextmanager
async def client_of(told):
    async with (
        serving(told.app(), Address("127.0.0.1", 0)) as address,
        aiohttp.ClientSession(f"http://{address}") as client,
    ):
        yield client


async def test_a_page_may_load_and_reach_its_own_origin_only():
    async with client_of(Told()) as client, client.get("/") as answer:
        policy = answer.headers["Content-Security-Policy"]
        text = await answer.text()
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "style=" not in text
    assert "onclick" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")


@pytest.mark.parametrize("name", ["page.css", "node.js", "gpu.js", "icon.svg"])
async def test_an_asset_is_asked_for_again_cheaply(name):
    async with client_of(Told()) as client:
        async with client.get(f"/assets/{name}") as first:
            assert first.status == 200
            tag = first.headers["ETag"]
        async with client.get(f"/assets/{name}", headers={"If-None-Match": tag}) as again:
            assert (again.status, await again.read()) == (304, b"")


@pytest.mark.parametrize("name", ["node.html", "..%2Fstatic.py", "other.js"])
async def test_nothing_but_assets_is_an_asset(name):
    async with client_of(Told()) as client, client.get(f"/assets/{name}") as answer:
        assert answer.status == 404


async def test_a_state_is_told_again_only_when_it_is_another():
    told = Told()
    async with client_of(told) as client, client.get("/events") as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert await answer.content.readuntil(b"\n\n") == b"retry: 2000\n\n"
        assert await answer.content.readuntil(b"\n\n") == b'data: {"a":1}\n\n'
        assert await answer.content.readuntil(b"\n\n") == b": \n\n"
        told.state = b'{"a":2}'
        while (said := await answer.content.readuntil(b"\n\n")) == b": \n\n":
            pass
        assert said == b'data: {"a":2}\n\n'


async def test_who_asks_for_the_head_of_a_stream_gets_no_more():
    async with client_of(Told()) as client, client.head("/events") as answer:
        assert (answer.status, await answer.read()) == (200, b"")


async def test_one_reader_too_many_is_refused_and_a_free_place_is_used_again():
    told = Told(most=1)
    async with client_of(told) as client:
        async with client.get("/events") as first:
            await first.content.readuntil(b"data")
            async with client.get("/events") as second:
                assert second.status == 503
        async with asyncio.timeout(5):
            status = 503
            while status != 200:
                async with client.get("/events") as answer:
                    status = answer.status
