"""The status page of an exporter: on, off, and made once per snapshot."""

import json
from contextlib import asynccontextmanager

import aiohttp
import pytest

from exporter.endpoints import Endpoints
from exporter.publication import Publication
from exporter.status.page import StatusPage
from slicewatch.catalog import CATALOG
from slicewatch.service.server import Address, serving
from tests.unit.exporter.test_endpoints import layout, snapshot


@asynccontextmanager
async def exporter(*, with_page=True):
    publication = Publication(CATALOG.metrics, lambda _: b"")
    page = StatusPage(publication) if with_page else None
    app = Endpoints(publication, "n", {}, status=page).application()
    async with (
        serving(app, Address("127.0.0.1", 0)) as address,
        aiohttp.ClientSession(f"http://{address}") as client,
    ):
        yield publication, page, client


async def test_there_is_no_state_before_the_first_tick():
    async with exporter() as (_, _, client), client.get("/status") as answer:
        assert (answer.status, "first tick" in await answer.text()) == (503, True)


async def test_the_state_is_that_of_the_last_snapshot():
    async with exporter() as (publication, _, client):
        publication.publish(layout(1, 2), snapshot(1, layout(1, 2)))
        async with client.get("/status") as answer:
            state = await answer.json()
    assert state["node"] == "n"
    assert [gpu["power_watts"] for gpu in state["gpus"]] == [300.0, 300.0]
    assert "utilization" not in state["gpus"][0]["devices"][0]


async def test_events_tell_the_same():
    async with exporter() as (publication, page, client):
        publication.publish(layout(1), snapshot(1, layout(1)))
        async with client.get("/status/events") as answer:
            await answer.content.readuntil(b"data: ")
            told = json.loads(await answer.content.readuntil(b"\n\n"))
        assert told == json.loads(page.state())


async def test_a_state_is_made_once_per_snapshot():
    async with exporter() as (publication, page, _):
        publication.publish(layout(1), snapshot(1, layout(1)))
        assert page.state() is page.state()
        first = page.state()
        publication.publish(layout(1), snapshot(2, layout(1)))
        assert page.state() is not first


@pytest.mark.parametrize("path", ["/status", "/status/events", "/assets/node.js"])
async def test_switched_off_it_says_so_and_the_links_stay(path):
    async with exporter(with_page=False) as (_, _, client):
        async with client.get(path) as answer:
            assert answer.status == 404
            assert "status_page" in await answer.text()
        async with client.get("/") as answer:
            assert "/metrics" in await answer.text()
