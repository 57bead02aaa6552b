"""The plain port: for the kubelet and Prometheus, which have no front proxy certificate.

Nothing of the metrics APIs is served here.
"""

from collections.abc import Callable, Iterable

from aiohttp import web

from adapter.cluster.page import ClusterPage
from adapter.fleet.page import FleetPage, add_off
from adapter.observation import StreamMetrics
from adapter.readiness import Readiness
from adapter.sources.source import SnapshotSource
from slicewatch.catalog.own import PODS_SYNCED
from slicewatch.kube.cache import Cache
from slicewatch.kube.objects import Pod
from slicewatch.service.exposition import negotiate
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.service.server import add_health


class PlainPort:
    """``/metrics`` and health.

    Args:
        metrics: our own, rendered last.
        page: what the cluster has and wants.
        source: the exporters' streams.
        pods: all pods.
        observed: called before each rendering: sets what is known only when it is asked for.
        fleet: the page for people; None for none.
    """

    def __init__(
        self,
        metrics: OwnMetrics,
        page: ClusterPage,
        source: SnapshotSource,
        pods: Cache[Pod],
        observed: Iterable[Callable[[], None]] = (),
        fleet: FleetPage | None = None,
    ) -> None:
        self._metrics = metrics
        self._page = page
        self._pods = pods
        self._fleet = fleet
        self._synced = metrics.gauge(PODS_SYNCED)
        self._observed = (StreamMetrics(metrics, source).observe, self._observe, *observed)

    def app(self, readiness: Readiness) -> web.Application:
        """Return the application."""
        app = web.Application()
        add_health(app, readiness.checks())
        app.router.add_get("/metrics", self.handle)
        if self._fleet is None:
            add_off(app)
        else:
            self._fleet.add(app)
        return app

    async def handle(self, request: web.Request) -> web.Response:
        """Answer a scrape in the format that the scraper prefers."""
        form = negotiate(request.headers.get("Accept", ""))
        for observe in self._observed:
            observe()
        own = self._metrics.render(form)
        # Our own metrics end an OpenMetrics exposition, so they come last.
        body = self._page.render(form) + own
        return web.Response(body=body, headers={"Content-Type": form.value})

    def _observe(self) -> None:
        self._synced.set(float(self._pods.synced and not self._pods.fault))
