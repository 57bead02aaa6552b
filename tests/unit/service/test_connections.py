"""Connections: those that say nothing never keep out one that asks."""

import asyncio
import contextlib
import datetime
import resource
import select
import socket
import ssl
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from slicewatch.service import certificates, connections
from slicewatch.service.connections import MOST_HEAD_BYTES, most_connections
from slicewatch.service.server import Address, serving

# More than the system keeps for a client that reads nothing.
LONG_BYTES = 32 << 20
REQUEST = b"GET /livez HTTP/1.1\r\nHost: here\r\n\r\n"


class Site:
    """A server of few places, whose requests to ``/wait`` end when told to."""

    def __init__(self):
        self.waiting = 0
        self.answered = 0
        self.go = asyncio.Event()
        self.app = web.Application()
        self.app.router.add_get("/livez", self.livez)
        self.app.router.add_get("/wait", self.wait)
        self.app.router.add_get("/long", self.long)
        self.address = None

    async def livez(self, _):
        return web.Response(text="ok")

    async def wait(self, _):
        self.waiting += 1
        await self.go.wait()
        return web.Response(text="done")

    async def long(self, _):
        self.answered += 1
        return web.Response(body=bytes(LONG_BYTES))

    async def connect(self, **options):
        return await asyncio.open_connection(self.address.host, self.address.port, **options)

    async def ask(self, client=None, request=REQUEST):
        reader, writer = client or await self.connect()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split()[0]))
        if client is None:
            writer.close()
        return head.split()[1]


@asynccontextmanager
async def running(most, tls=None):
    site = Site()
    async with asyncio.timeout(30), contextlib.AsyncExitStack() as stack:
        site.address = await stack.enter_async_context(
            serving(site.app, Address("127.0.0.1", 0), tls, most=most)
        )
        yield site


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the code has no event for tests
            await asyncio.sleep(0.005)


async def closed(reader):
    """Return when the server has closed the connection."""
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionError):
            while await reader.read(1024):
                pass


async def test_silent_connections_make_room_for_one_that_asks():
    async with running(most=4) as site:
        silent = [await site.connect() for _ in range(40)]
        assert await site.ask() == b"200"
        for reader, _ in silent[:30]:
            await closed(reader)
        for _, writer in silent:
            writer.close()


async def test_a_silent_connection_goes_before_one_that_has_asked():
    async with running(most=3) as site:
        kept = await site.connect()
        assert await site.ask(kept) == b"200"
        silent = [await site.connect() for _ in range(10)]
        await closed(silent[0][0])
        assert await site.ask(kept) == b"200"
        for _, writer in (kept, *silent):
            writer.close()


async def test_a_connection_with_a_request_in_progress_is_never_closed_for_another():
    async with running(most=2) as site:
        busy = [asyncio.ensure_future(site.ask(request=b"GET /wait HTTP/1.1\r\nHost: h\r\n\r\n"))
                for _ in range(2)]  # fmt: skip
        await until(lambda: site.waiting == 2)
        reader, writer = await site.connect()
        await closed(reader)
        writer.close()
        site.go.set()
        assert await asyncio.gather(*busy) == [b"200", b"200"]
        assert await site.ask() == b"200"


@pytest.mark.parametrize("sent", [b"", b"G", b"GET /livez HTTP/1.1\r\nHost: her"])
async def test_a_connection_without_a_whole_request_is_closed_in_time(monkeypatch, sent):
    monkeypatch.setattr(connections, "FIRST_REQUEST_SECONDS", 0.2)
    async with running(most=10) as site:
        reader, writer = await site.connect()
        writer.write(sent)
        await closed(reader)
        writer.close()
        assert await site.ask() == b"200"


