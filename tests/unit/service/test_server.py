"""Servers: addresses, limits that Kubernetes needs, health endpoints."""

import asyncio
import datetime
import socket
import ssl

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.service import certificates
from slicewatch.service.server import Address, add_health, serving

LOOPBACK = Address("127.0.0.1", 0)
HAS_IPV6 = socket.has_dualstack_ipv6()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0.0.0.0:9400", Address("0.0.0.0", 9400)),
        (":9400", Address("", 9400)),
        ("[::1]:9400", Address("::1", 9400)),
        ("[::]:0", Address("::", 0)),
        ("[fe80::1%eth0]:80", Address("fe80::1%eth0", 80)),
        ("localhost:65535", Address("localhost", 65_535)),
        (" :9400 ", Address("", 9400)),
    ],
)
def test_an_address_is_read_from_text(text, address):
    assert Address.parse(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "", "9400", 9400, None, "host", "host:", ":", ":port", ":65536", ":-1", ":+1", ":94 00",
        "::1", "::1:9400", "[::1]", "[::1]9400", "[::1:9400", "::1]:9400", "[]:1", "[host]:1",
        "a b:1", "a..b:1", ".:1", "a" * 64 + ":1", ":\u0663", ":\u00b2",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"is not a valid address; write it like :9400"):
        Address.parse(text)


@given(st.sampled_from(["", "0.0.0.0", "::", "::1", "host.example"]), st.integers(0, 65_535))
def test_an_address_reads_back_from_its_own_text(host, port):
    assert Address.parse(str(Address(host, port))) == Address(host, port)


@pytest.fixture
async def client():
    async with aiohttp.ClientSession() as session:
        yield session


def application(checks=None):
    app = web.Application()

    async def echo(request):
        return web.json_response(
            {
                "headers": len(request.headers),
                "remote": request.remote,
                "query": len(request.path_qs),
            }
        )

    app.router.add_get("/echo", echo)
    add_health(app, checks or {})
    return app


async def read(session, address, path, **options):
    async with session.get(f"http://{address}{path}", **options) as response:
        return response.status, await response.text()


async def test_a_server_picks_a_free_port_and_says_which(client):
    async with serving(application(), LOOPBACK) as address:
        assert address.host == "127.0.0.1"
        assert address.port > 0
        assert await read(client, address, "/livez") == (200, "ok\n")


async def test_a_process_that_only_a_new_start_could_heal_says_so(client):
    app, faults = web.Application(), []
    add_health(app, {}, alive=lambda: faults[0] if faults else None)
    async with serving(app, LOOPBACK) as address:
        assert await read(client, address, "/livez") == (200, "ok\n")
        faults.append("the loop stands still")
        assert await read(client, address, "/livez") == (500, "the loop stands still\n")
        assert (await read(client, address, "/readyz"))[0] == 200


async def test_the_port_is_free_again_afterwards(client):
    async with serving(application(), LOOPBACK) as address:
        pass
    async with serving(application(), address) as again:
        assert await read(client, again, "/livez") == (200, "ok\n")


async def test_a_port_that_is_taken_is_an_error():
    async with serving(application(), LOOPBACK) as address:
        with pytest.raises(OSError, match=str(address.port)):
            async with serving(application(), address):
                pytest.fail("two servers listen on one port")


@pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6")
async def test_an_ipv6_address_is_served(client):
    async with serving(application(), Address("::1", 0)) as address:
        assert await read(client, address, "/livez") == (200, "ok\n")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", pytest.param("::1", marks=pytest.mark.skipif(not HAS_IPV6, reason="no IPv6"))],
)
async def test_an_address_without_host_is_served_on_both_families(client, host):
    async with serving(application(), Address("", 0)) as address:
        assert await read(client, Address(host, address.port), "/livez") == (200, "ok\n")


async def test_a_user_of_many_and_long_groups_is_heard(client):
    """The front proxy sends one header per group of the user; aiohttp's limit is 128."""
    groups = [("X-Remote-Group", f"oidc:{i}:" + "g" * 300) for i in range(200)]
    async with serving(application(), LOOPBACK) as address:
        status, text = await read(client, address, "/echo", headers=groups)
    assert status == 200
    assert '"headers": 20' in text


async def test_a_long_header_and_a_long_selector_are_heard(client):
    selector = "labelSelector=" + "a" * 40_000
    async with serving(application(), LOOPBACK) as address:
        status, text = await read(
            client, address, f"/echo?{selector}", headers={"X-Remote-Extra-Scopes": "s" * 60_000}
        )
    assert status == 200
    assert f'"query": {len("/echo?" + selector)}' in text


