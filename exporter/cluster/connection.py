"""One connection to the API server, and a watch for each thing that the settings ask about."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final

from exporter.cluster.node_labels import MigStateFeed
from exporter.cluster.pods import PodFeed
from exporter.cluster.slices import SliceFeed
from exporter.settings import ExporterSettings
from exporter.tenants.tenants import TenantMap
from slicewatch.kube.cache import Cache
from slicewatch.kube.objects import NODE_METADATA, POD_IDENTITY, RESOURCE_SLICE, Selection
from slicewatch.kube.protocol import Kube
from slicewatch.service import logs
from slicewatch.service.backoff import Backoff
from slicewatch.service.tasks import background

log = logs.logger(__name__)

Tell = Callable[[str], None]
Connect = Callable[[], AbstractAsyncContextManager[Kube]]

API_SERVER: Final = "API server"


@asynccontextmanager
async def following(
    settings: ExporterSettings,
    tenants: TenantMap,
    *,
    mig_state: Tell = lambda _: None,
    connect: Connect | None = None,
) -> AsyncIterator["Cluster"]:
    """Follow what the settings ask for while the body runs; never waits for the API server.

    A cluster without access, rights or one of the APIs ends nothing: it is logged once, tried
    again, and told by ``Cluster.faults``, while what was known before stays as it is.

    Args:
        settings: say what is asked; see ``ExporterSettings.asks_cluster``.
        tenants: their ``pods`` and ``published`` are kept up to date.
        mig_state: called with each new value of the node's label, ``""`` without one.
        connect: opens a connection; by default to the API server of the settings.
    """
    cluster = Cluster(settings, tenants, mig_state)
    # The client is imported here, where the exporter starts, and not later during a tick.
    run = cluster.run(connect or partial(_api_server(), settings.kubeconfig))
    async with background(("cluster", run)):
        yield cluster


class Cluster:
    """What is asked about this node."""

    def __init__(self, settings: ExporterSettings, tenants: TenantMap, mig_state: Tell) -> None:
        self._settings = settings
        self._tenants = tenants
        self._mig_state = mig_state
        self._caches: tuple[Cache[Any], ...] = ()
        self._fault = "not connected yet"

    @property
    def faults(self) -> Mapping[str, str]:
        """Why some of it may be unknown or out of date: reasons by kind of object, or none."""
        if self._fault:
            return {API_SERVER: self._fault}
        return {cache.kind.name: cache.fault for cache in self._caches if cache.fault}

    async def run(self, connect: Connect) -> None:
        """Follow everything until cancelled."""
        async with AsyncExitStack() as stack:
            kube = await self._connected(stack, connect)
            self._caches = self._asked(kube)
            async with asyncio.TaskGroup() as group:
                for cache in self._caches:
                    group.create_task(cache.run(), name=f"watch {cache.kind.plural}")

    async def _connected(self, stack: AsyncExitStack, connect: Connect) -> Kube:
        from slicewatch.kube.configuration import ConfigurationError

        waits = Backoff()
        while True:
            try:
                kube = await stack.enter_async_context(connect())
            except ConfigurationError as error:
                if str(error) != self._fault:
                    log.warning("no access to the API server", error=str(error))
                self._fault = str(error)
                await asyncio.sleep(waits.next_seconds())
            else:
                self._fault = ""
                return kube

    def _asked(self, kube: Kube) -> tuple[Cache[Any], ...]:
        settings, caches = self._settings, list[Cache[Any]]()
        here = Selection(node=settings.node)
        if settings.pod_labels or settings.pod_workloads:
            pods = Cache(kube, POD_IDENTITY, here)
            facts, labels = self._tenants.pods, settings.pod_labels
            pods.listen(PodFeed(facts, labels=labels, workloads=settings.pod_workloads).changed)
            caches.append(pods)
        if settings.resource_slices:
            slices = Cache(kube, RESOURCE_SLICE, here)
            slices.listen(SliceFeed(self._tenants.published).changed)
            caches.append(slices)
        if settings.mig_state_label:
            node = Cache(kube, NODE_METADATA, Selection(name=settings.node))
            node.listen(MigStateFeed(self._mig_state).changed)
            caches.append(node)
        return tuple(caches)


def _api_server() -> Callable[[str], AbstractAsyncContextManager[Kube]]:
    """Return what connects to an API server; loads the client, which takes a fifth of a second."""
    from slicewatch.kube.client import ApiServer
    from slicewatch.kube.configuration import connect

    @asynccontextmanager
    async def connected(kubeconfig: str) -> AsyncIterator[Kube]:
        reconnect = partial(connect, kubeconfig)
        server = ApiServer(await reconnect(), reconnect)
        try:
            yield server
        finally:
            await server.close()

    return connected
