"""What the exporter says against what really was, on a simulated fleet that skips through time.

Bounds: a sample is a whole percent of its period and is read up to one period late, so that a
total may lag by one period and each sample be off by half a percent; a mean over the window has
the same bound over its length.
"""

from statistics import fmean

import pytest

from exporter.measure.attribution import Attribution
from exporter.measure.board import Board
from exporter.measure.event_counts import EventCounts
from exporter.nvml.event_log import EventLog
from exporter.nvml.plan import Plan
from exporter.nvml.simulated import SimulatedNvml
from exporter.nvml.supervisor import Supervisor
from exporter.publication import Publication
from exporter.tenants.simulated import SimulatedProcesses
from exporter.tenants.tenants import TenantMap
from exporter.ticker import Ticker
from simulator.fleet import Fleet
from simulator.scenario import SAMPLE_PERIOD_SECONDS, DriverGone, Garbage, Lost, MigLayout
from slicewatch.catalog import CATALOG, own
from slicewatch.service.own_metrics import OwnMetrics

WINDOW = 15
HALF_A_PERCENT = 0.005
GIB = 2**30
SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB, count: 3}
      - {model: A100-80GB, mig: [3g.40gb, ~, 1g.10gb]}
workloads:
  - name: wave
    load: {wave: {low: 0.05, high: 0.95, period: 97s}}
    memory: 30GiB
    pods: [{name: wave-0, devices: [{node: n, gpu: 0}]}]
  - name: steps
    load: {steps: [{at: 0s, level: 1.0}, {at: 40s, level: 0.0}, {at: 70s, level: 0.4}], repeat: 120s}
    memory: 7GiB
    pods: [{name: steps-0, devices: [{node: n, gpu: 1}]}]
  - name: slices
    load: 0.5
    memory: 5GiB
    pods: [{name: slices-0, devices: [{node: n, gpu: 3, mig: 0}]}]