async def test_a_connection_that_is_kept_is_closed_when_its_next_request_never_completes(
    monkeypatch,
):
    monkeypatch.setattr(connections, "FIRST_REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(connections, "NEXT_REQUEST_SECONDS", 0.1)
    async with running(most=10) as site:
        client = await site.connect()
        for _ in range(3):
            assert await site.ask(client) == b"200"
        client[1].write(b"GET /li")
        await closed(client[0])
        client[1].close()


@pytest.mark.parametrize("asked", [False, True])
async def test_a_request_that_comes_byte_by_byte_is_not_waited_for_longer(monkeypatch, asked):
    monkeypatch.setattr(connections, "FIRST_REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(connections, "NEXT_REQUEST_SECONDS", 0.2)
    async with running(most=10) as site:
        reader, writer = client = await site.connect()
        if asked:
            assert await site.ask(client) == b"200"
        ended = asyncio.ensure_future(closed(reader))
        writer.write(REQUEST[:-4])
        sent = 0
        while not ended.done():
            writer.write(b"e")  # of the name of the host
            sent += 1
            await asyncio.wait({ended}, timeout=0.02)
        await ended
        writer.close()
        assert sent > 5


async def test_an_answer_that_nobody_takes_is_given_up(monkeypatch):
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.3)
    async with running(most=10) as site:
        with socket.create_connection((site.address.host, site.address.port)) as client:
            # The others wait behind the first, and are never begun.
            client.sendall(REQUEST.replace(b"/livez", b"/long") * 20)
            await until(lambda: is_reset(client))
        assert site.answered == 1
        assert await site.ask() == b"200"


def is_reset(client):
    """Tell whether the server has broken a connection off, without reading from it."""
    poll = select.poll()
    poll.register(client, 0)
    return bool(poll.poll(0))


async def test_an_answer_that_is_taken_slowly_is_not_mistaken_for_one(monkeypatch):
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 10.0)
    monkeypatch.setattr(connections, "NEXT_REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(connections, "FIRST_REQUEST_SECONDS", 0.2)
    async with running(most=1) as site:
        reader, writer = await site.connect()
        writer.write(REQUEST.replace(b"/livez", b"/long"))
        await reader.readuntil(b"\r\n\r\n")
        taken, began = 0, asyncio.get_running_loop().time()
        while taken < LONG_BYTES:
            taken += len(await reader.read(1 << 20))
            await asyncio.sleep(0.01)
        assert taken == LONG_BYTES
        assert asyncio.get_running_loop().time() - began > 0.2
        writer.close()


async def test_a_head_may_have_the_groups_of_a_user_but_no_end_of_headers():
    async with running(most=4) as site:
        line = b"X-Remote-Group: " + b"g" * 40 + b"\r\n"
        assert await site.ask(request=REQUEST[:-2] + line * 4_000 + b"\r\n") == b"200"
        reader, writer = await site.connect()
        writer.write(REQUEST[:-2])
        for _ in range(100):
            writer.write(b"X-A: " + b"a" * 60_000 + b"\r\n")
        with contextlib.suppress(ConnectionError):
            assert (await reader.readline()).split()[1] == b"431"
        await closed(reader)
        writer.close()
        assert await site.ask() == b"200"


async def test_heads_of_one_connection_are_not_added_up():
    line = b"X-A: " + b"a" * 60_000 + b"\r\n"
    async with running(most=4) as site:
        client = await site.connect()
        for _ in range(2 * MOST_HEAD_BYTES // len(line)):
            assert await site.ask(client, REQUEST[:-2] + line + b"\r\n") == b"200"
        client[1].close()


@pytest.fixture
def tls():
    """Return the contexts of a server and of a client that trusts it."""
    made = certificates.issue(
        "here", lifetime=datetime.timedelta(days=1), server_names=["127.0.0.1"], authority=True
    )
    from slicewatch.service.tls import ServerTls

    server = ServerTls(certificate_pem=made.certificate_pem, key_pem=made.key_pem).context()
    return server, ssl.create_default_context(cadata=made.certificate_pem.decode())


async def test_connections_that_never_begin_their_handshake_make_room_too(tls):
    server, client = tls
    async with running(most=4, tls=server) as site:
        silent = [await site.connect() for _ in range(40)]
        asking = await site.connect(ssl=client)
        assert await site.ask(asking) == b"200"
        for _, writer in (asking, *silent):
            writer.close()


async def test_a_handshake_that_fails_gives_its_place_back(tls):
    server, client = tls
    async with running(most=2, tls=server) as site:
        for _ in range(10):
            reader, writer = await site.connect()
            writer.write(b"this is no handshake\r\n\r\n")
            await closed(reader)
            writer.close()
        asking = await site.connect(ssl=client)
        assert await site.ask(asking) == b"200"
        asking[1].close()


async def test_a_handshake_in_progress_does_not_keep_the_server_from_stopping(tls):
    began = asyncio.get_running_loop().time()
    async with running(most=2, tls=tls[0]) as site:
        _, writer = await site.connect()
        await asyncio.sleep(0)
    assert asyncio.get_running_loop().time() - began < 5
    writer.close()


async def test_the_context_is_asked_for_with_each_connection(tls):
    server, client = tls
    present = {"context": None}
    async with running(most=4, tls=lambda: present["context"]) as site:
        assert await site.ask() == b"200"
        present["context"] = server
        asking = await site.connect(ssl=client)
        assert await site.ask(asking) == b"200"
        asking[1].close()


async def test_what_the_body_raises_comes_out_as_it_is():
    with pytest.raises(KeyError, match="mine"):
        async with running(most=2):
            raise KeyError("mine")


@pytest.mark.parametrize(
    ("soft", "most"), [(256, 128), (1024, 512), (1_000_000, 512), (resource.RLIM_INFINITY, 512)]
)
def test_half_of_the_descriptors_are_left_to_everything_else(monkeypatch, soft, most):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert most_connections() == most


async def test_nonsense_is_refused_and_what_it_says_is_not_logged(caplog, capsys):
    async with running(most=4) as site:
        nonsense = b"GET / HTTP/1.1\r\nHost: here\r\nAuthorization : Basic c2VjcmV0\r\n\r\n"
        assert await site.ask(request=nonsense) == b"400"
        assert await site.ask() == b"200"
    assert caplog.records == []
    assert "c2VjcmV0" not in "".join(capsys.readouterr())


async def test_a_fault_of_our_own_is_logged(caplog):
    async with running(most=4) as site:
        site.go = None
        assert await site.ask(request=REQUEST.replace(b"/livez", b"/wait")) == b"500"
    assert [record.exc_info[0] for record in caplog.records] == [AttributeError]
