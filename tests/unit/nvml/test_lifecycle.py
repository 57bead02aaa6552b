"""A supervisor over the life of a driver, the simulated one and the real binding alike.

What happens to GPUs and drivers on real nodes, tick by tick, with the reports that it comes from.
"""

import asyncio

import pynvml
import pytest

from exporter.nvml.life import COUNT_SECONDS
from exporter.nvml.plan import Plan
from exporter.nvml.protocol import Failed, Lost, Value
from exporter.nvml.restarts import FIRST_PAUSE_FOR_LOST_SECONDS
from exporter.nvml.supervisor import Supervisor
from exporter.release import Release
from simulator import scenario
from simulator.errors import ScenarioError
from simulator.scenario import Seconds
from testbed import require
from testbed.binaries import Unavailable
from testbed.driver import presentation
from testbed.driver.worlds import driver_world, simulated_world

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB, mig: [1g.10gb, null, 1g.10gb]}
      - {model: H100-80GB}
      - {model: RTX4090}
"""
PARTITIONED, WHOLE, DESKTOP = 0, 1, 2
PATIENCE_SECONDS = 15.0
UNKNOWN = 999


class Service:
    """A supervisor on a node of a manual clock, and what it told."""

    def __init__(self, world):
        self.world = world
        self.began = []
        self.ended = []
        self.held = []
        self.release = Release(60, self.now)
        self.supervisor = Supervisor(
            world.nvml,
            Plan.of(()),
            begin=lambda driver, slots: self.began.append((driver.driver, len(slots))),
            end=self.ended.append,
            hold=self.held.append,
            release=self.release,
            clock=self.now,
        )

    def now(self):
        return self.world.fleet.now

    async def tick(self, count=1):
        """Let a second pass and read; return by index of the GPU what the last pass found."""
        for _ in range(count):
            self.world.advance(1)
            async with asyncio.timeout(PATIENCE_SECONDS):
                cycles = await self.supervisor.pass_all(PATIENCE_SECONDS)
        return {cycle.gpu.gpu: cycle.devices for cycle in cycles}

    async def profiles(self, gpu=PARTITIONED):
        found = (await self.tick())[gpu]
        return {device.uuid: device.profile for device in found.value if device.is_mig}


@pytest.fixture(params=["simulated", "driver"])
def world(request, tmp_path):
    if request.param == "simulated":
        return simulated_world(SCENARIO)
    return _driver_world(tmp_path)


@pytest.fixture
def driver(tmp_path):
    return _driver_world(tmp_path)


def _driver_world(folder):
    try:
        return driver_world(SCENARIO, folder / "driver.state")
    except Unavailable as why:
        require.skip_or_fail(str(why))


@pytest.fixture
async def serve():
    """Start a service on a world and tick once; at the end close it."""
    services = []

    async def serve(world):
        services.append(service := Service(world))
        await service.tick()
        return service

    yield serve
    for service in services:
        service.world.clear()
        await service.supervisor.close()


def all_read(found):
    return set(found) == {0, 1, 2} and all(isinstance(one, Value) for one in found.values())


async def test_gpus_with_and_without_mig_on_one_node_are_all_read(world, serve):
    """dcgm-exporter #443, #747, #657, gpu-monitoring-tools #134: no start on partly partitioned nodes."""
    service = await serve(world)
    found = await service.tick()
    assert [len(found[index].value) for index in (PARTITIONED, WHOLE, DESKTOP)] == [3, 1, 1]


async def test_a_driver_that_is_upgraded_is_started_again_once_library_and_kernel_fit(
    world, serve
):
    """nvtop #95, #125: a version mismatch that stayed until somebody restarted the reader."""
    service = await serve(world)
    world.inject(scenario.DriverVersion(node="n", version="590.44.01", lasts=Seconds(30)))
    await service.tick(20)
    assert set(service.ended) == {"version_mismatch"}
    assert service.supervisor.down_reason == "version_mismatch"
    await service.tick(40)
    assert all_read(await service.tick())
    assert service.began[-1] == ("590.44.01", 3)


async def test_a_driver_that_is_unloaded_and_loaded_is_found_again(world, serve):
    """nvidia_gpu_exporter #65: nothing was read any more after the first failure."""
    service = await serve(world)
    world.inject(scenario.DriverGone(node="n", lasts=Seconds(5)))
    await service.tick(3)
    assert service.supervisor.down_reason == "no_driver"
    await service.tick(10)
    assert all_read(await service.tick())
    assert service.supervisor.down_reason == ""


async def test_a_gpu_that_is_lost_is_told_and_read_again_when_it_is_back(world, serve):
    """dcgm-exporter #348: a GPU off the bus vanished without a word."""
    service = await serve(world)
    world.inject(scenario.Lost(node="n", gpu=WHOLE, lasts=Seconds(40)))
    for _ in range(30):
        found = await service.tick()
        assert found.get(WHOLE, Lost("gpu_is_lost")) == Lost("gpu_is_lost")
        assert isinstance(found[DESKTOP], Value)
    # While it is lost NVML is started anew ever less often, for the sake of the others.
    await service.tick(50)
    assert all_read(await service.tick())


