"""A client of one Prometheus API: what it sends, what it believes, and what it says of faults."""

import asyncio
import ssl
from email.utils import formatdate

import pytest
from aiohttp import web

from adapter.sources.prometheus import backend as module
from adapter.sources.prometheus.backend import Backend, BackendConfig, Verb
from adapter.sources.prometheus.credentials import Access
from adapter.sources.prometheus.fault import BackendError, FaultClass
from testbed.cluster.pki import Pki
from testbed.scripted_prometheus import Said, failure, success, vector

AT = 1_790_000_100.25


async def fault(client, query="up"):
    with pytest.raises(BackendError) as caught:
        await client.query(query, AT)
    return caught.value


async def test_a_query_is_a_form_with_an_explicit_time_and_a_limit(backend, prometheus):
    """prometheus-adapter #499: some backends read what is missing as 1970."""
    await backend(headers={"X-Scope-OrgID": "team-a"}).query("a" * 20_000, AT)
    (asked,) = prometheus.asked
    assert (asked.method, asked.path) == ("POST", "api/v1/query")
    assert asked.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert asked.headers["X-Scope-OrgID"] == "team-a"
    assert asked.fields == {"query": "a" * 20_000, "time": "1790000100.250", "timeout": "3600ms"}


async def test_a_backend_that_takes_no_post_is_asked_by_get(backend, prometheus):
    await backend(verb=Verb.GET).query("sum(x)", AT)
    assert (prometheus.asked[0].method, prometheus.asked[0].query) == ("GET", "sum(x)")


async def test_names_of_labels_are_asked_for_with_start_and_end(backend, prometheus):
    """prometheus-adapter #499."""
    prometheus.say = lambda _: success(["__name__", "pod"])
    assert await backend().label_names("x", AT - 60, AT) == ("__name__", "pod")
    assert prometheus.asked[0].fields == {
        "match[]": "x", "start": "1790000040.250", "end": "1790000100.250",
    }  # fmt: skip


async def test_a_vector_and_a_scalar_are_results(backend, prometheus):
    prometheus.say = lambda _: vector(({"a": "1"}, "1e3"), ({}, "NaN"), warnings=("partial",))
    result = await backend().query("x", AT)
    assert [(s.labels, str(s.value)) for s in result.samples] == [
        ({"a": "1"}, "1000.0"),
        ({}, "nan"),
    ]
    assert result.warnings == ("partial",)
    prometheus.say = lambda _: success({"resultType": "scalar", "result": [AT, "4"]})
    assert [(s.labels, s.value) for s in (await backend().query("4", AT)).samples] == [({}, 4.0)]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"resultType": "matrix", "result": []}, "the query makes a matrix"),
        ({"resultType": "string", "result": [0, "x"]}, "the query makes a string"),
        ({"resultType": "vector", "result": [{"metric": {}, "value": [0, "x"]}]}, "not a number"),
        ({"resultType": "vector", "result": [{"metric": {}, "value": ["0", 1]}]}, "HTTP API"),
        ({"resultType": "vector", "result": {}}, "HTTP API"),
        ([], "HTTP API"),
    ],
)
async def test_what_is_not_a_value_now_is_refused(backend, prometheus, data, why):
    prometheus.say = lambda _: success(data)
    caught = await fault(backend())
    assert (caught.fault, why in str(caught)) == (FaultClass.MALFORMED, True)


@pytest.mark.parametrize(
    ("said", "kind", "text"),
    [
        (failure(400, "bad_data", "parse error"), FaultClass.REFUSED, "bad_data: parse error"),
        (failure(422, "422", "too long"), FaultClass.REFUSED, "422: too long"),
        (failure(503, "timeout", "query timed out"), FaultClass.TIMEOUT, "query timed out"),
        (Said(body=b"gone", status=502), FaultClass.FAILED, "502 Bad Gateway"),
        (Said(body=b"", status=401), FaultClass.DENIED, "401 Unauthorized"),
        (Said(body=b"", status=302, headers={"Location": "/"}), FaultClass.FAILED, "302 Found"),
        (Said(body=b"<html>", status=400), FaultClass.FAILED, "400 Bad Request"),
        (Said(body=b"<html>"), FaultClass.MALFORMED, "not an answer of the HTTP API"),
    ],
)
async def test_each_fault_has_its_class_and_the_backends_words(
    backend, prometheus, said, kind, text
):
    prometheus.say = lambda _: said
    caught = await fault(backend())
    assert caught.fault is kind
    assert text in str(caught)
    assert str(caught).startswith("the backend default ")
    assert len(prometheus.asked) == 1  # redirects are not followed


async def test_an_answer_that_is_too_large_is_not_read_to_its_end(
    backend, prometheus, monkeypatch
):
    monkeypatch.setattr(module, "MOST_BYTES", 100_000)
    prometheus.say = lambda _: Said(body=b" " * 1_000_000)
    assert (await fault(backend())).fault is FaultClass.TOO_LARGE


