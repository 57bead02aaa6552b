"""The adapter put together: what each part is given, and the one group that runs all tasks."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from adapter.api.authentication import Gate
from adapter.cluster.pods import Pods
from adapter.cluster.requests import Requests
from adapter.direct import Direct
from adapter.offering import Offering
from adapter.plain import PlainPort
from adapter.readiness import Readiness
from adapter.routes import MetricsApi
from adapter.settings import AdapterSettings
from adapter.sources import discovery
from adapter.sources.exporters import Exporters, Targets
from adapter.trust import PUBLISHED, Trust, certificate
from adapter.view import View
from slicewatch.catalog.own import ADAPTER
from slicewatch.kube.cache import Cache
from slicewatch.kube.client import ApiServer
from slicewatch.kube.configuration import connect, own_namespace
from slicewatch.kube.objects import CONFIG_MAP, ENDPOINT_SLICE, POD, EndpointSlice
from slicewatch.kube.protocol import Kube
from slicewatch.service import logs
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.service.server import Address, serving
from slicewatch.service.tasks import background

log = logs.logger(__name__)

Task = tuple[str, Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """The actual addresses of the two ports; port 0 in the settings picks free ones."""

    api: Address
    plain: Address


class Adapter:
    """One adapter on one cluster."""

    def __init__(self, settings: AdapterSettings, kube: Kube) -> None:
        self._settings = settings
        self.pods_cache = Cache(kube, POD)
        self.published = Cache(kube, CONFIG_MAP, PUBLISHED)
        self.slices = None if settings.exporters else self._slices(kube)
        self.exporters = Exporters(self._targets())
        self._pods, self._requests = Pods(), Requests()
        own = certificate(settings)
        self.gate = Gate(own)
        self._trust = Trust(self.gate, settings)
        self.readiness = Readiness(
            gate=self.gate, pods=self.pods_cache, source=self.exporters, slices=self.slices
        )
        self._view = View(self._pods, self.exporters, max_age_seconds=settings.max_age_seconds)
        self._offering = Offering([Direct(self._view)])
        self._metrics = OwnMetrics(ADAPTER)
        self._listen()

    async def run(self, started: Callable[[Listening], None] | None = None) -> None:
        """Serve until cancelled; ``started`` receives the addresses."""
        api = MetricsApi(self._offering, self.gate, self.readiness, self._metrics).app()
        plain = PlainPort(self._metrics, self._requests, self.exporters, self.pods_cache)
        async with (
            serving(plain.app(self.readiness), self._settings.plain_listen) as plain_at,
            serving(api, self._settings.listen, self.gate.context) as api_at,
            background(*self._tasks()),
        ):
            log.info("serving", api=str(api_at), plain=str(plain_at))
            if started is not None:
                started(Listening(api=api_at, plain=plain_at))
            await asyncio.Event().wait()

    def _tasks(self) -> list[Task]:
        tasks: list[Task] = [
            ("pods", self.pods_cache.run()),
            ("exporters", self.exporters.run()),
            ("trust", self._trust.run()),
        ]
        if self._trust.from_cluster:
            tasks.append(("front proxy", self.published.run()))
        if self.slices is not None:
            tasks.append(("endpoints", self.slices.run()))
        return tasks

    def _slices(self, kube: Kube) -> Cache[EndpointSlice]:
        settings = self._settings
        namespace = settings.exporter_namespace or own_namespace()
        chosen = discovery.selection(settings.exporter_service, namespace)
        return Cache(kube, ENDPOINT_SLICE, chosen)

    def _targets(self) -> Targets:
        if self.slices is None:
            return discovery.fixed(self._settings.exporters)
        return discovery.of_slices(self.slices)

    def _listen(self) -> None:
        self.pods_cache.listen(self._pods.changed)
        self.pods_cache.listen(self._requests.changed)
        self.published.listen(self._trust.published)
        if self.slices is not None:
            self.slices.listen(lambda _old, _new: self.exporters.wake())


async def serve(settings: AdapterSettings) -> None:
    """Connect to the cluster named in the settings, and serve until cancelled.

    Raises:
        ConfigurationError, CertificateError: the settings cannot be used.
        OSError: an address is taken.
    """
    reconnect = partial(connect, settings.kubeconfig)
    server = ApiServer(await reconnect(), reconnect)
    try:
        await Adapter(settings, server).run()
    finally:
        await server.close()
