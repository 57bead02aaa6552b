"""The monitor put together: what each part is given, and the one group that runs its task."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from aiohttp import web

from health import source
from health.agent import Agent, Clocks
from health.caretaker import Caretaker
from health.checks.index import CHECKS
from health.checks.model import Check
from health.observation import Observation
from health.settings import HealthSettings
from health.source import EvidenceSource
from health.writes import DryRun, Writes
from slicewatch.catalog.health import HEALTH
from slicewatch.kube.client import ApiServer
from slicewatch.kube.configuration import connect, own_namespace
from slicewatch.kube.protocol import Kube
from slicewatch.service import logs
from slicewatch.service.exposition import negotiate
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.service.server import Address, add_health, serving
from slicewatch.service.tasks import background

log = logs.logger(__name__)


class Monitor:
    """The parts of one monitor, which know each other and are not running yet."""

    def __init__(
        self,
        settings: HealthSettings,
        kube: Kube,
        exporter: EvidenceSource,
        *,
        checks: Sequence[Check] = CHECKS,
        clocks: Clocks | None = None,
    ) -> None:
        clocks = clocks or Clocks()
        self.metrics = OwnMetrics(HEALTH)
        observation = Observation(self.metrics, dry_run=settings.dry_run, clock=clocks.monotonic)
        gate = (DryRun if settings.dry_run else Writes)(kube, observation.wrote)
        caretaker = Caretaker(
            gate, settings, namespace=settings.namespace or own_namespace(), checks=checks,
            observation=observation, clocks=clocks,
        )  # fmt: skip
        self.agent = Agent(
            node=settings.node_name,
            source=exporter, hands=caretaker, observation=observation,
            interval_seconds=settings.check_interval, clocks=clocks,
        )  # fmt: skip

    def application(self) -> web.Application:
        """Return what is served to the kubelet and to Prometheus."""
        app = web.Application()
        add_health(app, {"turn": self.agent.ready}, alive=self.agent.alive)
        app.router.add_get("/metrics", self._page)
        return app

    async def _page(self, request: web.Request) -> web.Response:
        form = negotiate(request.headers.get("Accept", ""))
        return web.Response(body=self.metrics.render(form), headers={"Content-Type": form.value})


@asynccontextmanager
async def monitoring(
    settings: HealthSettings, kube: Kube, exporter: EvidenceSource, clocks: Clocks | None = None
) -> AsyncIterator[Address]:
    """Run a monitor while the body runs; yield the address that it serves.

    When the body ends, everything on the node stays as it is.

    Raises:
        OSError: the address is taken.
    """
    monitor = Monitor(settings, kube, exporter, clocks=clocks)
    async with (
        serving(monitor.application(), settings.listen) as address,
        background(("agent", monitor.agent.run())),
    ):
        log.info(
            "serving", address=str(address), node=settings.node_name, dry_run=settings.dry_run
        )
        yield address


async def serve(settings: HealthSettings) -> None:
    """Connect to the cluster and the exporter named in the settings, and run until cancelled.

    Raises:
        ConfigurationError: there is no way to the API server.
        OSError: the address is taken.
    """
    async with AsyncExitStack() as stack:
        reconnect = partial(connect, settings.kubeconfig)
        server = ApiServer(await reconnect(), reconnect)
        stack.push_async_callback(server.close)
        exporter = await stack.enter_async_context(
            source.exporter_socket(settings.evidence_socket)
        )
        await stack.enter_async_context(monitoring(settings, server, exporter))
        await asyncio.Event().wait()
