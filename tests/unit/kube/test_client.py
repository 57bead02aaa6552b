"""The client of a real API server, where a fake with the same verbs would prove nothing."""

import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web

from slicewatch.kube import errors
from slicewatch.kube.cache import Cache
from slicewatch.kube.client import ApiServer, _refusal
from slicewatch.kube.configuration import connect
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import POD, Selection
from slicewatch.service.server import Address, serving
from testbed import kube_server
from testbed.api_server import kubeconfig


class Guarded:
    """An API server that admits a single token, which may change."""

    def __init__(self) -> None:
        self.token = "first"
        self.asked = 0

    def app(self) -> web.Application:
        served = kube_server.app(FakeKube())
        served.middlewares.append(self._check)
        return served

    @web.middleware
    async def _check(
        self, request: web.Request, handler: Callable[..., object]
    ) -> web.StreamResponse:
        self.asked += 1
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"message": "Unauthorized"}, status=401)
        return await handler(request)  # type: ignore[misc]


@pytest.fixture
async def guarded() -> AsyncIterator[tuple[Guarded, str]]:
    server = Guarded()
    async with serving(server.app(), Address("127.0.0.1", 0)) as address:
        yield server, f"http://{address}"


def from_file(token: Path) -> dict[str, object]:
    return {"tokenFile": str(token)}


def from_plugin(token: Path) -> dict[str, object]:
    plugin = token.with_name("plugin")
    version = "client.authentication.k8s.io/v1"
    plugin.write_text(
        f'#!/bin/sh\necho \'{{"apiVersion":"{version}","kind":"ExecCredential",'
        f'"status":{{"token":"\'"$(cat {token})"\'"}}}}\'\n'
    )
    plugin.chmod(stat.S_IRWXU)
    return {"exec": {"apiVersion": version, "command": str(plugin), "interactiveMode": "Never"}}


@pytest.mark.parametrize("user", [from_file, from_plugin])
async def test_credentials_that_expired_are_read_again(
    guarded: tuple[Guarded, str], tmp_path: Path, user: Callable[[Path], dict[str, object]]
) -> None:
    server, url = guarded
    token, config = tmp_path / "token", tmp_path / "kubeconfig"
    token.write_text("first")
    config.write_text(kubeconfig(url, user(token)))
    reconnect = partial(connect, str(config))
    client = ApiServer(await reconnect(), reconnect)
    everything = Selection()
    await client.list(POD, everything, limit=1)
    server.token = "second"
    token.write_text("second")
    with pytest.raises(errors.ForbiddenError, match="401"):
        await client.list(POD, everything, limit=1)
    await client.list(POD, everything, limit=1)
    await client.close()


async def test_a_kubeconfig_that_is_gone_when_credentials_expire_is_named_and_asked_for_again(
    guarded: tuple[Guarded, str], tmp_path: Path
) -> None:
    server, url = guarded
    config = tmp_path / "kubeconfig"
    config.write_text(kubeconfig(url, {"token": "first"}))
    reconnect = partial(connect, str(config))
    client = ApiServer(await reconnect(), reconnect)
    server.token = "second"
    config.unlink()
    for message in ("401", "cannot renew credentials: .* does not exist"):
        with pytest.raises(errors.ForbiddenError, match=message):
            await client.list(POD, Selection(), limit=1)
    assert server.asked == 1
    config.write_text(kubeconfig(url, {"token": "second"}))
    await client.list(POD, Selection(), limit=1)
    await client.close()


