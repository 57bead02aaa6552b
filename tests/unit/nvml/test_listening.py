"""A supervisor with somebody who listens: events survive what happens to NVML."""

import asyncio

import pytest

from exporter.nvml.event_log import EventLog
from exporter.nvml.listener import Listener
from exporter.nvml.plan import Plan
from exporter.nvml.protocol import Value
from exporter.nvml.supervisor import Supervisor
from exporter.release import Release
from simulator import scenario
from simulator.scenario import Seconds
from testbed import require
from testbed.binaries import Unavailable
from testbed.driver.worlds import driver_world, simulated_world

SCENARIO = "nodes: [{name: n, gpus: [{model: H100-80GB}, {model: RTX4090}]}]"
PATIENCE_SECONDS = 15.0
DEADLINE_SECONDS = 20


class Service:
    """A supervisor with a listener, on a node of a manual clock."""

    def __init__(self, world):
        self.world = world
        self.held = []
        self.said = []
        self.log = EventLog()
        self.release = Release(60, self.now)
        self.listener = Listener(world.nvml, self.log, report=self.said.append)
        self.supervisor = Supervisor(
            world.nvml,
            Plan.of(()),
            begin=lambda _, __: None,
            end=lambda _: None,
            hold=self.held.append,
            release=self.release,
            listener=self.listener,
            clock=self.now,
        )

    def now(self):
        return self.world.fleet.now

    async def tick(self):
        self.world.advance(1)
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.supervisor.pass_all(PATIENCE_SECONDS)

    async def until_it_listens(self, times=1):
        """Tick until it listens, for the so manieth time since it began."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while self.said[-1:] != [""] or self.said.count("") < times:
                await self.tick()
                await asyncio.sleep(0.01)

    async def thread_is_gone(self):
        await asyncio.to_thread(self.listener.join)

    def xids(self):
        return [happened.event.data for happened in self.log.after(0).events]


@pytest.fixture(params=["simulated", "driver"])
def world(request, tmp_path):
    if request.param == "simulated":
        return simulated_world(SCENARIO)
    try:
        return driver_world(SCENARIO, tmp_path / "driver.state")
    except Unavailable as why:
        require.skip_or_fail(str(why))


@pytest.fixture
async def service(world):
    made = Service(world)
    await made.until_it_listens()
    yield made
    world.clear()
    await made.supervisor.close()
    assert made.listener.stop()


async def test_a_release_waits_for_the_listener_and_afterwards_it_listens_again(service):
    """dcgm-exporter #706: a handle that was kept made a GPU busy for ever."""
    service.release.ask("test", 300)
    await service.tick()
    assert service.said[-1] == "stopped"
    await service.thread_is_gone()
    await service.tick()
    assert service.held == ["test"]
    service.release.resume()
    await service.until_it_listens()
    service.world.inject(scenario.Xid(node="n", gpu=0, xid=31))
    await service.supervisor.close()
    assert service.xids() == [31]


async def test_after_the_driver_was_loaded_anew_it_listens_again(service):
    service.world.inject(scenario.DriverGone(node="n", lasts=Seconds(2)))
    await service.until_it_listens(times=2)
    cycles = await service.tick()
    assert [type(cycle.devices) for cycle in cycles] == [Value, Value]
    service.world.inject(scenario.Xid(node="n", gpu=1, xid=43))
    await service.supervisor.close()
    assert service.xids() == [43]