async def test_a_connection_is_kept_for_the_next_request(client):
    """Go clients keep an idle connection for 90 s; we must not close it before."""
    async with serving(application(), LOOPBACK) as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        for _ in range(3):
            writer.write(b"GET /livez HTTP/1.1\r\nHost: here\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert b"close" not in head.lower()
            assert await reader.readexactly(3) == b"ok\n"
        writer.close()
        await writer.wait_closed()


async def test_an_idle_connection_is_kept_longer_than_go_keeps_it_and_not_for_ever(monkeypatch):
    """custom-metrics-apiserver's clients are Go's, which reuse what was idle for up to 90 s."""
    loop = asyncio.get_running_loop()
    passed, time = 0.0, loop.time
    monkeypatch.setattr(loop, "time", lambda: time() + passed)
    async with serving(application(), LOOPBACK) as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        for seconds in (0.0, 100.0, 210.0):
            passed = seconds
            await asyncio.sleep(0.01)
            writer.write(b"GET /livez HTTP/1.1\r\nHost: here\r\n\r\n")
            assert (await reader.readuntil(b"ok\n")).startswith(b"HTTP/1.1 200")
        passed = 400.0
        assert await reader.read() == b""
        writer.close()


async def test_a_request_that_hangs_does_not_keep_the_server_from_stopping():
    app = web.Application()
    arrived = asyncio.Event()

    async def hang(_):
        arrived.set()
        await asyncio.Event().wait()

    app.router.add_get("/hang", hang)
    async with asyncio.timeout(15):
        async with serving(app, LOOPBACK) as address:
            _, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(b"GET /hang HTTP/1.1\r\nHost: here\r\n\r\n")
            await arrived.wait()
        writer.close()


async def test_readiness_follows_the_checks(client):
    fault = "the kubelet does not answer"
    state = {"tenants": None}
    checks = {"driver": lambda: None, "tenants": lambda: state["tenants"]}
    async with serving(application(checks), LOOPBACK) as address:
        assert await read(client, address, "/readyz") == (200, "ok\n")
        state["tenants"] = fault
        assert await read(client, address, "/readyz") == (
            500,
            f"[+]driver ok\n[-]tenants {fault}\n",
        )
        assert (await read(client, address, "/livez"))[0] == 200
        state["tenants"] = None
        assert (await read(client, address, "/readyz"))[0] == 200


async def test_one_check_can_be_asked_for(client):
    checks = {"driver": lambda: "NVML is not loaded", "tenants": lambda: None}
    async with serving(application(checks), LOOPBACK) as address:
        assert await read(client, address, "/readyz/tenants") == (200, "ok\n")
        assert await read(client, address, "/readyz/driver") == (
            500,
            "[-]driver NVML is not loaded\n",
        )
        assert await read(client, address, "/readyz/fan") == (
            404,
            "no check fan; choose from driver, tenants\n",
        )


async def test_all_checks_are_listed_on_demand(client):
    checks = {"driver": lambda: None, "tenants": lambda: None}
    async with serving(application(checks), LOOPBACK) as address:
        assert await read(client, address, "/readyz?verbose") == (
            200,
            "[+]driver ok\n[+]tenants ok\n",
        )


async def test_a_check_can_be_left_out(client):
    checks = {"driver": lambda: "NVML is not loaded", "tenants": lambda: None}
    async with serving(application(checks), LOOPBACK) as address:
        assert await read(client, address, "/readyz?exclude=driver") == (200, "ok\n")
        assert await read(client, address, "/readyz?exclude=driver&exclude=fan&verbose") == (
            200,
            "[+]tenants ok\nno check fan to exclude\n",
        )


async def test_handshakes_that_fail_are_told(tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made = certificates.issue("a", lifetime=datetime.timedelta(days=1), server_names=["localhost"])
    (tmp_path / "a.crt").write_bytes(made.certificate_pem)
    (tmp_path / "a.key").write_bytes(made.key_pem)
    context.load_cert_chain(tmp_path / "a.crt", tmp_path / "a.key")
    told = []
    async with serving(application(), LOOPBACK, context, failed=told.append) as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await reader.read()
        writer.close()
        async with asyncio.timeout(10):
            while not told:  # noqa: ASYNC110 - polls what has no event, with a deadline
                await asyncio.sleep(0.01)
    assert isinstance(told[0], ssl.SSLError)