"""


class Node:
    """An exporter without its servers on a simulated node, moved on tick by tick."""

    def __init__(self):
        self.fleet = Fleet.load(SCENARIO)
        self.fleet.advance_to(60)
        self.began = self.fleet.now
        self.gpus = self.fleet.node("n").gpus
        metrics = OwnMetrics(own.EXPORTER)
        self.rejected = []
        self.publication = Publication(CATALOG.metrics, lambda _: b"", clock=self._now)
        board = Board(
            run="r", node="n", labels={}, window_seconds=WINDOW, tick_seconds=1, stale_seconds=5,
            reject=self.rejected.append,
        )  # fmt: skip
        self.supervisor = Supervisor(
            SimulatedNvml(self.fleet.node("n")),
            Plan.of(()),
            begin=lambda driver, slots: board.begin(driver.driver, slots, self._now()),
            end=board.end,
            clock=self._now,
        )
        self.ticker = Ticker(
            supervisor=self.supervisor, board=board, tenants=TenantMap(),
            event_counts=EventCounts(EventLog(), lambda _: None),
            attribution=Attribution(
                SimulatedProcesses(self.fleet.node("n")), window_seconds=60,
                short_window_seconds=WINDOW, reject=self.rejected.append,
            ),
            publication=self.publication, own_metrics=metrics, tick_seconds=1, clock=self._now,
        )  # fmt: skip

    def _now(self):
        return self.fleet.now

    async def tick(self, count=1, after=1.0):
        for _ in range(count):
            self.fleet.advance_to(self.fleet.now + after)
            await self.ticker.tick()

    def column(self, name, kind="values"):
        snapshot, layout = self.publication.snapshot, self.publication.layout
        column = getattr(snapshot, kind)[name]
        return {d.uuid: value for d, value in zip(layout.devices, column, strict=True)}

    def value(self, name, gpu, kind="values"):
        return self.column(name, kind)[self.gpus[gpu].uuid]

    def up(self, gpu):
        devices = [device.uuid for device in self.publication.layout.devices]
        return self.publication.snapshot.up[devices.index(self.gpus[gpu].uuid)]

    def truth(self, gpu, begin, end):
        return self.fleet.truth.busy_seconds(self.gpus[gpu].uuid, begin, end)


@pytest.fixture
async def node():
    node = Node()
    await node.tick()
    yield node
    await node.supervisor.close()


@pytest.mark.parametrize("gpu", [0, 1, 2])
async def test_busy_seconds_are_the_time_that_kernels_ran(node, gpu):
    began = node.fleet.now
    for _ in range(10):
        await node.tick(30)
        passed = node.fleet.now - began
        said = node.value("gpu_busy_seconds_total", gpu)
        true = node.truth(gpu, began, node.fleet.now)
        assert said == pytest.approx(true, abs=SAMPLE_PERIOD_SECONDS + HALF_A_PERCENT * passed)


@pytest.mark.parametrize("gpu", [0, 1, 2])
async def test_utilization_is_the_share_of_the_window_in_which_kernels_ran(node, gpu):
    await node.tick(WINDOW)
    bound = 100 * (2 * SAMPLE_PERIOD_SECONDS / WINDOW + HALF_A_PERCENT)
    errors = []
    for _ in range(150):
        await node.tick()
        now = node.fleet.now
        true = 100 * node.truth(gpu, now - WINDOW, now) / WINDOW
        errors.append(node.value("gpu_utilization", gpu) - true)
    assert max(map(abs, errors)) <= bound
    # Lagging by a part of a sample shows as an error that changes its sign, not as a bias.
    assert abs(fmean(errors)) <= 0.75


async def test_irregular_ticks_change_nothing_about_it(node):
    began = node.fleet.now
    for after in (0.3, 2.7, 0.5, 1.1, 3.0, 0.4, 1.0, 2.0) * 15:
        await node.tick(after=after)
    passed = node.fleet.now - began
    said = node.value("gpu_busy_seconds_total", 0)
    assert said == pytest.approx(
        node.truth(0, began, node.fleet.now), abs=SAMPLE_PERIOD_SECONDS + HALF_A_PERCENT * passed
    )


async def test_energy_is_what_the_board_used(node):
    for gpu in range(3):
        await node.tick(20)
        true = node.fleet.truth.energy_joules(node.gpus[gpu].uuid, node.fleet.now)
        assert node.value("gpu_energy_joules_total", gpu) == pytest.approx(true, abs=0.001)


async def test_memory_is_what_the_tenants_allocated(node):
    used = node.column("gpu_memory_used_bytes")
    reported = {gpu: used[node.gpus[gpu].uuid] for gpu in range(4)}
    # Each process has a context besides; the simulator says how large.
    truth = {gpu: node.gpus[gpu].memory.used_bytes for gpu in range(4)}
    assert reported == truth
    assert reported[0] >= 30 * GIB
    assert reported[1] >= 7 * GIB
    for gpu in range(3):
        total = node.value("gpu_memory_total_bytes", gpu)
        share = node.value("gpu_memory_utilization", gpu)
        assert share == pytest.approx(100 * reported[gpu] / total)


async def test_memory_of_a_mig_device_is_that_of_its_tenant(node):
    parts = node.gpus[3].mig_devices
    used = node.column("gpu_memory_used_bytes")
    assert len(parts) == 2
    assert {part.uuid: used[part.uuid] for part in parts} == {
        part.uuid: node.gpus[3].mig_memory(part).used_bytes for part in parts
    }
    assert used[parts[0].uuid] >= 5 * GIB


async def test_a_lost_gpu_is_down_while_it_is_lost_and_its_total_goes_on(node):
    await node.tick(10)
    before = node.value("gpu_busy_seconds_total", 0)
    node.fleet.inject(Lost(node="n", gpu=0, lasts=25))
    seen = []
    for _ in range(60):
        await node.tick()
        seen.append((node.up(0), node.value("gpu_busy_seconds_total", 0), node.up(1)))
    assert not seen[0][0]
    assert seen[-1][0]
    assert all(other for _, _, other in seen)
    totals = [total for _, total, _ in seen if total is not None]
    assert totals[0] >= before
    assert totals == sorted(totals)


async def test_nonsense_is_never_published(node):
    await node.tick(20)
    before = node.value("gpu_busy_seconds_total", 0)
    node.fleet.inject(Garbage(node="n", gpu=0, lasts=10))
    for _ in range(9):
        await node.tick()
        assert node.up(0)
        for name in ("gpu_power_usage_watts", "gpu_temperature_celsius", "gpu_memory_used_bytes"):
            assert node.value(name, 0) is None
            assert node.value(name, 1) is not None
        assert node.value("gpu_busy_seconds_total", 0) == before
    assert node.rejected.count("gpu_temperature_celsius") == 9
    await node.tick(30)
    assert node.value("gpu_power_usage_watts", 0) is not None


async def test_a_new_mig_layout_is_there_with_the_next_tick(node):
    number = node.publication.layout.number
    node.fleet.inject(MigLayout(node="n", gpu=3, mig=("1g.10gb", "1g.10gb", None, "4g.40gb")))
    await node.tick()
    layout = node.publication.layout
    profiles = [device.profile for device in layout.devices if device.is_mig]
    assert sorted(profiles) == ["1g.10gb", "1g.10gb", "4g.40gb"]
    assert layout.number == number + 1
    await node.tick()
    assert node.publication.layout is layout


async def test_mig_that_is_switched_off_gives_the_gpu_its_utilization(node):
    assert node.value("gpu_utilization", 3) is None
    assert node.publication.layout.support["gpu_utilization"][3] == "mig_enabled"
    node.fleet.inject(MigLayout(node="n", gpu=3, mig=False))
    await node.tick(5)
    assert node.value("gpu_utilization", 3) is not None
    assert "gpu_utilization" not in node.publication.layout.support


async def test_a_driver_that_goes_and_comes_back_takes_everyone_down_and_brings_all_back(node):
    await node.tick(20)
    totals = node.column("gpu_busy_seconds_total")
    node.fleet.inject(DriverGone(node="n", lasts=10))
    await node.tick(3)
    assert not any(node.publication.snapshot.up)
    assert node.supervisor.down_reason == "no_driver"
    await node.tick(40)
    assert all(node.publication.snapshot.up)
    after = node.column("gpu_busy_seconds_total")
    for gpu in range(3):
        uuid = node.gpus[gpu].uuid
        assert after[uuid] >= totals[uuid]
