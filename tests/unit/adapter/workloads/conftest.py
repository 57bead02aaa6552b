"""Workloads whose pages are given, scraped when a test says so, asked about as an HPA would."""

from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from yarl import URL

from adapter.sources.workloads.document import of_section
from adapter.sources.workloads.fetching import FetchError, Reason
from adapter.sources.workloads.provider import Workloads
from adapter.sources.workloads.scraping import Scraper
from slicewatch.kube.objects import Annotations, Metadata, Pod, PodStatus
from slicewatch.service.server import Address, serving
from testbed.front_proxy import ROOT, ApiPort, Asker

SECTION = {
    "metrics": [
        {"name": "waiting", "series": "vllm:num_requests_waiting", "type": "gauge"},
        {"name": "rps", "series": "requests_total", "type": "rate"},
        {"name": "latency_ms", "series": "took_seconds", "type": "average", "scale": 1000,
         "idle": "zero"},
    ]
}  # fmt: skip


class Scene:
    """A namespace of pods.

    Attributes:
        pages: by address; None for a pod that does not answer.
        fetched: the URLs of all scrapes so far.
    """

    def __init__(self, port):
        self.port = port
        self.pages = {}
        self.fetched = []
        self.scraper = self.scraper_of()
        self.workloads = Workloads(port.pods, self.scraper, patience_seconds=0)
        self.workloads.configure(of_section(SECTION))
        port.offer(self.workloads)

    def scraper_of(self, **more):
        given = {
            "opened": self.opened, "monotonic": self.port.monotonic, "wall": self.port.wall
        }  # fmt: skip
        return Scraper(self.port.pods, self.port.metrics, **given | more)

    def add(self, name, page="", *, ip="", uid="", phase="Running", **annotations):
        """Make a pod exist, with a page at its address."""
        given = Annotations(**{"scrape": "true", "port": "8000"} | annotations)
        number = len(self.pages) + 1
        address = ip or f"10.0.0.{number}"
        pod = Pod(
            metadata=Metadata(
                name=name, namespace="ml", uid=uid or f"uid-{name}", labels={"app": "web"},
                annotations=given,
            ),
            status=PodStatus(phase=phase, pod_ip=address),
        )  # fmt: skip
        self.pages[address] = page
        self.port.add(pod)
        return pod

    async def fetch(self, url, verify):
        self.fetched.append((str(url), verify))
        page = self.pages[url.host]
        if page is None:
            raise FetchError(Reason.CONNECTION, "connection refused")
        return page.encode()

    @asynccontextmanager
    async def opened(self):
        yield self.fetch

    async def scrape(self, seconds=0.0):
        """Let time pass, then scrape all pods that are due."""
        self.port.pass_seconds(seconds)
        due = list(self.scraper.due())
        for followed in due:
            await self.scraper.scrape(followed, self.fetch)
        return len(due)

    def path(self, metric, name="*", **query):
        if name == "*":
            query = {"labelSelector": "app%3Dweb"} | query
        rest = "&".join(f"{key}={value}" for key, value in query.items())
        return f"{ROOT}/namespaces/ml/pods/{name}/{metric}" + (f"?{rest}" if rest else "")


@pytest.fixture
async def scene(tmp_path):
    port = ApiPort(tmp_path)
    made = Scene(port)
    async with port.serving(), port.client(port.front_proxy()) as client:
        made.ask = Asker(port, client)
        yield made


@pytest.fixture
def serve_page():
    """Return what serves one page of bytes, and yields its address."""

    @asynccontextmanager
    async def serving_page(body, headers=None):
        async def answer(_):
            return web.Response(body=body, headers=headers)

        app = web.Application()
        app.router.add_get("/metrics", answer)
        async with serving(app, Address("127.0.0.1", 0)) as at:
            yield URL(f"http://{at}/metrics")

    return serving_page
