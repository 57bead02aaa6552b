"""Asking a real HTTP server, in good and bad states."""

import asyncio

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from exporter.dcgm import polling
from exporter.dcgm.polling import follow, page_url, refresh, session
from exporter.dcgm.source import DcgmSource, Reason
from slicewatch.service.backoff import Backoff
from slicewatch.service.server import Address, serving
from slicewatch.service.tasks import background


@pytest.fixture
def source():
    return DcgmSource(interval_seconds=0.01, reject=lambda _: None)


@pytest.fixture
async def client():
    async with session() as made:
        yield made


@pytest.fixture
async def serve():
    """Serve answers one after another, the last one for ever; yield the URL and what was asked."""
    stops = []

    async def start(*answers):
        asked = []

        async def handle(request):
            asked.append(request)
            answer = answers[min(len(asked), len(answers)) - 1]
            return await answer(request) if callable(answer) else web.Response(**answer)

        app = web.Application()
        app.router.add_get("/metrics", handle)
        server = serving(app, Address("127.0.0.1", 0))
        stops.append(server)
        address = await server.__aenter__()
        return f"http://{address}/metrics", asked

    yield start
    for server in stops:
        await server.__aexit__(None, None, None)


async def poll(source, client, url, at=7.0):
    return await refresh(source, client, url, lambda: at)


async def test_a_page_is_taken_with_the_time_of_its_arrival(
    source, client, serve, recorded, instance
):
    url, asked = await serve({"text": recorded("2.6-a100-40gb")})
    assert await poll(source, client, url)
    assert source.utilization(instance(), 9.0) == (pytest.approx(99.5687), 2)
    assert asked[0].headers["Accept-Encoding"] == "identity"


async def test_bytes_that_are_no_text_cost_no_other_line(
    source, client, serve, recorded, instance
):
    noise = b'DCGM_FI_DEV_X{pod="\xff\xfe"} 1\n'
    url, _ = await serve({"body": noise + recorded("2.6-a100-40gb").encode()})
    assert await poll(source, client, url)
    assert source.utilization(instance(), 7.0) is not None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"status": 500, "text": "a collector failed"}, Reason.BAD_ANSWER),
        ({"status": 404}, Reason.BAD_ANSWER),
        ({"status": 302, "headers": {"Location": "/metrics"}}, Reason.BAD_ANSWER),
        ({"body": b"\x1f\x8b", "headers": {"Content-Encoding": "gzip"}}, Reason.BAD_ANSWER),
    ],
)
async def test_an_answer_that_is_no_page_is_a_fault(source, client, serve, answer, reason):
    url, asked = await serve(answer)
    assert not await poll(source, client, url)
    assert (source.fault, len(asked)) == (reason, 1)


async def test_a_page_without_end_is_cut_off(source, client, serve, monkeypatch):
    monkeypatch.setattr(polling, "MOST_BYTES", 1 << 16)
    sent = 0

    async def endless(request):
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while sent < 1 << 28:
            await response.write(b"DCGM_FI_DEV_X 1\n" * 4096)
            sent += 1 << 16
        return response

    url, _ = await serve(endless)
    assert not await poll(source, client, url)
    assert source.fault is Reason.TOO_LARGE
    assert sent < 1 << 26


async def test_a_server_that_does_not_answer_in_time_is_given_up(source, serve, monkeypatch):
    """dcgm-exporter #599, gpu-operator #2482: it stalls on nodes with many instances."""
    monkeypatch.setattr(polling, "DEADLINE_SECONDS", 0.05)
    release = asyncio.Event()

    async def stall(_):
        await release.wait()
        return web.Response()

    url, _ = await serve(stall)
    async with polling.session() as client, asyncio.timeout(10):
        assert not await poll(source, client, url)
    release.set()
    assert source.fault is Reason.TOO_SLOW


async def test_a_port_where_nobody_listens_is_a_fault(source, client, unused_tcp_port):
    assert not await poll(source, client, f"http://127.0.0.1:{unused_tcp_port}/metrics")
    assert source.fault is Reason.UNREACHABLE


async def test_a_connection_that_breaks_within_the_page_is_a_fault(source, client, serve):
    async def half(request):
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"DCGM_FI")
        request.transport.close()
        return response

    url, _ = await serve(half)
    assert not await poll(source, client, url)
    assert source.fault is Reason.UNREACHABLE


async def test_following_survives_every_failure_and_recovers(source, serve, recorded, instance):
    """An exporter that is restarted: gone, failing, without profiling, well again."""
    recovered = asyncio.Event()

    async def well(_):
        if len(asked) > 5:
            recovered.set()
        return web.Response(text=recorded("2.6-a100-40gb"))

    url, asked = await serve(
        {"status": 503},
        {"text": "not a page"},
        {"text": recorded("4.8-a30-no-profiling")},
        well,
    )
    with capture_logs() as logged:
        async with background(("dcgm", follow(source, url))), asyncio.timeout(10):
            await recovered.wait()
    assert source.fault is None
    told = [entry["reason"] for entry in logged if entry["log_level"] == "warning"]
    assert told == [Reason.BAD_ANSWER, Reason.OTHER_PAGE, Reason.NO_PROFILING]
    assert sum(entry["log_level"] == "info" for entry in logged) == 1


class Recorded(Backoff):
    """Short pauses, and a record of how often each came in a row."""

    def __init__(self):
        super().__init__()
        self.told = []

    def next_seconds(self):
        self.told.append(self._failures)
        super().next_seconds()
        return 0


async def test_pauses_grow_while_it_fails_and_start_anew_after_a_page(source, serve, recorded):
    again = asyncio.Event()

    async def last(_):
        again.set()
        return web.Response(status=500)

    page = {"text": recorded("2.6-a100-40gb")}
    url, _ = await serve({"status": 500}, {"status": 500}, page, {"status": 500}, last)
    waits = Recorded()
    async with background(("dcgm", follow(source, url, waits))), asyncio.timeout(10):
        await again.wait()
    assert waits.told[:3] == [0, 1, 0]


async def test_a_failure_that_lasts_is_told_once(source, client, serve):
    url, _ = await serve({"status": 500})
    with capture_logs() as logged:
        for _ in range(3):
            await poll(source, client, url)
    assert [entry["log_level"] for entry in logged] == ["warning", "debug", "debug"]
    assert logged[0]["error"].startswith("500 ")


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("", ""),
        (" ", ""),
        ("http://10.0.0.7:9400", "http://10.0.0.7:9400/metrics"),
        ("http://10.0.0.7:9400/", "http://10.0.0.7:9400/metrics"),
        ("https://dcgm.monitoring.svc/metrics", "https://dcgm.monitoring.svc/metrics"),
        ("http://[fd00::1]:9400/m?x=1#top", "http://[fd00::1]:9400/m?x=1"),
    ],
)
def test_a_url_gets_the_usual_path_where_it_has_none(given, url):
    assert page_url(given) == url
    assert page_url(url) == url


@pytest.mark.parametrize(
    "text",
    ["10.0.0.7:9400", "ftp://host/metrics", "http://", "http:///metrics", "http://h:99999", "http://h:x",
     "http://[::1", None, 9400, "true"],
)  # fmt: skip
def test_what_is_no_url_is_refused(text):
    with pytest.raises(ValueError, match="not a valid URL"):
        page_url(text)


def test_a_password_is_refused_and_not_repeated():
    with pytest.raises(ValueError, match="cannot be used") as raised:
        page_url("http://user:secret@host:9400")
    assert "secret" not in str(raised.value)