class Saying:
    """An API server that answers everything with the same bytes."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    async def handle(self, _: web.Request) -> web.Response:
        return web.Response(body=self.answer, content_type="application/json")


@asynccontextmanager
async def answered(folder: Path, answer: bytes) -> AsyncIterator[ApiServer]:
    """Yield the client of a server that answers everything with ``answer``."""
    app = web.Application()
    app.router.add_get("/{path:.*}", Saying(answer).handle)
    config = folder / "kubeconfig"
    async with serving(app, Address("127.0.0.1", 0)) as address:
        config.write_text(kubeconfig(f"http://{address}", {}))
        client = ApiServer(await connect(str(config)))
        try:
            yield client
        finally:
            await client.close()


NULLS = (
    b'{"metadata":{"name":"a","labels":null,"ownerReferences":null},'
    b'"spec":{"nodeName":null,"containers":[{"name":"c","resources":{"requests":null}}]},'
    b'"status":null}'
)
DEEP = b'{"x":' * 100_000


def listed(*objects: bytes) -> bytes:
    return b'{"metadata":{"resourceVersion":"7"},"items":[' + b",".join(objects) + b"]}"


async def test_a_null_is_no_field(tmp_path: Path) -> None:
    async with answered(tmp_path, NULLS) as client:
        pod = await client.get(POD, "a", "ml")
    assert pod.metadata.labels == {}
    assert pod.metadata.owner_references == ()
    assert pod.spec.node_name == ""
    assert pod.spec.containers[0].resources.requests == {}


async def test_an_object_that_cannot_be_read_costs_no_other(tmp_path: Path) -> None:
    good = b'{"metadata":{"name":"b"}}'
    nameless = b'{"metadata":{"labels":{"a":"b"}}}'
    wrong = b'{"metadata":{"name":"c","labels":{"a":1}}}'
    async with answered(tmp_path, listed(NULLS, nameless, good, wrong)) as client:
        page = await client.list(POD, Selection(), limit=9)
        cache = Cache(client, POD)
        await cache.refresh()
    assert [pod.metadata.name for pod in page.objects] == ["a", "b"]
    assert (page.skipped, page.version) == (2, "7")
    assert {name for _, name in cache.objects} == {"a", "b"}
    assert cache.skipped == 2


@pytest.mark.parametrize("answer", [DEEP, listed(DEEP), b"[]", b"{", b"null"])
async def test_an_answer_that_cannot_be_read_is_malformed(tmp_path: Path, answer: bytes) -> None:
    async with answered(tmp_path, answer) as client:
        with pytest.raises(errors.MalformedError, match="not the requested object"):
            await client.get(POD, "a", "ml")
        with pytest.raises(errors.MalformedError, match="not the requested object"):
            await client.list(POD, Selection(), limit=9)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"ADDED","object":' + DEEP,
        b'{"type":"ADDED","object":{"metadata":{"name":1}}}',
        b'{"type":"RENAMED","object":{"metadata":{"name":"a"}}}',
        b'{"type":"BOOKMARK","object":{}}',
        b"{",
    ],
    ids=["deep", "types", "change", "bookmark", "cut"],
)
async def test_an_event_that_cannot_be_read_is_malformed(tmp_path: Path, line: bytes) -> None:
    async with answered(tmp_path, line + b"\n") as client:
        events = client.watch(POD, Selection(), version="1")
        assert (await anext(events)).version == "1"
        with pytest.raises(errors.MalformedError):
            await anext(events)


def test_a_refusal_nested_too_deep_is_still_a_refusal() -> None:
    assert isinstance(_refusal("GET /x", 503, DEEP), errors.UnavailableError)


async def test_any_path_is_read_and_a_refusal_keeps_its_code_and_words(tmp_path: Path) -> None:
    async def known(_request: web.Request) -> web.Response:
        return web.json_response({"items": [1, 2], "more": None})

    async def refused(_request: web.Request) -> web.Response:
        return web.json_response({"kind": "Status", "message": "all stale"}, status=503)

    app = web.Application()
    app.router.add_get("/apis/x/items", known)
    app.router.add_get("/apis/x/none", refused)
    async with serving(app, Address("127.0.0.1", 0)) as address:
        path = tmp_path / "kubeconfig"
        path.write_text(kubeconfig(f"http://{address}", {"token": "t"}))
        server = ApiServer(await connect(str(path)))
        assert await server.read("/apis/x/items?limit=1", dict) == {"items": [1, 2], "more": None}
        with pytest.raises(errors.UnavailableError) as failed:
            await server.read("/apis/x/none", dict)
        await server.close()
    assert (failed.value.code, failed.value.said) == (503, "all stale")
