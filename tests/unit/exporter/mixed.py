"""One scrape of the node ``mixed``, and how a family is told what it should have said.

A family's expectation is a function from the scene to all of its series: what it lacks must not be
there. It is computed while the clock stands where the scrape was made.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

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
from simulator.stage import MigDevice
from slicewatch.catalog import CATALOG, own
from slicewatch.hardware.prices import DOLLARS_PER_HOUR
from slicewatch.service.exposition import Format
from slicewatch.service.own_metrics import OwnMetrics

WINDOW, CONTENTION_WINDOW = 15, 60
# The exporter starts into a node that has run for a while. Not at a whole minute, so that no load
# of the scenario jumps at the moment of a scrape.
BEGAN = 67.0

Labels = frozenset[tuple[str, str]]


class Within(NamedTuple):
    """A value, and by how much at most another may differ from it."""

    value: float
    tolerance: float = 0.0

    def holds(self, said: float) -> bool:
        # What is exact may have been divided and multiplied again.
        return abs(said - self.value) <= self.tolerance + 1e-9 * abs(self.value)


class Place(NamedTuple):
    """A GPU, or one MIG device on it."""

    gpu: object
    mig: MigDevice | None = None

    @property
    def uuid(self):
        return (self.mig or self.gpu).uuid

    @property
    def memory_bytes(self):
        return self.mig.profile.memory_bytes if self.mig else self.gpu.model.memory_bytes


Expect = Callable[["Scene"], Mapping[Labels, Within]]


class Scene:
    """The node and what it said, at one moment.

    Attributes:
        began: when the exporter first looked; ``now``, when it was scraped.
        said: by family, its series and their values.
        page: the text as it was scraped, with what the exporter says of itself.
        frame: the line that an adapter gets.
        rejected: families of which a value was not believed.
    """

    def __init__(self, fleet, page, frame, rejected):
        self.fleet = fleet
        self.truth = fleet.truth
        self.node = fleet.nodes[0]
        self.began, self.now = BEGAN, fleet.now
        self.page, self.frame = page, frame
        self.rejected = rejected
        self.said = _parsed(page)
        boards = [Place(gpu) for gpu in self.node.gpus]
        self.boards = boards
        self.places = [
            place
            for board in boards
            for place in (board, *(Place(board.gpu, mig) for mig in board.gpu.mig_devices))
        ]

    def labels(self, place, **more) -> Labels:
        """Return what identifies a place, and further labels; empty ones are no labels."""
        mig = place.mig
        found = {
            "gpu": str(place.gpu.index),
            "uuid": place.uuid,
            "model": place.gpu.model.nvml_name,
            "node": self.node.name,
            "gpu_instance": str(mig.gpu_instance_id) if mig else "",
            "compute_instance": str(mig.compute_instance_id) if mig else "",
            "profile": mig.profile.name if mig else "",
            **more,
        }
        return frozenset((name, value) for name, value in found.items() if value)


def each(value, *names, within=0.0) -> Expect:
    """Return the expectation of a family of devices.

    Args:
        value: a number, or from scene and place to one; None for no series; with ``names``, a
            mapping from the values of these labels.
        names: labels of the family's own.
        within: a tolerance, or a function like ``value``.
    """

    def expect(scene):
        found = {}
        for place in scene.places:
            given = _at(value, scene, place)
            tolerance = None if given is None else _at(within, scene, place)
            if names:
                for texts, number in (given or {}).items():
                    own = (texts,) if isinstance(texts, str) else texts
                    labels = scene.labels(place, **dict(zip(names, own, strict=True)))
                    found[labels] = Within(number, tolerance)
            elif given is not None:
                found[scene.labels(place)] = Within(given, tolerance)
        return found

    return expect


def boards(value, *names, within=0.0) -> Expect:
    """Return the expectation of a family that MIG devices do not have; see ``each``."""
    return each(
        lambda scene, place: None if place.mig else _at(value, scene, place), *names, within=within
    )


def _at(given, scene, place):
    return given(scene, place) if callable(given) else given


def scrape(at):
    """Run the exporter on the node tick by tick until a second of it, and return the scene."""
    return asyncio.run(_scrape(at))


async def _scrape(at):
    fleet = Fleet.named("mixed")
    fleet.advance_to(BEGAN)
    node = fleet.nodes[0]
    own_metrics, rejected, tenants = OwnMetrics(own.EXPORTER), [], TenantMap()

    def now():
        return fleet.now

    publication = Publication(CATALOG.metrics, own_metrics.render, clock=now)
    board = Board(
        run="r", node=node.name, labels={}, window_seconds=WINDOW, tick_seconds=1,
        stale_seconds=5, reject=rejected.append, prices=Prices(DOLLARS_PER_HOUR),
    )  # fmt: skip
    supervisor = Supervisor(
        SimulatedNvml(node),
        Plan.of(CATALOG.metrics),
        begin=lambda driver, slots: board.begin(driver.driver, slots, now()),
        end=board.end,
        clock=now,
    )
    attribution = Attribution(
        SimulatedProcesses(node), window_seconds=CONTENTION_WINDOW, short_window_seconds=WINDOW,
        reject=rejected.append,
    )  # fmt: skip
    ticker = Ticker(
        supervisor=supervisor, board=board, tenants=tenants, attribution=attribution,
        event_counts=EventCounts(EventLog(), lambda _: None),
        publication=publication, own_metrics=own_metrics, tick_seconds=1, clock=now,
    )  # fmt: skip
    while True:
        _tell(tenants, fleet, node)
        await ticker.tick()
        if fleet.now >= at:
            break
        fleet.advance_to(fleet.now + 1)
    page = publication.exposition(Format.TEXT, compressed=False).decode()
    frame = publication.frame_now()
    await supervisor.close()
    return Scene(fleet, page, frame, rejected)


def _tell(tenants, fleet, node):
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


def _parsed(page):
    said = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            series = said.setdefault(sample.name, {})
            labels = frozenset(sample.labels.items())
            assert labels not in series, f"{sample.name} has {dict(labels)} twice"
            series[labels] = sample.value
    return said
