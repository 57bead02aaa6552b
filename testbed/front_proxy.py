"""The adapter's API port in this process, behind real TLS, asked as kube-apiserver would ask.

Clocks are set by hand, pods and frames are given; the protocol between client and handler is
real.
"""

import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from yarl import URL

from adapter.api.authentication import FrontProxy, Gate
from adapter.api.certificate import ServingCertificate
from adapter.api.routes import MetricsApi
from adapter.cluster.pods import Pods
from adapter.readiness import Readiness
from adapter.sources.fake import FakeSource
from adapter.sources.protocol import Target
from adapter.view import View
from slicewatch.catalog.own import ADAPTER
from slicewatch.kube.cache import Cache
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import POD, Pod
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.service.server import Address, serving
from slicewatch.wire.snapshot import Frame, encode
from testbed.cluster.pki import FRONT_PROXY_AUTHORITY, Certificate, Pki

WALL = 1_790_000_100.0
"""The wall clock of the port; a moment in 2026."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


class ManualClock:
    """A clock that stands until it is moved."""

    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self) -> float:
        """Return the time."""
        return self.at


class ApiPort:
    """A port with its state in reach.

    Attributes:
        url: of the port; empty until it is served.
    """

    def __init__(self, folder: Path, *, max_age_seconds: float = 15.0) -> None:
        self.pki = Pki(folder)
        self.monotonic, self.wall = ManualClock(1000.0), ManualClock(WALL)
        self.pods, self.source = Pods(), FakeSource()
        self.view = View(
            self.pods,
            self.source,
            max_age_seconds=max_age_seconds,
            monotonic=self.monotonic,
            wall=self.wall,
        )
        own = self.pki.issue("adapter", sans=["127.0.0.1"], client=False)
        self.gate = Gate(ServingCertificate(own.certificate, own.key))
        self.trust(self.pki)
        self.cache = Cache(FakeKube(), POD)
        self.cache.synced, self.cache.fault = True, ""
        readiness = Readiness(gate=self.gate, pods=self.cache, source=self.source)
        self.metrics = OwnMetrics(ADAPTER)
        self.api = MetricsApi(self.view, self.gate, readiness, self.metrics)
        self.url = ""

    def trust(self, pki: Pki, names: Iterable[str] = ("front-proxy-client",)) -> None:
        """Let in the front proxy of an authority, under some names."""
        authorities = pki.front_proxy_ca.read_text()
        self.gate.trust(FrontProxy(authorities=authorities, allowed_names=tuple(names)))

    def add(self, *pods: Pod) -> None:
        """Let pods exist."""
        for pod in pods:
            self.pods.changed(self.pods.get(*pod.key), pod)

    def receive(self, frame: Frame) -> None:
        """Let a frame arrive now from the exporter of its node."""
        if frame.layout is None:
            raise ValueError("the frame has to bring its layout, which names the node")
        target = Target(f"http://{frame.layout.node}:9400")
        self.source.receive(target, encode(frame), self.monotonic())

    def front_proxy(self) -> Certificate:
        """Return the certificate of the front proxy."""
        return self.pki.issue("front-proxy-client", ca=FRONT_PROXY_AUTHORITY)

    def pass_seconds(self, seconds: float) -> None:
        """Move both clocks on."""
        self.monotonic.at += seconds
        self.wall.at += seconds

    @asynccontextmanager
    async def client(self, shown: Certificate | None) -> AsyncIterator[aiohttp.ClientSession]:
        """Yield a client that shows a certificate, or none."""
        context = ssl.create_default_context(cafile=str(self.pki.ca))
        if shown is not None:
            context.load_cert_chain(shown.certificate, shown.key)
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(connector=connector) as session:
            yield session

    async def ask(
        self,
        path: str,
        *,
        client: aiohttp.ClientSession,
        method: str = "GET",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send a raw path, unchanged, and return the answer."""
        url = URL(self.url + path, encoded=True)
        async with client.request(method, url, headers=headers) as answer:
            return Answer(answer.status, dict(answer.headers), await answer.read())

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["ApiPort"]:
        """Serve on a free port of loopback."""
        address = Address("127.0.0.1", 0)
        async with serving(self.api.app(), address, self.gate.context) as got:
            self.url = f"https://{got}"
            yield self
