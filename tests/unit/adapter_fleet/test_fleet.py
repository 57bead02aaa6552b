"""The fleet page's state: each device counts once, what is silent or ill comes first."""

import asyncio
import json
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from adapter.cluster.pods import Pods
from adapter.fleet import fleet as module
from adapter.fleet import summary
from adapter.fleet.fleet import Fleet
from adapter.fleet.page import FleetPage, add_off
from adapter.sources.fake import FakeSource
from adapter.sources.source import Target
from adapter.view import View
from health.checks.model import Condition
from slicewatch.kube.objects import Metadata, Node, NodeSaying, NodeSpec, NodeStatus
from slicewatch.pages.message import Health
from slicewatch.service.server import Address, serving
from slicewatch.wire.snapshot import encode
from testbed import fleet
from testbed.front_proxy import ManualClock

POOL = "nvidia.com/gpu.product"


class World:
    """Readings and nodes, and the fleet that is made of them."""

    def __init__(self):
        self.clock = ManualClock(100.0)
        self.source, self.nodes, self.pods_known = FakeSource(), {}, True
        view = View(
            Pods(), self.source, max_age_seconds=15.0, monotonic=self.clock, wall=self.clock
        )
        self.fleet = Fleet(
            view, self.nodes.get, pool_label=POOL, pods_known=lambda: self.pods_known,
            clock=self.clock,
        )  # fmt: skip

    def node(self, name, pool="a", *, cordoned=False, conditions=()):
        self.nodes[name] = Node(
            metadata=Metadata(name=name, labels={POOL: pool} if pool else {}),
            spec=NodeSpec(unschedulable=cordoned),
            status=NodeStatus(conditions=tuple(conditions)),
        )

    def receive(self, name, devices=None, means=None, *, tenants=(), **about):
        rows = fleet.layout(devices or [fleet.gpu(0, node=name)], tenants, node=name)
        line = encode(fleet.frame(rows, fleet.snapshot(rows, means, **about)))
        self.source.receive(Target(f"http://{name}:9400"), line, self.clock())

    async def state(self, *arguments):
        await self.fleet.make()
        return self.fleet.state(*arguments)


@pytest.fixture
def world():
    return World()


async def test_pools_are_added_up_and_each_device_counts_once(world):
    for name, pool in (("n1", "a"), ("n2", "a"), ("n3", "b")):
        world.node(name, pool)
    world.receive("n1", means={"gpu_utilization": [80.0]})
    world.receive(
        "n2",
        [fleet.gpu(0, node="n2", mig_enabled=True), fleet.mig(0, 1, node="n2")],
        {"gpu_utilization": [None, 20.0]},
        tenants=[fleet.tenant("MIG-n2-0-1", "p")],
    )
    world.receive("n3", means={"gpu_utilization": [None]})
    state = await world.state()
    assert [(pool.name, pool.totals.nodes, pool.totals.devices) for pool in state.pools] == [
        ("a", 2, 2),
        ("b", 1, 1),
    ]
    first, second = (pool.totals for pool in state.pools)
    assert (first.utilization, first.known, first.allocated) == (50.0, 2, 1)
    assert (second.utilization, second.known) == (None, 0)
    assert state.totals.utilization == 50.0
    assert all(pool.nodes == () for pool in state.pools)


async def test_memory_and_power_are_those_of_boards(world):
    devices = [fleet.gpu(0, mig_enabled=True), fleet.mig(0, 1), fleet.mig(0, 2)]
    world.receive("n1", devices, {"gpu_power_usage_watts": [300.0, None, None]})
    (pool,) = (await world.state()).pools
    assert pool.totals.memory_used_bytes == 20e9
    assert pool.totals.power_watts == 300.0


async def test_a_node_that_is_silent_has_no_values_and_says_for_how_long(world):
    world.receive("n1", means={"gpu_utilization": [80.0]})
    world.clock.at += 40
    (pool,) = (await world.state("")).pools
    (row,) = pool.nodes
    assert (row.health, row.totals.silent, row.totals.known) == (Health.UNKNOWN, 1, 0)
    assert row.finding == "its exporter has sent nothing for 40 s"
    assert pool.totals.utilization is None


async def test_the_worst_nodes_come_first(world):
    said = NodeSaying(type="GPUUnhealthy", status="True", message="GPU 3: lost")
    healthy = NodeSaying(type="GPUDegraded", status="False", message="")
    world.node("n1", conditions=[healthy])
    world.node("n2", conditions=[said], cordoned=True)
    world.node("n3", conditions=[NodeSaying(type="GPUDegraded", status="True", message="hot")])
    for name in world.nodes:
        world.receive(name)
    (pool,) = (await world.state("a")).pools
    assert [(row.node, row.health) for row in pool.nodes] == [
        ("n2", Health.BAD),
        ("n3", Health.WARNING),
        ("n1", Health.GOOD),
    ]
    assert pool.nodes[0].finding == "GPUUnhealthy: GPU 3: lost"
    assert (pool.health, pool.totals.cordoned) == (Health.BAD, 1)


