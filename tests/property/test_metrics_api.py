"""Whatever is sent to the API port, the answer is a value or a Status, and never a failure.

Requests are written byte by byte: a client library would refuse to send most of them.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapter.api import request
from adapter.api.media_types import accepts_json
from adapter.api.paths import CUSTOM, EXTERNAL, DiscoveryPath, ExternalPath, MetricPath
from adapter.api.resources import DEPLOYMENTS
from adapter.api.status import Refusal
from adapter.provider import Offer
from testbed import fleet
from testbed.fixed_metrics import FixedObjects, FixedSeries
from testbed.front_proxy import ApiPort

WORDS = st.sampled_from([
    "apis", CUSTOM, EXTERNAL, "v1beta1", "v1beta2", "namespaces", "ml", "pods", "nodes", "n1", "*",
    "%2A", "a", "metrics", "gpu_utilization", "deployments.apps", "web", "depth", "Queue|Depth",
    "openapi", "v2", "status", "..", ".", "", "%2F", "%00", "%ff", "%", "%zz", "é", "~", "\t",
])  # fmt: skip
PATHS = st.lists(WORDS | st.text(max_size=6).map(quote), max_size=9).map("/".join).map("/".__add__)
ROOTS = st.sampled_from([
    f"/apis/{CUSTOM}/v1beta2/namespaces/ml/pods/*/gpu_utilization",
    f"/apis/{CUSTOM}/v1beta1/namespaces/ml/deployments.apps/web/depth",
    f"/apis/{CUSTOM}/v1beta1/nodes/n1/gpu_utilization",
    f"/apis/{EXTERNAL}/v1beta1/namespaces/ml/queue%7Cdepth",
])  # fmt: skip
SELECTORS = st.text("abx=!<>(),/- \tin09.", max_size=16) | st.sampled_from([
    "app=web", "combine=max", "window=1m", "combine=x", "a in (b)", "!a", "a>1", "=" * 100,
])  # fmt: skip
PARAMETERS = st.sampled_from([
    "labelSelector", "metricLabelSelector", "fieldSelector", "pretty", "explain", "watch", "limit",
    "resourceVersion", "timeout", "",
])  # fmt: skip
QUERIES = st.lists(
    st.tuples(PARAMETERS, SELECTORS | st.text(max_size=8)).map(lambda p: f"{p[0]}={quote(p[1])}")
    | st.text("&=%;+?#", max_size=6),
    max_size=4,
).map("&".join)
TARGETS = st.tuples(ROOTS | PATHS, QUERIES).map("?".join)
METHODS = st.sampled_from(["GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "PURGE"])
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["Accept", "User-Agent", "X-Remote-User", "If-None-Match", "Range"]),
        st.text("aj/*;,=q0.1 nan-e", max_size=20)
        | st.sampled_from(["application/json", "curl/8", "*/*;q=1e999", ";", "text/html"]),
    ),
    max_size=3,
)


@given(TARGETS)
def test_any_url_is_about_something_or_refused(target: str) -> None:
    try:
        found = request.parse(target)
    except Refusal as caught:
        refusal = caught
    else:
        assert isinstance(found.path, MetricPath | ExternalPath | DiscoveryPath)
        return
    assert json.loads(refusal.body())["code"] in {400, 404}


@given(st.text(max_size=40) | st.text("aplicton/json*;,=q01.", max_size=40))
def test_any_accept_header_is_understood(accept: str) -> None:
    assert accepts_json(accept) in {True, False}


@given(st.text(max_size=20), ROOTS)
def test_a_refusal_repeats_what_was_wrong_without_failing(text: str, root: str) -> None:
    with pytest.raises(Refusal) as caught:
        request.parse(f"{root}/{quote(text, safe='')}/more/than/there/is")
    assert json.loads(caught.value.body())["code"] == 404


async def _serve(folder: Path) -> AsyncIterator[ApiPort]:
    port = ApiPort(folder)
    series = FixedSeries({"Queue|Depth": [({"queue": "a"}, 1.0)]})
    offer = Offer(resource=DEPLOYMENTS, metric="depth")
    port.offer(FixedObjects({offer: {("ml", "web"): 7.0}}), external=[series])
    port.add(fleet.web("a", "n1"))
    port.receive(fleet.node_frame("n1", "a", 20.0))
    async with port.serving():
        yield port


class Wire:
    """The front proxy on one connection, writing whatever it is told to."""

    def __init__(self, port: ApiPort) -> None:
        shown = port.front_proxy()
        self._context = ssl.create_default_context(cafile=str(port.pki.ca))
        self._context.load_cert_chain(shown.certificate, shown.key)
        self._port = int(port.url.rpartition(":")[2])

    async def send(self, method: str, target: str, headers: list[tuple[str, str]]) -> bytes:
        """Return all that comes back."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._context)
        lines = [f"{method} {target} HTTP/1.1", "Host: a", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers]
        writer.write("\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape"))
        try:
            return await asyncio.wait_for(reader.read(), 10)
        finally:
            writer.close()
            await writer.wait_closed()


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[tuple[asyncio.Runner, Wire]]:
    with asyncio.Runner() as runner:
        serving = _serve(tmp_path)
        port = runner.run(anext(serving))
        yield runner, Wire(port)
        with pytest.raises(StopAsyncIteration):
            runner.run(anext(serving))


@settings(max_examples=150, deadline=None, suppress_health_check=[
    HealthCheck.function_scoped_fixture,
])  # fmt: skip
@given(METHODS, TARGETS, HEADERS)
def test_no_request_makes_the_adapter_fail(
    wire: tuple[asyncio.Runner, Wire], method: str, target: str, headers: list[tuple[str, str]]
) -> None:
    runner, front_proxy = wire
    answer = runner.run(front_proxy.send(method, target, headers))
    head, _, body = answer.partition(b"\r\n\r\n")
    code = int(head.split(b" ", 2)[1])
    assert 200 <= code < 500, answer
    assert b"\r\nRetry-After:" not in head
    if b"\r\nContent-Type: application/json" in head and method != "HEAD":
        assert json.loads(body)["kind"]
