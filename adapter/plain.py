"""The plain port: for the kubelet and Prometheus, which have no front proxy certificate.

Nothing of the metrics APIs is served here.
"""

import time

from aiohttp import web

from adapter.cluster.requests import Requests
from adapter.readiness import Readiness
from adapter.sources.source import SnapshotSource
from slicewatch.catalog.own import EXPORTER_AGE, EXPORTER_CONNECTED, PODS_SYNCED, REJECTED_LINES
from slicewatch.kube.cache import Cache
from slicewatch.kube.objects import Pod
from slicewatch.service.exposition import negotiate
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.service.server import add_health


class PlainPort:
    """``/metrics`` and health."""

    def __init__(
        self,
        metrics: OwnMetrics,
        requests: Requests,
        source: SnapshotSource,
        pods: Cache[Pod],
    ) -> None:
        self._metrics = metrics
        self._requests = requests
        self._source = source
        self._pods = pods
        self._connected = metrics.gauge(EXPORTER_CONNECTED)
        self._age = metrics.gauge(EXPORTER_AGE)
        self._rejected = metrics.counter(REJECTED_LINES)
        self._synced = metrics.gauge(PODS_SYNCED)

    def app(self, readiness: Readiness) -> web.Application:
        """Return the application."""
        app = web.Application()
        add_health(app, readiness.checks())
        app.router.add_get("/metrics", self.handle)
        return app

    async def handle(self, request: web.Request) -> web.Response:
        """Answer a scrape in the format that the scraper prefers."""
        form = negotiate(request.headers.get("Accept", ""))
        self._observe()
        own = self._metrics.render(form)
        # Our own metrics end an OpenMetrics exposition, so they come last.
        body = self._requests.render(form) + own
        return web.Response(body=body, headers={"Content-Type": form.value})

    def _observe(self) -> None:
        """Set what is known only when it is asked for."""
        now = time.monotonic()
        self._synced.set(float(self._pods.synced and not self._pods.fault))
        for metric in (self._connected, self._age, self._rejected):
            metric.clear()
        for target, stream in self._source.streams.items():
            reading = self._source.readings.get(target)
            node = target if reading is None else reading.layout.node
            self._connected.labels(node).set(float(stream.connected))
            self._rejected.labels(node).inc(stream.rejected)
            if reading is not None:
                self._age.labels(node).set(now - reading.received_at)
