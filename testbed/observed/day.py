"""What Prometheus would have scraped of an exporter over a day, on the simulator's clock.

The real parts of an exporter tick over a simulated node; only its event loop's clock is another.
In the middle of the day the exporter is started anew, as in a roll-out.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exporter.measure.attribution import Attribution
from exporter.measure.board import Board
from exporter.measure.event_counts import EventCounts
from exporter.measure.prices import Prices
from exporter.nvml.event_log import EventLog
from exporter.nvml.plan import Plan
from exporter.nvml.simulated import SimulatedNvml
from exporter.nvml.supervisor import Supervisor
from exporter.publication import Publication
from exporter.tenants.protocol import Allocation, Offer
from exporter.tenants.simulated import SimulatedProcesses
from exporter.tenants.tenants import TenantMap
from exporter.ticker import Ticker
from simulator.fleet import Fleet
from simulator.node import SimulatedNode
from slicewatch.catalog import CATALOG, own
from slicewatch.hardware.prices import DOLLARS_PER_HOUR
from slicewatch.service.exposition import Format
from slicewatch.service.own_metrics import OwnMetrics

HEALTHY: Final = Path(__file__).parent / "healthy.yaml"
DAY_SECONDS: Final = 86_400.0
# As long as the driver keeps samples of processes.
TICK_SECONDS: Final = 10.0
SCRAPE_SECONDS: Final = 60.0
WINDOW_SECONDS: Final = 15.0
UP: Final = "".join(
    f'up{{job="slicewatch-{job}",node="gpu-healthy",instance="{job}"}} 1\n'
    for job in ("exporter", "adapter", "health")
)


@dataclass(frozen=True, slots=True)
class Scraped:
    """A page, and when it was scraped, in seconds of the scenario."""

    at: float
    text: str


def openmetrics(pages: list[Scraped], ends: float) -> Iterator[str]:
    """Yield the samples of pages as OpenMetrics, the last of them at ``ends`` since 1970."""
    last = pages[-1].at
    for page in pages:
        stamp = f" {ends - last + page.at:.3f}"
        for line in (page.text + UP).splitlines():
            if line and not line.startswith(("#", "python_", "process_")):
                yield _of_node(line) + stamp
    yield "# EOF"


def _of_node(line: str) -> str:
    """Add the label that the scrape adds, where the line has it not."""
    if 'node="' in line:
        return line
    name, brace, rest = line.partition("{")
    if brace:
        return f'{name}{{node="gpu-healthy",{rest}'
    name, _, value = line.partition(" ")
    return f'{name}{{node="gpu-healthy"}} {value}'


async def scraped(seconds: float = DAY_SECONDS, scenario: Path = HEALTHY) -> list[Scraped]:
    """Return the pages of a day."""
    fleet = Fleet.named(str(scenario))
    halves = (seconds / 2, seconds)
    pages: list[Scraped] = []
    for until in halves:
        pages += [page async for page in _life(fleet, until)]
    return pages


async def _life(fleet: Fleet, until: float) -> AsyncIterator[Scraped]:
    """Yield what one life of the exporter shows."""
    node, tenants = fleet.nodes[0], TenantMap()
    publication, ticker, supervisor = _exporter(fleet, node, tenants)
    due = fleet.now + SCRAPE_SECONDS
    while fleet.now < until:
        fleet.advance_to(fleet.now + TICK_SECONDS)
        _tell(tenants, fleet, node)
        await ticker.tick()
        if fleet.now >= due:
            due += SCRAPE_SECONDS
            text = publication.exposition(Format.TEXT, compressed=False).decode()
            yield Scraped(fleet.now, text)
    await supervisor.close()


def _exporter(
    fleet: Fleet, node: SimulatedNode, tenants: TenantMap
) -> tuple[Publication, Ticker, Supervisor]:
    def now() -> float:
        return fleet.now

    def reject(name: str) -> None:
        raise AssertionError(f"{name} cannot be true")

    own_metrics = OwnMetrics(own.EXPORTER)
    # There are no files that could be wrong.
    own_metrics.gauge(own.CONFIG_VALID).set(1)
    publication = Publication(CATALOG.metrics, own_metrics.render, clock=now)
    board = Board(
        run=f"r{fleet.now:g}", node=node.name, labels={}, window_seconds=WINDOW_SECONDS,
        tick_seconds=TICK_SECONDS, stale_seconds=4 * TICK_SECONDS, reject=reject,
        prices=Prices(DOLLARS_PER_HOUR),
    )  # fmt: skip
    supervisor = Supervisor(
        SimulatedNvml(node), Plan.of(CATALOG.metrics),
        begin=lambda driver, slots: board.begin(driver.driver, slots, now()),
        end=board.end, clock=now,
    )  # fmt: skip
    ticker = Ticker(
        supervisor=supervisor, board=board, tenants=tenants,
        attribution=Attribution(
            SimulatedProcesses(node), window_seconds=60.0, short_window_seconds=WINDOW_SECONDS,
            reject=reject,
        ),
        event_counts=EventCounts(EventLog(), lambda _: None), publication=publication,
        own_metrics=own_metrics, tick_seconds=TICK_SECONDS, clock=now,
    )  # fmt: skip
    return publication, ticker, supervisor


def _tell(tenants: TenantMap, fleet: Fleet, node: SimulatedNode) -> None:
    """Let the kubelet answer."""
    tenants.take(
        [
            Allocation(
                namespace=held.namespace, pod=held.pod, container=held.container,
                resource=held.resource, device_id=device_id,
            )
            for held in fleet.truth.allocations(node.name, fleet.now)
            for device_id in held.device_ids
        ],
        fleet.now,
    )  # fmt: skip
    offers = fleet.truth.offers(node.name, fleet.now)
    tenants.offers.take([Offer(resource, device_id) for resource, device_id in offers])