async def test_a_gpu_that_does_not_answer_makes_its_node_bad(world):
    world.receive("n1", [fleet.gpu(0), fleet.gpu(1)], up=[True, False])
    (pool,) = (await world.state("")).pools
    assert pool.nodes[0].finding == "1 of its GPUs do not answer"
    assert (pool.health, pool.totals.unwell) == (Health.BAD, 1)


async def test_who_holds_devices_is_unknown_where_the_kubelet_says_nothing(world):
    world.source.receive(Target("http://n1:9400"), encode(fleet.blind_frame("n1")), world.clock())
    (pool,) = (await world.state()).pools
    assert pool.totals.allocated is None


async def test_a_search_finds_nodes_of_all_pools_by_pod_model_and_uuid(world):
    for name, pool in (("n1", "a"), ("n2", "b")):
        world.node(name, pool)
        world.receive(name, tenants=[fleet.tenant(f"GPU-{name}-0", f"web-{name}")])
    for words, found in (("WEB-n2", ["n2"]), ("h200", ["n1", "n2"]), ("gpu-n1-0 ml/", ["n1"])):
        state = await world.state(None, words)
        assert [row.node for pool in state.pools for row in pool.nodes] == found


async def test_only_so_many_words_are_looked_for(world):
    world.receive("n1")
    state = await world.state(None, " ".join(["n1"] * module.MOST_WORDS + ["nowhere"]))
    assert sum(len(pool.nodes) for pool in state.pools) == 1


async def test_a_search_ends_at_what_anybody_reads(world, monkeypatch):
    monkeypatch.setattr(module, "MOST_FOUND", 3)
    for number in range(6):
        world.node(f"n{number}", "ab"[number % 2])
        world.receive(f"n{number}")
    state = await world.state(None, "h200")
    assert sum(len(pool.nodes) for pool in state.pools) == 3


async def test_a_node_in_full_has_its_conditions_and_its_gpus(world):
    said = NodeSaying(type="GPUResetRequired", status="True", message="GPU 0: a row")
    world.node("n1", conditions=[said], cordoned=True)
    world.receive("n1")
    state = world.fleet.node("n1")
    assert (state.cordoned, state.pool, state.health) == (True, "a", Health.WARNING)
    assert [gpu.uuid for gpu in state.gpus] == ["GPU-n1-0"]
    assert world.fleet.node("n9") is None


def test_the_conditions_are_those_of_the_health_monitor():
    assert set(summary.CONDITIONS) == set(Condition)


async def test_a_pass_lets_others_run_in_between(world):
    for number in range(3 * module.NODES_OF_A_STEP):
        world.receive(f"n{number}")
    turns = 0

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(count())
    await world.fleet.make()
    task.cancel()
    assert turns >= 3


@asynccontextmanager
async def served(world, *, with_page=True):
    app = web.Application()
    if with_page:
        FleetPage(world.fleet).add(app)
    else:
        add_off(app)
    running = asyncio.ensure_future(world.fleet.run())
    try:
        async with (
            serving(app, Address("127.0.0.1", 0)) as address,
            aiohttp.ClientSession(f"http://{address}") as client,
        ):
            yield client
    finally:
        running.cancel()


async def test_who_asks_once_gets_a_pass_and_not_nothing(world):
    world.receive("n1")
    async with served(world) as client, client.get("/fleet") as answer:
        assert (await answer.json())["totals"]["nodes"] == 1


async def test_events_tell_of_a_pool_and_of_a_node(world):
    world.node("n1", "a b/c")
    world.receive("n1")
    await world.fleet.make()
    async with served(world) as client:
        for path in ("/fleet/events?pool=a%20b%2Fc", "/fleet/node/n1/events"):
            async with client.get(path) as answer:
                await answer.content.readuntil(b"data: ")
                state = json.loads(await answer.content.readuntil(b"\n\n"))
            assert "n1" in json.dumps(state)


@pytest.mark.parametrize("path", ["/fleet/node/n9", "/fleet/node/n9/events"])
async def test_a_node_that_there_is_not_is_not_found(world, path):
    async with served(world) as client, client.get(path) as answer:
        assert (answer.status, "n9" in await answer.text()) == (404, True)


@pytest.mark.parametrize("path", ["/", "/fleet", "/fleet/node/n1", "/assets/fleet.js"])
async def test_switched_off_it_says_so(world, path):
    async with served(world, with_page=False) as client, client.get(path) as answer:
        assert (answer.status, "fleet_page" in await answer.text()) == (404, True)