async def test_a_backend_that_hangs_times_out(backend, prometheus):
    prometheus.gate.clear()
    caught = await fault(backend(timeout_seconds=0.05))
    assert (caught.fault, caught.refusal("m").code) == (FaultClass.TIMEOUT, 504)
    assert "no answer within 0.05 s" in str(caught)


async def test_a_backend_that_is_not_there_is_named_without_its_password(unused_port):
    config = BackendConfig(
        name="thanos",
        url=f"http://127.0.0.1:{unused_port}",
        access=Access(username="user", password="s3cret"),  # noqa: S106 - of nobody
    )
    client = Backend(config)
    caught = await fault(client)
    await client.close()
    assert (caught.fault, caught.refusal("m").code) == (FaultClass.UNREACHABLE, 503)
    assert "the backend thanos cannot be reached" in str(caught)
    assert "s3cret" not in repr(config) + str(caught)


async def test_a_token_that_is_replaced_is_used_by_the_next_query(backend, prometheus, tmp_path):
    """prometheus-adapter #598: the token was read once, and every query failed an hour later."""
    token = tmp_path / "token"
    token.write_text("first\n")
    client = backend(access=Access(token_file=str(token)))
    await client.query("x", AT)
    (tmp_path / "new").write_text("second-one")
    (tmp_path / "new").replace(token)
    await client.query("x", AT)
    token.unlink()  # as while it is being replaced
    await client.query("x", AT)
    sent = [one.headers["Authorization"] for one in prometheus.asked]
    assert sent == ["Bearer first", "Bearer second-one", "Bearer second-one"]


@pytest.mark.parametrize("content", [None, "", "two\nlines", "unfit é"])
async def test_a_token_that_cannot_be_used_is_named_and_not_shown(backend, tmp_path, content):
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
    caught = await fault(backend(access=Access(token_file=str(token))))
    assert caught.fault is FaultClass.CREDENTIALS
    assert str(token) in str(caught)
    assert not content or content not in str(caught)


async def test_basic_authentication_reads_its_password_from_a_file(backend, prometheus, tmp_path):
    (tmp_path / "password").write_text("open sesame\n")
    access = Access(username="ali", password_file=str(tmp_path / "password"))
    await backend(access=access).query("x", AT)
    assert prometheus.asked[0].headers["Authorization"] == "Basic YWxpOm9wZW4gc2VzYW1l"


@pytest.fixture
def unused_port(unused_tcp_port_factory):
    return unused_tcp_port_factory()


@pytest.fixture
def pki(tmp_path):
    return Pki(tmp_path)


@pytest.fixture
async def secured(pki):
    """Return the URL of an API that demands a client certificate, and who came."""
    own = pki.issue("prometheus", sans=["127.0.0.1"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki.ca))
    context.load_cert_chain(own.certificate, own.key)
    context.verify_mode = ssl.CERT_REQUIRED
    came = []

    async def answer(request):
        peer = dict(part[0] for part in request.transport.get_extra_info("peercert")["subject"])
        came.append(peer["commonName"])
        said = vector(({}, 1)).body
        dated = {"Date": formatdate(AT, usegmt=True)}
        return web.Response(body=said, content_type="application/json", headers=dated)

    application = web.Application()
    application.router.add_post("/api/v1/query", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}", came
    await runner.cleanup()


async def test_tls_verifies_the_backend_shows_a_certificate_and_follows_its_replacement(
    secured, pki, tmp_path
):
    url, came = secured
    shown = {name: pki.issue(name) for name in ("first", "second")}
    place = tmp_path / "mounted"
    place.mkdir()

    def mount(name):
        for source, target in ((shown[name].certificate, "crt"), (shown[name].key, "key")):
            (place / "new").write_bytes(source.read_bytes())
            (place / "new").replace(place / target)

    mount("first")
    access = Access(
        ca_file=str(pki.ca),
        certificate_file=str(place / "crt"),
        key_file=str(place / "key"),
    )
    client = Backend(BackendConfig(name="x", url=url, access=access))
    await client.query("up", AT)
    await client.query("up", AT)
    mount("second")
    await client.query("up", AT)
    await client.close()
    assert came == ["first", "first", "second"]
    stranger = Backend(BackendConfig(name="x", url=url))
    assert (await fault(stranger)).fault is FaultClass.DISTRUSTED
    await stranger.close()
    lost = Backend(BackendConfig(name="x", url=url, access=Access(ca_file="/nonexistent")))
    caught = await fault(lost)
    assert (caught.fault, "/nonexistent" in str(caught)) == (FaultClass.CREDENTIALS, True)
    await lost.close()


async def test_connections_are_used_again(backend, prometheus):
    client = backend()
    for _ in range(3):
        await client.query("up", AT)
    await asyncio.gather(*(client.query("up", AT) for _ in range(3)))
    assert len(prometheus.asked) == 6
