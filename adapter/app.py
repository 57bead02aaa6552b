"""The adapter put together: what each part is given, and the one group that runs all tasks."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from adapter import garbage
from adapter.api.authentication import Gate
from adapter.api.certificate import ServingCertificate
from adapter.api.resources import Resources
from adapter.cluster.external import ClusterExternal
from adapter.cluster.facts import ClusterFacts
from adapter.cluster.freshness import Caches
from adapter.cluster.page import ClusterPage
from adapter.cluster.pods import Pods
from adapter.configured import Configured
from adapter.direct import Direct
from adapter.fleet.fleet import Fleet
from adapter.fleet.page import FleetPage
from adapter.handover import Handover
from adapter.observation import DropMetrics, ReloadMetrics, SecurityMetrics
from adapter.offering import Offering
from adapter.plain import PlainPort
from adapter.readiness import Readiness
from adapter.registration import Bundle, Registration, api_services, of_file
from adapter.routes import MetricsApi
from adapter.settings import AdapterSettings
from adapter.sources import discovery
from adapter.sources.credentials import CredentialFiles, Credentials
from adapter.sources.exporters import Exporters, Targets
from adapter.trust import PUBLISHED, Trust, certificate
from adapter.view import View
from slicewatch.catalog.own import ADAPTER
from slicewatch.kube.cache import Cache
from slicewatch.kube.client import ApiServer
from slicewatch.kube.configuration import connect, own_namespace
from slicewatch.kube.objects import (
    CONFIG_MAP,
    ENDPOINT_SLICE,
    NODE,
    POD,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
    EndpointSlice,
    ServiceReference,
)
from slicewatch.kube.protocol import Kube
from slicewatch.service import logs
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.service.reload import Reload
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
        self._metrics = OwnMetrics(ADAPTER)
        self.pods_cache = Cache(kube, POD)
        self.nodes_cache = Cache(kube, NODE)
        self._quotas = Cache(kube, RESOURCE_QUOTA)
        self._priority_classes = Cache(kube, PRIORITY_CLASS)
        self.published = Cache(kube, CONFIG_MAP, PUBLISHED)
        self.slices = None if settings.exporters else self._slices(kube)
        self._credentials = self._exporter_credentials()
        self.exporters = Exporters(self._targets(), self._credentials)
        self._pods, resources = Pods(), Resources()
        self._configured = Configured(settings, kube, self._pods, resources, self._metrics)
        self._watched = (self._credentials.watched(), *self._configured.watched)
        for watched in self._watched:
            watched.start()
        own = certificate(settings)
        self.gate = Gate(own)
        self._trust = Trust(self.gate, settings)
        self._handover = Handover(self.gate, provisional=not settings.tls_cert_file)
        self.service = ServiceReference(
            namespace=settings.service_namespace or own_namespace(), name=settings.service_name
        )
        self._registration = Registration(
            kube,
            service=self.service,
            names=api_services(external=settings.external_metrics),
            bundle=self._bundle(kube, own),
        )
        self.readiness = Readiness(
            gate=self.gate,
            pods=self.pods_cache,
            source=self.exporters,
            slices=self.slices,
            registration=self._registration,
        )
        self._view = View(self._pods, self.exporters, max_age_seconds=settings.max_age_seconds)
        facts = self._facts()
        self._page = ClusterPage(facts)
        self._fleet = self._all_nodes() if settings.fleet_page else None
        self._offering = Offering(
            [*self._configured.custom, Direct(self._view)],
            [*self._configured.external, ClusterExternal(facts)],
            resources,
        )
        self._listen()

    async def run(self, started: Callable[[Listening], None] | None = None) -> None:
        """Serve until cancelled; ``started`` receives the addresses."""
        api = MetricsApi(self._offering, self.gate, self.readiness, self._metrics).app()
        security = SecurityMetrics(
            self._metrics, gate=self.gate, trust=self._trust, registration=self._registration
        )
        dropped = DropMetrics(self._metrics, self._view.dropped)
        plain = PlainPort(
            self._metrics,
            self._page,
            self.exporters,
            self.pods_cache,
            [security.observe, dropped.observe],
            fleet=None if self._fleet is None else FleetPage(self._fleet),
        )
        async with (
            serving(plain.app(self.readiness), self._settings.plain_listen) as plain_at,
            serving(
                api, self._settings.listen, self.gate.context, failed=self._trust.refuse
            ) as api_at,
            background(*self._tasks()),
        ):
            log.info("serving", api=str(api_at), plain=str(plain_at))
            if started is not None:
                started(Listening(api=api_at, plain=plain_at))
            try:
                await asyncio.Event().wait()
            finally:
                await self._drain()

    async def _drain(self) -> None:
        """Go on answering until nobody sends requests any more; a second signal cuts it short."""
        self.readiness.drain()
        log.info("draining", seconds=self._settings.drain_seconds)
        await asyncio.sleep(self._settings.drain_seconds)

    def _tasks(self) -> list[Task]:
        tasks: list[Task] = [
            ("pods", self.pods_cache.run()),
            ("nodes", self.nodes_cache.run()),
            ("quotas", self._quotas.run()),
            ("priority classes", self._priority_classes.run()),
            *self._configured.tasks(),
            ("exporters", self.exporters.run()),
            ("trust", self._trust.run()),
            ("registration", self._registration.run()),
            ("handover", self._handover.run(self._registration.settle)),
            ("reload", self._reload()),
            ("garbage", garbage.run()),
        ]
        if self._fleet is not None:
            tasks.append(("fleet", self._fleet.run()))
        if self._trust.from_cluster:
            tasks.append(("front proxy", self.published.run()))
        if self.slices is not None:
            tasks.append(("endpoints", self.slices.run()))
        return tasks

    def _bundle(self, kube: Kube, own: ServingCertificate) -> Bundle:
        settings = self._settings
        if settings.tls_cert_file or not settings.authority_secret:
            return of_file(settings.tls_ca_file)
        # Imported here, since a certificate from files needs no cryptography library.
        from adapter.issuance import Issuance, names_of

        issuance = Issuance(
            kube,
            secret=settings.authority_secret,
            namespace=self.service.namespace,
            names=(*names_of(self.service), *settings.tls_names),
            place=own,
            replaced=self._handover.replaced,
        )
        return issuance.bundle

    def _exporter_credentials(self) -> Credentials:
        settings = self._settings
        files = CredentialFiles(
            ca=settings.exporter_ca_file,
            certificate=settings.exporter_cert_file,
            key=settings.exporter_key_file,
            token=settings.exporter_token_file,
        )
        name = settings.exporter_server_name
        if self.slices is not None and settings.exporter_scheme == "https":
            namespace = settings.exporter_namespace or own_namespace()
            name = name or f"{settings.exporter_service}.{namespace}.svc"
        return Credentials(files, name)

    async def _reload(self) -> None:
        reloads = ReloadMetrics(self._metrics)
        await Reload(
            *self._watched,
            report=lambda valid: reloads.report(valid and self._configured.valid),
        ).run()

    def _facts(self) -> ClusterFacts:
        caches = Caches(
            pods=self.pods_cache,
            nodes=self.nodes_cache,
            quotas=self._quotas,
            priority_classes=self._priority_classes,
        )
        return ClusterFacts(caches, self._view, pool_label=self._settings.pool_label)

    def _all_nodes(self) -> Fleet:
        pods = self.pods_cache
        return Fleet(
            self._view,
            lambda name: self.nodes_cache.objects.get(("", name)),
            pool_label=self._settings.pool_label,
            pods_known=lambda: pods.synced and not pods.fault,
        )

    def _slices(self, kube: Kube) -> Cache[EndpointSlice]:
        settings = self._settings
        namespace = settings.exporter_namespace or own_namespace()
        chosen = discovery.selection(settings.exporter_service, namespace)
        return Cache(kube, ENDPOINT_SLICE, chosen)

    def _targets(self) -> Targets:
        if self.slices is None:
            return discovery.fixed(self._settings.exporters)
        return discovery.of_slices(self.slices, self._settings.exporter_scheme)

    def _listen(self) -> None:
        self.pods_cache.listen(self._pods.changed)
        self.published.listen(self._trust.published)
        if self.slices is not None:
            self.slices.listen(lambda _old, _new: self.exporters.wake())


async def serve(settings: AdapterSettings) -> None:
    """Connect to the cluster named in the settings, and serve until cancelled.

    Raises:
        ConfigurationError, CertificateError, CredentialsError: the settings cannot be used.
        OSError: an address is taken.
    """
    reconnect = partial(connect, settings.kubeconfig)
    server = ApiServer(await reconnect(), reconnect)
    try:
        await Adapter(settings, server).run()
    finally:
        await server.close()
