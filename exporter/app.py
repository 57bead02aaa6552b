"""The exporter as a process: puts the parts together and runs them."""

import contextlib
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from exporter.endpoints import Endpoints
from exporter.measure.board import Board
from exporter.measure.plan import Plan, chosen
from exporter.nvml.protocol import Driver, Nvml, Slot
from exporter.nvml.supervisor import Supervisor
from exporter.publication import Publication
from exporter.settings import ExporterSettings
from exporter.tenants.polling import follow
from exporter.tenants.protocol import PodResources
from exporter.tenants.tenants import TenantMap
from exporter.ticker import Ticker
from slicewatch.catalog import CATALOG, own
from slicewatch.service import logs
from slicewatch.service.exposition import Format
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.service.server import Address, Check, serving
from slicewatch.service.tasks import background

# An exporter is not unready for a tick or two that the machine was too busy to run.
READY_TICKS = 3

log = logs.logger(__name__)


@asynccontextmanager
async def exporting(
    settings: ExporterSettings, nvml: Nvml, kubelet: PodResources | None
) -> AsyncIterator[Address]:
    """Run an exporter while the body runs; yield the address that it serves."""
    metrics = OwnMetrics(own.EXPORTER)
    publication = _publication(settings, metrics)
    board = _board(settings, metrics)
    supervisor = _supervisor(nvml, board)
    tenants = TenantMap()
    metrics.gauge(own.SNAPSHOT_AGE).set_function(publication.age_seconds)
    ticker = Ticker(
        supervisor=supervisor, board=board, tenants=tenants, publication=publication,
        own_metrics=metrics, tick_seconds=settings.tick_seconds,
    )  # fmt: skip
    tasks = [("ticker", ticker.run())]
    if kubelet is not None:
        tasks.append(("tenants", follow(kubelet, tenants)))
    ready = {"snapshots": _recent(publication, settings)}
    app = Endpoints(publication, settings.node, ready).application()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(supervisor.close)
        await stack.enter_async_context(background(*tasks))
        address = await stack.enter_async_context(serving(app, settings.listen))
        log.info("serving", address=str(address), node=settings.node)
        yield address


def _publication(settings: ExporterSettings, metrics: OwnMetrics) -> Publication:
    def render(form: Format) -> bytes:
        return metrics.render(open_metrics=form is Format.OPEN_METRICS)

    return Publication(chosen(CATALOG.metrics, settings.metrics), render)


def _board(settings: ExporterSettings, metrics: OwnMetrics) -> Board:
    rejected = metrics.counter(own.REJECTED)
    return Board(
        run=uuid.uuid4().hex[:12],
        node=settings.node,
        labels=settings.labels,
        window_seconds=settings.window_seconds,
        tick_seconds=settings.tick_seconds,
        stale_seconds=settings.stale_seconds,
        reject=lambda name: rejected.labels(name).inc(),
    )


def _supervisor(nvml: Nvml, board: Board) -> Supervisor:
    def begin(driver: Driver, slots: tuple[Slot, ...]) -> None:
        board.begin(driver.driver, slots, time.monotonic())

    return Supervisor(nvml, Plan.of_catalog(), begin=begin, end=board.end)


def _recent(publication: Publication, settings: ExporterSettings) -> Check:
    limit = max(settings.scrape_interval, READY_TICKS * settings.tick_seconds)

    def check() -> str | None:
        if publication.snapshot is None:
            return "no snapshot yet"
        age = publication.age_seconds()
        return None if age <= limit else f"last snapshot is {age:.0f} s old, more than {limit:g} s"

    return check