async def test_instances_that_are_replaced_between_two_passes_are_seen_at_once(world, serve):
    """gpu-monitoring-tools #142, instaslice #288, DCGM #276: no handle outlives a pass."""
    service = await serve(world)
    before = await service.profiles()
    world.inject(scenario.MigLayout(node="n", gpu=PARTITIONED, mig=("3g.40gb", "2g.20gb")))
    after = await service.profiles()
    assert sorted(before.values()) == ["1g.10gb", "1g.10gb"]
    assert sorted(after.values()) == ["2g.20gb", "3g.40gb"]
    assert len(service.began) == 1


async def test_a_mig_mode_that_waits_for_a_reset_lets_go_of_the_driver(world, serve):
    """DCGM #276, dcgm-exporter #706: the change waits for the last client to leave."""
    service = await serve(world)
    pending = world.inject(scenario.MigPending(node="n", gpu=WHOLE))
    assert all_read(await service.tick())
    await service.tick()
    assert service.held == ["mig_pending"]
    world.clear(pending)
    world.inject(scenario.MigLayout(node="n", gpu=WHOLE, mig=("7g.80gb",)))
    await service.tick(60)
    assert await service.profiles(WHOLE)
    assert service.held == ["mig_pending"]


async def test_a_gpu_without_mig_never_waits_for_a_mode(world, serve):
    service = await serve(world)
    with pytest.raises(ScenarioError, match="RTX4090 has no MIG"):
        world.inject(scenario.MigPending(node="n", gpu=DESKTOP))
    await service.tick(3)
    assert service.held == []


async def test_nothing_of_the_driver_is_held_in_a_release(driver, serve):
    """dcgm-exporter #706, #716, gpu-operator #118, dra-driver-nvidia-gpu #1076."""
    service = await serve(driver)
    assert (driver.feed.file.clients, driver.driver.references) == (1, 1)
    service.release.ask("request", 30)
    await service.tick()
    assert (driver.feed.file.clients, driver.driver.references) == (0, 0)
    driver.driver.forget_calls()
    await service.tick(28)
    assert driver.driver.calls() == {}
    await service.tick(3)
    assert driver.feed.file.clients == 1
    assert all_read(await service.tick())


async def test_device_files_that_are_missing_give_a_reason_and_are_waited_for(driver, serve):
    """DataDog #54128: after a restart of the container NVML answers UNKNOWN."""
    show_system(driver, init_error=UNKNOWN)
    service = Service(driver)
    for _ in range(4):
        await tick_unshown(service)
    assert set(service.ended) == {"unknown"}
    assert service.supervisor.down_reason == "unknown"
    assert driver.driver.references == 0
    for _ in range(8):
        found = await service.tick()
    assert all_read(found)
    await service.supervisor.close()


async def test_a_gpu_that_is_plugged_in_is_found(driver, serve):
    service = Service(driver)
    show_system(driver, gpu_count=2)
    for _ in range(3):
        await tick_unshown(service)
    assert service.began == [("580.95.05", 2)]
    await service.tick(int(COUNT_SECONDS + FIRST_PAUSE_FOR_LOST_SECONDS) + 3)
    assert service.began == [("580.95.05", 2), ("580.95.05", 3)]
    assert all_read(await service.tick())
    await service.supervisor.close()


async def test_a_gpu_whose_every_call_is_answered_with_unknown_costs_itself_alone(driver, serve):
    """go-dcgm #38, HAMi #1089, nvitop #146: one bad handle took all others with it."""
    service = await serve(driver)
    await service.tick(9)
    driver.fail(WHOLE, nvmlDeviceGetHandleByIndex_v2=UNKNOWN, nvmlDeviceGetUUID=UNKNOWN)
    for _ in range(60):
        found = await service.tick()
        assert found.get(WHOLE, Failed("UNKNOWN")) == Failed("UNKNOWN")
        assert isinstance(found[PARTITIONED], Value)
        assert isinstance(found[DESKTOP], Value)
    driver.alter(WHOLE, None)
    await service.tick(120)
    assert all_read(await service.tick())


async def test_closing_leaves_no_client_behind(driver, serve):
    service = await serve(driver)
    await service.supervisor.close()
    assert (driver.feed.file.clients, driver.driver.references) == (0, 0)
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetCount()


def show_system(world, **changes):
    """Let the driver say something else of itself, until the node is shown again."""
    state = presentation.system_state(world.node.driver, len(world.node.gpus))
    for name, value in changes.items():
        setattr(state, name, value)
    world.feed.file.put_system(state)


async def tick_unshown(service):
    """Let a second pass and read, without showing the node."""
    service.world.fleet.advance_to(service.world.fleet.now + 1)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await service.supervisor.pass_all(PATIENCE_SECONDS)
