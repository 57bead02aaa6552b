"""HTTP: formats, encodings, HEAD, readiness, and streams to readers good and bad."""

import asyncio
import gzip
import hashlib
import socket
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text

from exporter import endpoints
from exporter.access import SnapshotAccess
from exporter.endpoints import Endpoints, takes_gzip
from exporter.publication import Publication
from slicewatch.catalog import CATALOG, own
from slicewatch.service.exposition import Format
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.service.server import Address, serving
from slicewatch.wire.layout import Device, Layout
from slicewatch.wire.snapshot import Snapshot, decode
from tests.unit.exporter.desk import until

TEXT = "text/plain;version=0.0.4"
# What the kernel takes of a page that nobody reads is far less.
MORE_THAN_BUFFERS = b"# x\n" * 5_000_000
OPEN = "application/openmetrics-text;version=1.0.0"


def layout(number, count=1):
    devices = tuple(Device(uuid=f"GPU-{n}", gpu=n, model="m") for n in range(count))
    return Layout(run="r", number=number, node="n", window_seconds=15, devices=devices)


def snapshot(sequence, laid_out):
    rows = len(laid_out.devices)
    return Snapshot(
        run="r", layout=laid_out.number, sequence=sequence, up=[True] * rows, ages=[0.0] * rows,
        values={"gpu_power_usage_watts": [300.0] * rows, "gpu_memory_used_bytes": [2e9] * rows},
    )  # fmt: skip


class Site:
    """A running server, its publication, and a client."""

    def __init__(self, publication, endpoints_, url, client):
        self.publication = publication
        self.endpoints = endpoints_
        self.url = url
        self.client = client
        self.layout = layout(1)
        self.sequence = 0

    def publish(self, laid_out=None):
        self.layout = laid_out or self.layout
        self.sequence += 1
        self.publication.publish(self.layout, snapshot(self.sequence, self.layout))

    def get(self, path, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.get(self.url + path, headers=named)

    @property
    def streams(self):
        return len(self.endpoints._streams)


@asynccontextmanager
async def running(ready=None, **options):
    metrics = OwnMetrics(own.EXPORTER)
    publication = Publication(CATALOG.metrics, metrics.render)
    made = Endpoints(publication, "node<1>", ready or {}, **options)
    async with (
        serving(made.application(), Address("127.0.0.1", 0)) as address,
        aiohttp.ClientSession(auto_decompress=False) as client,
    ):
        yield Site(publication, made, f"http://{address}", client)


@pytest.fixture
async def site():
    async with running() as made:
        yield made


@pytest.mark.parametrize(
    ("accept", "read"), [("", read_text), (TEXT, read_text), (OPEN, read_open)]
)
async def test_metrics_come_in_the_format_that_is_asked_for(site, accept, read):
    site.publish()
    async with site.get(
        "/metrics", Accept=accept or "*/*", Accept_Encoding="identity"
    ) as response:
        wanted = Format.OPEN_METRICS if read is read_open else Format.TEXT
        assert response.headers["Content-Type"] == wanted.value
        assert response.headers["Vary"] == "Accept, Accept-Encoding"
        families = {f.name: f for f in read((await response.read()).decode())}
    assert families["gpu_power_usage_watts"].samples[0].value == 300
    assert "slicewatch_snapshot_age_seconds" in families


async def test_metrics_are_compressed_for_who_takes_it(site):
    site.publish()
    async with site.get("/metrics", Accept_Encoding="gzip") as response:
        assert response.headers["Content-Encoding"] == "gzip"
        assert b"gpu_power_usage_watts" in gzip.decompress(await response.read())
    async with site.get("/metrics", Accept_Encoding="identity") as response:
        assert "Content-Encoding" not in response.headers
        assert b"gpu_power_usage_watts" in await response.read()


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("gzip", True), ("deflate, GZIP;q=0.5, br", True), ("x-gzip", True), ("", False),
        ("gzip;q=0", False), ("gzip; q=0.000", False), ("br", False), ("gzipped", False),
    ],
)  # fmt: skip
def test_gzip_is_taken_only_by_who_says_so(header, taken):
    assert takes_gzip(header) == taken


