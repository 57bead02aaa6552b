"""The rhythm of the exporter: one pass over all GPUs, one snapshot, once per tick."""

import asyncio
import math
import time
from collections.abc import Callable

from exporter.measure.attribution import Attribution
from exporter.measure.board import Board
from exporter.measure.event_counts import EventCounts
from exporter.nvml.protocol import Value
from exporter.nvml.reader import RESOLUTION, Cycle
from exporter.nvml.supervisor import Supervisor
from exporter.publication import Publication
from exporter.tenants.tenants import TenantMap
from slicewatch.catalog import CATALOG, own
from slicewatch.service import logs
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.wire.layout import Device, Layout, Tenant
from slicewatch.wire.snapshot import Snapshot

# The rest of the tick belongs to whoever reads what was published.
PATIENCE_SHARE = 0.5
# Timers of the loop are whole milliseconds and may go off a little early: a tick that is closer
# than this share was the one that just ran.
EARLY_SHARE = 0.1

Tell = Callable[[tuple[Cycle, ...], tuple[Tenant, ...], float], None]

log = logs.logger(__name__)


def _nobody(_: tuple[Cycle, ...], __: tuple[Tenant, ...], ___: float) -> None:
    """Nobody wants to know."""


def next_tick(now: float, tick_seconds: float) -> float:
    """Return when the next tick is due, on a grid of whole ticks of the clock.

    A tick that is late does not make up for the ones that it missed.
    """
    ticks = now / tick_seconds
    return (math.floor(ticks + EARLY_SHARE) + 1) * tick_seconds


class Ticker:
    """Brings supervisor, board, tenants and publication together.

    Args:
        tell: called with the passes, the tenants and the time of each tick.
    """

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        board: Board,
        tenants: TenantMap,
        attribution: Attribution,
        event_counts: EventCounts,
        publication: Publication,
        own_metrics: OwnMetrics,
        tick_seconds: float,
        tell: Tell = _nobody,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._supervisor = supervisor
        self._board = board
        self._tenants = tenants
        self._attribution = attribution
        self._event_counts = event_counts
        self._tell = tell
        self._publication = publication
        self._own = own_metrics
        self._tick_seconds = tick_seconds
        self._clock = clock
        self._silent: dict[Device, str] = {}
        self._down_reason: str | None = None
        self._failed: set[str] | None = None
        # A gauge without labels is 0 until it is set, which is no age that anybody knows.
        self._tenants_age = own_metrics.gauge(own.TENANTS_AGE)
        self._unresolved = own_metrics.gauge(own.UNRESOLVED)
        own_metrics.registry.unregister(self._tenants_age)
        own_metrics.registry.unregister(self._unresolved)
        self._tenants_age_shown = False
        self._probes = (RESOLUTION, *(probe.name for probe in CATALOG.probes()))
        spent = own_metrics.counter(own.PROBE_SECONDS)
        self._spent = {probe: spent.labels(probe) for probe in self._probes}

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            await self.tick()
            now = self._clock()
            await asyncio.sleep(next_tick(now, self._tick_seconds) - now)

    async def tick(self) -> None:
        """Read, merge, publish."""
        began = self._clock()
        cycles = await self._supervisor.pass_all(PATIENCE_SHARE * self._tick_seconds)
        now = self._clock()
        self._board.merge(cycles, now)
        self._publication.publish(*self._snapshot(cycles, now))
        self._say_who_is_silent(now)
        self._observe(cycles)
        self._observe_tenants(now)
        self._own.histogram(own.TICK_SECONDS).observe(self._clock() - began)

    def _snapshot(self, cycles: tuple[Cycle, ...], now: float) -> tuple[Layout, Snapshot]:
        board, devices = self._board, self._board.devices
        holders = self._tenants.holders(devices, now)
        self._tell(cycles, holders.tenants, now)
        self._attribution.take(cycles, holders)
        uses = self._attribution.uses(
            devices, board.up(now), holders, capacity=board.capacity(), pressure=board.pressure()
        )
        return board.publish(now, holders, uses, self._event_counts.columns(devices))

    def _say_who_is_silent(self, now: float) -> None:
        """Log each GPU that stops answering and each that answers again, once."""
        silent = self._board.silent(now)
        before, self._silent = self._silent, silent
        for gpu, reason in silent.items():
            if before.get(gpu) != reason:
                log.warning("GPU is down", gpu=gpu.gpu, uuid=gpu.uuid, reason=reason)
        for gpu in before.keys() - silent.keys():
            log.info("GPU is up again", gpu=gpu.gpu, uuid=gpu.uuid)

    def _observe(self, cycles: tuple[Cycle, ...]) -> None:
        self._observe_driver()
        spent: dict[str, float] = {}
        failed: set[str] = set()
        for cycle in cycles:
            failed |= cycle.failed
            if not isinstance(cycle.devices, Value):
                failed.add(RESOLUTION)
            for probe, seconds in cycle.spent.items():
                spent[probe] = spent.get(probe, 0.0) + seconds
        for probe, seconds in spent.items():
            self._spent[probe].inc(seconds)
        if cycles and failed != self._failed:
            self._failed = failed
            success = self._own.gauge(own.PROBE_SUCCESS)
            for probe in self._probes:
                success.labels(probe).set(probe not in failed)

    def _observe_driver(self) -> None:
        if (reason := self._supervisor.down_reason) != self._down_reason:
            self._down_reason = reason
            driver = self._own.gauge(own.DRIVER_UP)
            driver.clear()
            driver.labels(reason).set(not reason)

    def _observe_tenants(self, now: float) -> None:
        """Show the kubelet's last answer, how old it is and how whole; nothing before the first."""
        age = self._tenants.age_seconds(now)
        if age is None:
            return
        if not self._tenants_age_shown:
            self._tenants_age_shown = True
            self._own.registry.register(self._tenants_age)
            self._own.registry.register(self._unresolved)
        self._tenants_age.set(age)
        self._unresolved.set(len(self._tenants.unresolved))
