"""The exporter as a process: puts the parts together and runs them."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from exporter.cluster import following
from exporter.control import Control, release_on_signal
from exporter.dcgm import polling as dcgm
from exporter.dcgm.names import NATIVE
from exporter.dcgm.source import DcgmSource
from exporter.driver_state import DriverState
from exporter.endpoints import Endpoints
from exporter.evidence.account import Account
from exporter.evidence.endpoint import EvidenceEndpoint
from exporter.families import chosen
from exporter.kernel_log.reader import KernelLog
from exporter.live import Effect, Live, Reread
from exporter.local_socket import listening
from exporter.measure.attribution import Attribution
from exporter.measure.board import Board
from exporter.measure.event_counts import EventCounts
from exporter.measure.prices import Prices
from exporter.measure.substitute import Substitute
from exporter.nvml.event_log import EventLog
from exporter.nvml.listener import Listener
from exporter.nvml.plan import Plan
from exporter.nvml.protocol import Driver, Nvml, Slot
from exporter.nvml.supervisor import Supervisor
from exporter.publication import Publication
from exporter.release import Release
from exporter.settings import ExporterSettings
from exporter.status.page import StatusPage
from exporter.tenants.owners import Processes
from exporter.tenants.polling import follow
from exporter.tenants.protocol import PodResources
from exporter.tenants.tenants import TenantMap
from exporter.ticker import Ticker
from slicewatch.catalog import CATALOG, events, own
from slicewatch.catalog.dcgm import HostLabel
from slicewatch.catalog.model import Metric
from slicewatch.service import logs
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.service.server import Address, Check, serving
from slicewatch.service.tasks import background

# An exporter is not unready for a tick or two that the machine was too busy to run.
READY_TICKS = 3

log = logs.logger(__name__)


@asynccontextmanager
async def exporting(
    settings: ExporterSettings,
    nvml: Nvml,
    kubelet: PodResources | None,
    processes: Processes,
    *,
    reread: Reread | None = None,
    at_once: asyncio.Event | None = None,
) -> AsyncIterator[Address]:
    """Run an exporter while the body runs; yield the address that it serves.

    Args:
        settings: at the start.
        nvml: the driver.
        kubelet: None where there is none.
        processes: know which containers they run in.
        reread: reads the settings anew; see ``Live``.
        at_once: set to have all files read now.
    """
    exporter = Exporter(settings, nvml, processes)
    live = Live(settings, exporter.metrics, exporter.effects(), reread=reread, at_once=at_once)
    live.start()
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(processes.close)
        stack.push_async_callback(exporter.supervisor.close)
        release_on_signal(exporter.release)
        await exporter.follow_cluster(stack)
        await stack.enter_async_context(
            background(*exporter.tasks(kubelet), ("reload", live.run()))
        )
        await exporter.listen_locally(stack)
        app = Endpoints(
            exporter.publication, settings.node, {"snapshots": exporter.recent(live)},
            gate=live.gate, snapshot_access=live.snapshot_access, status=exporter.status,
        ).application()  # fmt: skip
        address = await stack.enter_async_context(serving(app, settings.listen, live.gate.tls))
        log.info("serving", address=str(address), node=settings.node)
        yield address


class Exporter:
    """The parts of one exporter, which know each other and are not running yet."""

    def __init__(self, settings: ExporterSettings, nvml: Nvml, processes: Processes) -> None:
        self._settings = settings
        self.metrics = metrics = OwnMetrics(own.EXPORTER)
        rejected = metrics.counter(own.REJECTED)

        def reject(name: str) -> None:
            rejected.labels(name).inc()

        aliases = HostLabel(settings.dcgm_host_label) if settings.dcgm_names else None
        self.publication = Publication(_shown(settings), metrics.render, aliases=aliases)
        metrics.gauge(own.SNAPSHOT_AGE).set_function(self.publication.age_seconds)
        self.status = StatusPage(self.publication) if settings.status_page else None
        self._dcgm = (
            DcgmSource(interval_seconds=settings.dcgm_interval_seconds, reject=reject)
            if settings.dcgm_url
            else None
        )
        self.board = Board(
            run=uuid.uuid4().hex[:12], node=settings.node, labels=settings.labels,
            window_seconds=settings.window_seconds, tick_seconds=settings.tick_seconds,
            stale_seconds=settings.stale_seconds, reject=reject, prices=Prices(settings.prices),
            substitute=None if self._dcgm is None else Substitute(self._dcgm),
        )  # fmt: skip
        self.release = Release(settings.release_seconds)
        self._state, happened = DriverState(self.board, metrics), EventLog()
        listener = Listener(nvml, happened, report=self._state.listening)
        self.supervisor = Supervisor(
            nvml, _plan(settings), begin=self._begin, end=self._state.end, hold=self._state.hold,
            release=self.release, listener=listener,
        )  # fmt: skip
        self._kernel_log = (
            KernelLog(Path(settings.kernel_log), happened.add_logged)
            if settings.kernel_log
            else None
        )
        self.account = Account(
            board=self.board, supervisor=self.supervisor, publication=self.publication,
            listener=listener, events=happened, kernel_log=self._kernel_log,
            tick_seconds=settings.tick_seconds, pod_uid=processes.pod_uid,
        )  # fmt: skip
        self.tenants = TenantMap()
        self.ticker = Ticker(
            supervisor=self.supervisor, board=self.board, tenants=self.tenants,
            attribution=Attribution(
                processes, window_seconds=settings.contention_window_seconds,
                short_window_seconds=settings.window_seconds, reject=reject,
            ),
            event_counts=EventCounts(happened, metrics.counter(events.DROPPED).inc),
            publication=self.publication, own_metrics=metrics, tell=self.account.take,
            tick_seconds=settings.tick_seconds,
        )  # fmt: skip

    def tasks(
        self, kubelet: PodResources | None
    ) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """Yield what runs all the time."""
        yield "ticker", self.ticker.run()
        if kubelet is not None:
            yield "tenants", follow(kubelet, self.tenants)
        if self.status is not None:
            yield "status", self.status.run()
        if self._dcgm is not None:
            yield "dcgm", dcgm.follow(self._dcgm, self._settings.dcgm_url)
        if self._kernel_log is not None:
            yield "kernel log", self._kernel_log.run()

    async def follow_cluster(self, stack: contextlib.AsyncExitStack) -> None:
        """Ask the API server for what the settings want of it."""
        if self._settings.asks_cluster:
            changed = self.release.follow_mig_state
            await stack.enter_async_context(
                following(self._settings, self.tenants, mig_state=changed)
            )

    async def listen_locally(self, stack: contextlib.AsyncExitStack) -> None:
        """Serve local callers on the Unix sockets, as far as there are any."""
        settings = self._settings
        if settings.evidence_socket:
            evidence = EvidenceEndpoint(self.account).application()
            await stack.enter_async_context(
                listening(
                    evidence, Path(settings.evidence_socket), setting="evidence_socket",
                    group=settings.evidence_group,
                )
            )  # fmt: skip
        if settings.control_socket:
            control = Control(
                release=self.release, supervisor=self.supervisor, board=self.board,
                publication=self.publication,
            )  # fmt: skip
            socket = Path(settings.control_socket)
            await stack.enter_async_context(
                listening(control.application(), socket, setting="control_socket")
            )

    def _begin(self, driver: Driver, slots: tuple[Slot, ...]) -> None:
        self._state.begin(driver, slots)
        self.account.begin(driver, slots)

    def effects(self) -> dict[str, Effect]:
        """Return how each setting that takes effect without a restart does so."""

        def show(settings: ExporterSettings) -> None:
            self.supervisor.follow(_plan(settings))
            self.publication.show(_shown(settings))

        def label(settings: ExporterSettings) -> None:
            self.board.labels = settings.labels

        def price(settings: ExporterSettings) -> None:
            self.board.prices = Prices(settings.prices)

        return {
            "metrics": show,
            "prices": price,
            "labels": label,
            "log_level": lambda settings: logs.configure(settings.log_level),
            # Whoever needs it asks for the settings of the moment.
            "scrape_interval": lambda _: None,
        }

    def recent(self, live: Live) -> Check:
        """Return the check that a snapshot was published lately."""

        def check() -> str | None:
            settings = live.settings
            limit = max(settings.scrape_interval, READY_TICKS * settings.tick_seconds)
            if self.publication.snapshot is None:
                return "no snapshot yet"
            age = self.publication.age_seconds()
            if age <= limit:
                return None
            return f"last snapshot is {age:.0f} s old, more than {limit:g} s"

        return check


def _shown(settings: ExporterSettings) -> tuple[Metric[Any], ...]:
    return chosen(CATALOG.metrics, settings.metrics)


def _plan(settings: ExporterSettings) -> Plan:
    """Return the reads for what is shown, under our own names and under dcgm-exporter's."""
    return Plan.of((*_shown(settings), *(NATIVE if settings.dcgm_names else ())))
