"""The adapter's API port in this process, behind real TLS, queried as kube-apiserver would.

Clocks are set by hand, pods and frames are given; the protocol between client and handler is
real.
"""

import json
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import aiohttp
from yarl import URL

from adapter.api.authentication import FrontProxy, Gate
from adapter.api.certificate import ServingCertificate
from adapter.cluster.facts import ClusterFacts
from adapter.cluster.freshness import Caches
from adapter.cluster.page import ClusterPage
from adapter.cluster.pods import Pods
from adapter.direct import Direct
from adapter.offering import Offering
from adapter.provider import CustomMetrics, ExternalMetrics
from adapter.readiness import Readiness
from adapter.routes import MetricsApi
from adapter.sources.fake import FakeSource
from adapter.sources.source import Target
from adapter.view import View
from slicewatch.catalog.own import ADAPTER
from slicewatch.kube.cache import Cache
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import NODE, POD, PRIORITY_CLASS, RESOURCE_QUOTA, Pod
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.service.server import Address, serving
from slicewatch.wire.snapshot import Frame, encode
from testbed.cluster.pki import FRONT_PROXY_AUTHORITY, Certificate, Pki

WALL = 1_790_000_100.0
"""The port's wall clock; a moment in 2026."""
ROOT = "/apis/custom.metrics.k8s.io/v1beta2"
WEB = f"{ROOT}/namespaces/ml/pods/*/gpu_utilization?labelSelector=app%3Dweb"
"""The pods of ``fleet.web``."""
FORGED = {
    "X-Remote-User": "system:kube-aggregator",
    "X-Remote-Group": "system:masters",
    "X-Remote-Extra-Scopes": "all",
}
"""Headers that must never let anyone in."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self) -> float:
        """Return the time."""
        return self.at


class ApiPort:
    """An API port whose state is within reach.

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
        self.custom: list[CustomMetrics] = [Direct(self.view)]
        self.external: list[ExternalMetrics] = []
        self._readiness = Readiness(gate=self.gate, pods=self.cache, source=self.source)
        self.metrics = OwnMetrics(ADAPTER)
        self.offer()
        self.url = ""

    def offer(self, *custom: CustomMetrics, external: Sequence[ExternalMetrics] = ()) -> None:
        """Let these providers be asked besides, before those that are there."""
        self.custom[:0] = custom
        self.external[:0] = external
        self.api = MetricsApi(
            Offering(self.custom, self.external),
            self.gate,
            self._readiness,
            self.metrics,
            self.monotonic,
            self.wall,
        )

    def page(self) -> ClusterPage:
        """Return the cluster's part of a page, of a cluster that has not been listed yet."""
        kube = FakeKube()
        caches = Caches(
            pods=Cache(kube, POD),
            nodes=Cache(kube, NODE),
            quotas=Cache(kube, RESOURCE_QUOTA),
            priority_classes=Cache(kube, PRIORITY_CLASS),
        )
        return ClusterPage(ClusterFacts(caches, self.view))

    def trust(self, pki: Pki, names: Iterable[str] = ("front-proxy-client",)) -> None:
        """Admit the front proxy of an authority, under these names."""
        authorities = pki.front_proxy_ca.read_text()
        self.gate.trust(FrontProxy(authorities=authorities, allowed_names=tuple(names)))

    def add(self, *pods: Pod) -> None:
        """Make pods exist."""
        for pod in pods:
            self.pods.changed(self.pods.get(*pod.key), pod)

    def receive(self, frame: Frame) -> None:
        """Make a frame arrive now from the exporter of its node."""
        if frame.layout is None:
            raise ValueError("the frame must include its layout, which names the node")
        target = Target(f"http://{frame.layout.node}:9400")
        self.source.receive(target, encode(frame), self.monotonic())

    def front_proxy(self) -> Certificate:
        """Return the certificate of the front proxy."""
        return self.pki.issue("front-proxy-client", ca=FRONT_PROXY_AUTHORITY)

    def pass_seconds(self, seconds: float) -> None:
        """Advance both clocks."""
        self.monotonic.at += seconds
        self.wall.at += seconds

    @asynccontextmanager
    async def client(self, shown: Certificate | None) -> AsyncIterator[aiohttp.ClientSession]:
        """Yield a client that presents a certificate, or none."""
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

    async def status(self, shown: Certificate | None, path: str) -> int:
        """Return the status of an answer on a new connection; 0 if TLS refuses it."""
        try:
            async with self.client(shown) as client:
                return (await self.ask(path, client=client, headers=FORGED)).status
        except (aiohttp.ClientError, ConnectionError, ssl.SSLError):
            return 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["ApiPort"]:
        """Serve on a free loopback port."""
        address = Address("127.0.0.1", 0)
        async with serving(self.api.app(), address, self.gate.context) as got:
            self.url = f"https://{got}"
            yield self


class Asker:
    """The front proxy on one connection to a port."""

    def __init__(self, port: ApiPort, client: aiohttp.ClientSession) -> None:
        self.port = port
        self._client = client

    async def __call__(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Return the answer to a raw path."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.port.ask(path, client=self._client, method=method, headers=sent)

    async def values(self, path: str) -> dict[str, str]:
        """Return the values of an answer, which must be one, by object."""
        answer = await self(path)
        require(answer.status == HTTPStatus.OK, answer.body)
        items = json.loads(answer.body)["items"]
        return {i["describedObject"]["name"]: i["value"] for i in items}

    async def refusal(self, path: str, code: int) -> str:
        """Return the message of a refusal, which must have this code."""
        answer = await self(path)
        require(answer.status == code, answer.body)
        body = json.loads(answer.body)
        given = (body["kind"], body["status"], body["code"])
        require(given == ("Status", "Failure", code), answer.body)
        require("Retry-After" not in answer.headers, answer.headers)
        return str(body["message"])


def require(fulfilled: bool, found: object) -> None:
    """Raise ``AssertionError`` with what was found unless a condition is fulfilled."""
    if not fulfilled:
        raise AssertionError(found)