async def test_before_the_first_snapshot_metrics_are_served_and_snapshots_are_not(site):
    async with site.get("/metrics") as response:
        assert response.status == 200
    async with site.get("/snapshot") as response:
        assert response.status == 503
        assert "first tick" in await response.text()


async def test_a_snapshot_is_one_frame_with_its_layout(site):
    site.publish()
    async with site.get("/snapshot") as response:
        assert response.content_type == "application/json"
        frame = decode(await response.read())
    assert frame.layout == site.layout
    assert frame.snapshot.sequence == 1


async def test_head_answers_without_a_body_and_never_streams(site):
    site.publish()
    for path in ("/", "/metrics", "/snapshot", "/snapshot?watch=true", "/livez", "/readyz"):
        async with asyncio.timeout(5), site.client.head(site.url + path) as response:
            assert response.status == 200
            assert await response.read() == b""
    assert site.streams == 0


async def test_the_landing_page_is_html_whatever_the_node_is_called(site):
    async with site.get("/") as response:
        text = await response.text()
    assert "node&lt;1&gt;" in text
    assert 'href="/metrics"' in text


async def test_nothing_else_is_served(site):
    async with site.get("/nothing") as response:
        assert response.status == 404
    async with site.client.post(site.url + "/metrics") as response:
        assert response.status == 405


async def test_readiness_says_what_is_wrong():
    fault = None
    async with running({"snapshots": lambda: fault}) as site:
        async with site.get("/readyz") as response:
            assert response.status == 200
        fault = "last snapshot is 99 s old"
        async with site.get("/readyz") as response:
            assert response.status == 500
            assert "[-]snapshots last snapshot is 99 s old" in await response.text()
        async with site.get("/livez") as response:
            assert response.status == 200


