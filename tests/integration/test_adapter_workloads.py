"""Workloads on real connections: each pod an address of loopback, one server for all of them."""

import asyncio
import gzip
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web

from adapter.sources.workloads.document import of_section
from adapter.sources.workloads.fetching import fetching
from adapter.sources.workloads.provider import Workloads
from adapter.sources.workloads.scraping import Followed, Scraper
from slicewatch.kube.objects import Annotations, Metadata, Pod, PodStatus
from slicewatch.service.server import Address, serving
from testbed.adapter_process import eventually
from testbed.cluster.pki import Pki
from testbed.front_proxy import ROOT, ApiPort, Asker

Page = Callable[[web.Request], Awaitable[web.StreamResponse]]

METRICS = [
    {"name": "waiting", "series": "vllm:num_requests_waiting", "type": "gauge", "combine": "sum"},
    {"name": "rps", "series": "requests_total", "type": "rate", "window": "2s"},
    {"name": "latency_ms", "series": "took_seconds", "type": "average", "scale": 1000,
     "window": "2s"},
]  # fmt: skip
SECTION = {"interval": "1s", "metrics": METRICS}


def text(body: str, seconds: float = 0.0) -> Page:
    """Return a page that takes some time."""

    async def page(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return web.Response(text=body)

    return page


class Scene:
    """Pods that listen.

    Attributes:
        pages: by address.
        hits: requests so far, by address and path.
        most: connections that were served at once.
    """

    def __init__(self, port: ApiPort, ask: Asker) -> None:
        self.port, self.ask = port, ask
        self.pages: dict[str, Page] = {}
        self.hits: Counter[tuple[str, str]] = Counter()
        self.open = self.most = self.server_port = 0
        self.scraper = Scraper(
            port.pods,
            port.metrics,
            opened=partial(fetching, timeout_seconds=0.5),
            permitted=lambda _: True,
        )
        self.workloads = Workloads(port.pods, self.scraper)
        self.configure()
        port.offer(self.workloads)

    def configure(self, **changes: object) -> None:
        self.workloads.configure(of_section(SECTION | changes))

    async def serve(self, request: web.Request) -> web.StreamResponse:
        host = request.get_extra_info("sockname")[0]
        self.hits[host, request.path] += 1
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            return await self.pages[host](request)
        finally:
            self.open -= 1

    def add(self, name: str, host: str, page: Page, **annotations: str) -> None:
        self.pages[host] = page
        given = Annotations(**{"scrape": "true", "port": str(self.server_port)} | annotations)
        metadata = Metadata(
            name=name, namespace="ml", uid=f"uid-{name}", labels={"app": "web"}, annotations=given
        )
        self.port.add(Pod(metadata=metadata, status=PodStatus(phase="Running", pod_ip=host)))

    def path(self, metric: str, name: str = "*") -> str:
        selector = "?labelSelector=app%3Dweb" if name == "*" else ""
        return f"{ROOT}/namespaces/ml/pods/{name}/{metric}{selector}"

    async def values(self, metric: str) -> dict[str, str]:
        answer = await self.ask(self.path(metric))
        return await self.ask.values(self.path(metric)) if answer.status == 200 else {}

    async def fault(self, name: str) -> str:
        """Ask until a pod has been tried, and return what is said of it."""

        async def said() -> str:
            message = (await self.ask(self.path("waiting", name))).body.decode()
            return "" if "not been read yet" in message else message

        return await eventually(said, f"an answer about {name}")

    def followed(self, name: str) -> Followed:
        pod = self.port.pods.get("ml", name)
        assert pod is not None
        followed = self.scraper.want(pod)
        assert followed is not None
        return followed


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    port = ApiPort(tmp_path)
    async with running(port) as made:
        yield made


@asynccontextmanager
async def running(port: ApiPort, *, tls: bool = False) -> AsyncIterator[Scene]:
    async with port.client(port.front_proxy()) as client:
        made = Scene(port, Asker(port, client))
        app = web.Application()
        app.router.add_get("/{path:.*}", made.serve)
        context = server_context(port.pki) if tls else None
        async with (
            port.serving(),
            serving(app, Address("0.0.0.0", 0), context) as at,
            asyncio.TaskGroup() as group,
        ):
            made.server_port = at.port
            task = group.create_task(made.scraper.run())
            yield made
            task.cancel()


def server_context(pki: Pki) -> ssl.SSLContext:
    own = pki.issue("pod", sans=["pod.example"], client=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)
    return context


async def test_the_first_question_is_answered_with_the_page_that_it_caused(scene: Scene) -> None:
    scene.add(
        "a",
        "127.0.1.1",
        text('vllm:num_requests_waiting{e="0"} 3\nvllm:num_requests_waiting{e="1"} 4\n'),
    )
    scene.add("b", "127.0.1.2", text("vllm:num_requests_waiting 0.5\n"))
    assert await scene.ask.values(scene.path("waiting")) == {"a": "7", "b": "500m"}


async def test_rates_and_averages_are_of_what_pods_count(scene: Scene) -> None:
    began = time.monotonic()

    async def page(_: web.Request) -> web.StreamResponse:
        requests = 20 * (time.monotonic() - began)
        seconds = requests * 0.25
        return web.Response(
            text=f"requests_total {requests}\ntook_seconds_sum {seconds}\ntook_seconds_count {requests}\n"
        )

    scene.add("a", "127.0.1.1", page)
    rates = await eventually(partial(scene.values, "rps"), "a rate")
    # What is counted until the page is made is of a time that began with the request.
    assert 12 <= thousandths(rates["a"]) / 1000 <= 30
    assert thousandths((await scene.values("latency_ms"))["a"]) == pytest.approx(250_000, abs=1)


def thousandths(quantity: str) -> int:
    return int(quantity[:-1]) if quantity.endswith("m") else 1000 * int(quantity)


async def test_a_restarted_container_makes_no_rate_negative_or_huge(scene: Scene) -> None:
    """prometheus-adapter PR #431: counters that begin again are growth, not loss."""
    counts = iter([1000.0, 1010.0, *(float(n) for n in range(0, 10_000, 10))])

    async def page(_: web.Request) -> web.StreamResponse:
        return web.Response(text=f"requests_total {next(counts)}\n")

    scene.add("a", "127.0.1.1", page)
    seen: list[int] = []

    async def restarted() -> bool:
        seen.extend(map(thousandths, (await scene.values("rps")).values()))
        return scene.hits["127.0.1.1", "/metrics"] >= 5

    await eventually(restarted, "five scrapes")
    assert seen
    assert min(seen) >= 0
    assert max(seen) <= 30_000


async def test_a_pod_that_hangs_costs_only_itself(scene: Scene) -> None:
    async def page(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    scene.add("good", "127.0.1.1", text("vllm:num_requests_waiting 1\n"))
    scene.add("hanging", "127.0.1.2", page)
    assert await scene.ask.values(scene.path("waiting")) == {"good": "1"}
    assert "no complete answer in 0.5 s" in await scene.fault("hanging")


async def test_a_pod_that_sends_drop_by_drop_is_cut_off(scene: Scene) -> None:
    async def page(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"# x\n")
            await asyncio.sleep(0.05)

    scene.add("slow", "127.0.1.1", page)
    assert "no complete answer in 0.5 s" in await scene.fault("slow")


async def test_an_endless_page_is_not_read_to_its_end(scene: Scene) -> None:
    written = 0

    async def page(request: web.Request) -> web.StreamResponse:
        nonlocal written
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"vllm:num_requests_waiting 1\n" * 2048)
            written += 1

    scene.add("endless", "127.0.1.1", page)
    assert "larger than 1048576 bytes" in await scene.fault("endless")
    assert written * 2048 * 28 < 64 << 20


async def test_a_redirect_is_not_followed(scene: Scene) -> None:
    async def page(_: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"http://127.0.1.9:{scene.server_port}/secret")

    scene.add("sly", "127.0.1.1", page)
    scene.pages["127.0.1.9"] = text("vllm:num_requests_waiting 1\n")
    assert "302 Found; redirects are not followed" in await scene.fault("sly")
    assert scene.hits["127.0.1.9", "/secret"] == 0


async def test_other_answers_that_are_no_page_are_refused(scene: Scene) -> None:
    async def failing(_: web.Request) -> web.StreamResponse:
        raise web.HTTPInternalServerError

    async def packed(_: web.Request) -> web.StreamResponse:
        body = gzip.compress(b"vllm:num_requests_waiting 1\n")
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    scene.add("failing", "127.0.1.1", failing)
    scene.add("packed", "127.0.1.2", packed)
    scene.add("closed", "127.0.1.3", failing, port="1")
    assert "the answer is 500" in await scene.fault("failing")
    assert "encoded as gzip, unasked" in await scene.fault("packed")
    assert "Cannot connect to host 127.0.1.3:1" in await scene.fault("closed")


async def test_path_and_query_are_sent_as_annotated(scene: Scene) -> None:
    sent = []

    async def page(request: web.Request) -> web.StreamResponse:
        sent.append((request.raw_path, request.headers["Host"], request.headers.get("Cookie")))
        answer = web.Response(text="vllm:num_requests_waiting 1\n")
        answer.set_cookie("session", "1")
        return answer

    scene.add("a", "127.0.1.1", page, path="/stats%2Fall?x=%20y&z")
    assert await scene.ask.values(scene.path("waiting")) == {"a": "1"}
    await eventually(lambda: asyncio.sleep(0, len(sent) > 1), "a second scrape")
    assert set(sent) == {("/stats%2Fall?x=%20y&z", f"127.0.1.1:{scene.server_port}", None)}


async def test_a_certificate_that_nobody_can_verify_is_refused_unless_that_is_configured(
    tmp_path: Path,
) -> None:
    async with running(ApiPort(tmp_path), tls=True) as scene:
        page = text("vllm:num_requests_waiting 1\n")
        scene.add("a", "127.0.1.1", page, scheme="https")
        assert "set workloadMetrics.insecureSkipVerify" in await scene.fault("a")
        assert not scene.hits
        scene.configure(insecureSkipVerify=True)
        values = await eventually(partial(scene.values, "waiting"), "a value")
        assert values == {"a": "1"}


async def test_a_thousand_pods_are_scraped_over_few_connections(scene: Scene) -> None:
    scene.configure(interval="5s", metrics=METRICS[:1])
    for number in range(1000):
        host = f"127.0.{2 + number // 250}.{1 + number % 250}"
        scene.add(f"pod-{number}", host, text(f"vllm:num_requests_waiting {number}\n", 0.01))

    async def all_there() -> bool:
        return len(await scene.values("waiting")) == 1000

    await eventually(all_there, "a value of each of 1,000 pods")
    values = await scene.values("waiting")
    assert values["pod-999"] == "999"
    assert 8 < scene.most <= 64