@asynccontextmanager
async def stuck(site, path):
    """Ask for something big and take none of it; yield the socket."""
    host, port = site.url.removeprefix("http://").split(":")
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(reader, (host, int(port)))
        await loop.sock_sendall(reader, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        yield reader


async def test_a_scraper_that_takes_nothing_is_cut_off_after_a_patience(site, monkeypatch):
    monkeypatch.setattr(endpoints, "SCRAPER_PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(site.publication, "exposition", lambda *_, **__: MORE_THAN_BUFFERS)
    async with stuck(site, "/metrics"):
        await until(lambda: site.endpoints._scrapes == 1)
        await until(lambda: site.endpoints._scrapes == 0)
    async with site.get("/metrics") as response:
        assert response.status == 200
        assert await response.read() == MORE_THAN_BUFFERS


async def test_further_scrapes_than_a_server_can_answer_are_told_to_come_again(site, monkeypatch):
    """dcgm-exporter #599: what it cannot answer piles up."""
    monkeypatch.setattr(endpoints, "MOST_SCRAPES", 2)
    monkeypatch.setattr(site.publication, "exposition", lambda *_, **__: MORE_THAN_BUFFERS)
    async with stuck(site, "/metrics"), stuck(site, "/metrics"):
        await until(lambda: site.endpoints._scrapes == 2)
        async with site.get("/metrics") as response:
            assert response.status == 503
            assert response.headers["Retry-After"] == "1"
            assert "2 scrapes are being answered" in await response.text()
        async with site.get("/livez") as response:
            assert response.status == 200
    await until(lambda: site.endpoints._scrapes == 0)
    async with site.get("/metrics") as response:
        assert response.status == 200


async def test_only_snapshots_are_kept_from_who_has_no_token():
    access = SnapshotAccess(tokens=frozenset({hashlib.sha256(b"word").digest()}))
    async with running(snapshot_access=access) as site:
        site.publish()
        for path in ("/", "/metrics", "/livez", "/readyz"):
            async with site.get(path) as response:
                assert response.status == 200
        for path in ("/snapshot", "/snapshot?watch=true"):
            async with site.get(path) as response:
                assert response.status == 401
            async with site.get(path, Authorization="Bearer word") as response:
                assert response.status == 200
                assert decode(await response.content.readline()).snapshot.sequence == 1


async def test_a_stream_sends_the_layout_once_and_again_when_it_changes(site):
    site.publish()
    async with asyncio.timeout(10), site.get("/snapshot?watch=true") as response:
        assert response.content_type == "application/x-ndjson"
        seen = [decode(await response.content.readline())]
        for laid_out in (None, layout(2, count=2), None):
            site.publish(laid_out)
            seen.append(decode(await response.content.readline()))
    assert [frame.snapshot.sequence for frame in seen] == [1, 2, 3, 4]
    assert [frame.layout and frame.layout.number for frame in seen] == [1, None, 2, None]


@pytest.mark.parametrize("watch", ["", "&watch=true"])
async def test_a_reader_gets_the_families_that_it_names_and_nothing_for_unknown_ones(site, watch):
    site.publish()
    async with site.get("/snapshot") as response:
        everything = decode(await response.content.readline()).snapshot
    names = "gpu_power_usage_watts,gpu_of_the_future"
    async with site.get(f"/snapshot?families={names}{watch}") as response:
        found = decode(await response.content.readline()).snapshot
    assert {*found.values, *found.means} == {"gpu_power_usage_watts"}
    assert len(everything.values) > 1
    assert (found.sequence, found.up) == (everything.sequence, everything.up)


async def test_readers_of_different_families_do_not_get_each_others_lines(site):
    site.publish()
    async with asyncio.timeout(10), AsyncExitStack() as stack:
        paths = ["", "&families=gpu_power_usage_watts", "&families=gpu_memory_used_bytes"]
        streams = [
            await stack.enter_async_context(site.get(f"/snapshot?watch=true{more}"))
            for more in paths
        ]
        for _ in range(2):
            lines = [decode(await s.content.readline()).snapshot for s in streams]
            names = [{*line.values, *line.means} for line in lines]
            assert names[1:] == [{"gpu_power_usage_watts"}, {"gpu_memory_used_bytes"}]
            assert len(names[0]) > 1
            site.publish()


async def test_a_stream_that_is_opened_early_begins_with_the_first_snapshot(site):
    async with asyncio.timeout(10), site.get("/snapshot?watch=1") as response:
        site.publish()
        assert decode(await response.content.readline()).snapshot.sequence == 1


async def test_a_reader_that_leaves_is_forgotten_with_the_next_tick_and_no_error(site, caplog):
    site.publish()
    for _ in range(20):
        async with site.get("/snapshot?watch=true") as response:
            await response.content.readline()
            response.close()
    site.publish()

    def gone():
        site.publish()
        return site.streams == 0

    await until(gone)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_reader_that_takes_nothing_delays_no_tick_and_is_dropped(site, monkeypatch):
    monkeypatch.setattr(endpoints, "READER_PATIENCE_SECONDS", 0.2)
    site.publish(layout(1, count=2000))
    host, port = site.url.removeprefix("http://").split(":")
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(reader, (host, int(port)))
        await loop.sock_sendall(reader, b"GET /snapshot?watch=true HTTP/1.1\r\nHost: x\r\n\r\n")
        await until(lambda: site.streams == 1)

        def dropped():
            began = loop.time()
            site.publish()
            assert loop.time() - began < 0.5
            return site.streams == 0

        await until(dropped, seconds=30)
    async with site.get("/metrics") as response:
        assert response.status == 200


async def test_a_server_that_ends_does_not_wait_for_its_streams():
    async with asyncio.timeout(10):
        async with running() as site:
            site.publish()
            response = await site.get("/snapshot?watch=true")
            await response.content.readline()
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < 1.0
        response.close()
