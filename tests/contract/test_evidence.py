"""What an exporter tells of each fault that a GPU can have, over both implementations of NVML."""

import asyncio
import dataclasses
from contextlib import asynccontextmanager

import pytest

from exporter.app import Exporter
from exporter.kernel_log.xid import LoggedXid
from exporter.settings import ExporterSettings
from exporter.tenants.protocol import Allocation
from exporter.tenants.simulated import SimulatedProcesses
from simulator import scenario
from slicewatch.catalog import CATALOG
from slicewatch.catalog.clocks import CLOCK_EVENTS
from slicewatch.catalog.errors import (
    ECC,
    RECOVERY,
    REMAP_BANKS,
    REMAPPED_ROWS,
    RETIRED_PAGES,
    SRAM,
)
from slicewatch.catalog.nvlink import ERROR_COUNTS, STATES
from slicewatch.catalog.pcie import LINK, REPLAY
from slicewatch.catalog.power import TEMPERATURE
from slicewatch.catalog.readings.errors import Recovery
from slicewatch.catalog.readings.nvlink import NvlinkError
from slicewatch.catalog.readings.state import FabricFault, FabricState
from slicewatch.catalog.state import FABRIC, INFOROM_CHECK
from slicewatch.catalog.thermal import TEMPERATURE_MARGIN
from slicewatch.wire import evidence as wire

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB}
      - {model: H100-80GB, mig: [1g.10gb, 1g.10gb]}
      - {model: V100-32GB}
      - {model: T4}
workloads:
  - name: busy
    load: 0.5
    pods: [{name: a, devices: [{node: n, gpu: 0}]}]
"""
WHOLE, PARTITIONED, OLD, SMALL = range(4)
SETTINGS = ExporterSettings(
    tick_seconds=0.05,
    window_seconds=0.5,
    stale_seconds=0.5,
    node_name="n",
    kubelet_socket="",
    metrics=("default", "gpu_nvlink_errors_total", "gpu_inforom_valid"),
)
DEADLINE_SECONDS = 20


class Scene:
    """An exporter at work on a world, and what it tells."""

    def __init__(self, world, settings):
        self.world = world
        self.exporter = Exporter(settings, world.nvml, SimulatedProcesses(world.node))

    async def tick(self):
        await self.exporter.ticker.tick()
        return self.told()

    def told(self, after=0):
        """Return the evidence as the other side has it."""
        return wire.decode(wire.encode(self.exporter.account.given(after)))

    async def until(self, condition):
        """Tick until the evidence meets a condition; return it."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition(evidence := await self.tick()):  # noqa: ASYNC110 - threads read
                await asyncio.sleep(0.01)
        return evidence

    async def whole(self):
        """Return the evidence once every GPU was read, and somebody listens to events."""
        return await self.until(
            lambda e: len(e.gpus) == 4 and all(g.readings for g in e.gpus) and not e.listening
        )


@asynccontextmanager
async def at_work(world, settings=SETTINGS):
    # The exporter starts NVML itself.
    await asyncio.to_thread(world.nvml.stop)
    scene = Scene(world, settings)
    try:
        yield scene
    finally:
        world.clear()
        await scene.exporter.supervisor.close()


def reading(evidence, gpu, probe):
    return wire.read_as(probe, evidence.gpus[gpu].readings[probe.name])


def fault(kind, gpu=WHOLE, **more):
    return kind(node="n", gpu=gpu, **more)


SHOWN = {
    "recovery action": (
        [fault(scenario.RecoveryNeeded, action=Recovery.NODE_REBOOT)],
        (WHOLE, RECOVERY, lambda r: r.number == 2),
    ),
    "uncorrected errors": (
        [fault(scenario.Ecc, bits="double", errors=12)],
        (WHOLE, ECC, lambda r: (r.uncorrected_volatile, r.corrected_volatile) == (12, 0)),
    ),
    "errors under mig": (
        [fault(scenario.Ecc, PARTITIONED, bits="double", errors=3)],
        (PARTITIONED, ECC, lambda r: r.uncorrected_volatile == 3),
    ),
    "sram threshold": (
        [fault(scenario.Ecc, bits="double", location="sram", errors=4)],
        (WHOLE, SRAM, lambda r: r.threshold_exceeded == 1),
    ),
    "remap pending": (
        [fault(scenario.RowRemap)],
        (WHOLE, REMAPPED_ROWS, lambda r: (r.pending, r.failed) == (1, 0)),
    ),
    "remap failed": (
        [fault(scenario.RowRemap, failed=True)],
        (WHOLE, REMAPPED_ROWS, lambda r: r.failed == 1),
    ),
    "no spare rows": (
        [fault(scenario.RowRemap, rows=8, bank="same")],
        (WHOLE, REMAP_BANKS, lambda r: r.none == 1),
    ),
    "retired pages": (
        [fault(scenario.Ecc, OLD, bits="double", errors=60)],
        (OLD, RETIRED_PAGES, lambda r: (r.double_bit, r.pending) == (60, 1)),
    ),
    "heat": (
        [fault(scenario.Heat, celsius=93)],
        (WHOLE, TEMPERATURE, lambda r: r.celsius == 93),
    ),
    "no margin": (
        [fault(scenario.Heat, celsius=93)],
        (WHOLE, TEMPERATURE_MARGIN, lambda r: r.celsius < 0),
    ),
    "thermal slowdown": (
        [fault(scenario.Slowdown, reason="hw_thermal_slowdown")],
        (WHOLE, CLOCK_EVENTS, lambda r: r.active()["hw_thermal_slowdown"] == 1),
    ),
    "power brake": (
        [fault(scenario.Slowdown, reason="hw_power_brake")],
        (WHOLE, CLOCK_EVENTS, lambda r: r.active()["hw_power_brake"] == 1),
    ),
    "narrow pcie": (
        [fault(scenario.PcieDegraded, width=4, generation=1)],
        (WHOLE, LINK, lambda r: (r.width, r.max_width, r.generation) == (4, 16, 1)),
    ),
    "pcie replays": (
        [fault(scenario.PcieReplays, packets=70)],
        (WHOLE, REPLAY, lambda r: r.count == 70),
    ),
    "nvlinks down": (
        [fault(scenario.NvlinkDown, link=link) for link in (3, 17)],
        (WHOLE, STATES, lambda r: (r.active(), r.states[17]) == (16, 0)),
    ),
    "nvlink errors": (
        [fault(scenario.NvlinkTrouble, link=2, error=NvlinkError.REPLAY, errors=9)],
        (WHOLE, ERROR_COUNTS, lambda r: r.by_link_and_kind()["2", "replay"] == 9),
    ),
    "fabric fault": (
        [fault(scenario.FabricTrouble, fault=FabricFault.ROUTE_UNHEALTHY)],
        (WHOLE, FABRIC, lambda r: r.faults()["route_unhealthy"] == 1),
    ),
    "fabric in progress": (
        [fault(scenario.FabricTrouble, state=FabricState.IN_PROGRESS)],
        (WHOLE, FABRIC, lambda r: r.states()["in_progress"] == 1),
    ),
    "inforom": (
        [fault(scenario.InforomCorrupted)],
        (WHOLE, INFOROM_CHECK, lambda r: not r.valid),
    ),
}


@pytest.mark.parametrize("name", SHOWN)
async def test_a_fault_that_a_reading_shows_is_in_the_evidence(world, name):
    faults, (gpu, probe, shows) = SHOWN[name]
    async with at_work(world) as scene:
        for one in faults:
            world.inject(one)
        evidence = await scene.whole()
        assert shows(reading(evidence, gpu, probe)), reading(evidence, gpu, probe)
        assert [g.silent for g in evidence.gpus] == [""] * 4


async def test_on_healthy_gpus_nothing_is_shown_and_every_reading_survives_the_wire(world):
    async with at_work(world) as scene:
        evidence = await scene.whole()
        for faults, (gpu, probe, shows) in SHOWN.values():
            assert not shows(reading(evidence, gpu, probe)), (faults, probe.name)
        for gpu in evidence.gpus:
            for probe in CATALOG.probes():
                said = gpu.readings.get(probe.name)
                assert said is not None or probe.optional, probe.name
                if isinstance(said, wire.Value):
                    assert isinstance(wire.read_as(probe, said), probe.reading)
        kinds = {type(said) for gpu in evidence.gpus for said in gpu.readings.values()}
        assert kinds == {wire.Value, wire.Unsupported}
        assert (evidence.node, evidence.driver.down, evidence.driver.starts) == ("n", "", 1)
        assert (evidence.kernel_log, evidence.missed, evidence.events) == ("off", 0, ())


async def test_nonsense_of_the_driver_breaks_nothing(world):
    async with at_work(world) as scene:
        world.inject(fault(scenario.Garbage))
        evidence = await scene.whole()
        said = evidence.gpus[WHOLE].readings
        assert said["fabric"] == wire.Failed(
            error="INCONSISTENT", age_seconds=said["fabric"].age_seconds
        )


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(scenario.Lost, "gpu_is_lost"), (scenario.ResetRequired, "reset_required")],
)
async def test_a_gpu_that_is_gone_stays_with_its_reason_and_without_values(world, kind, reason):
    async with at_work(world) as scene:
        await scene.whole()
        world.inject(fault(kind))
        evidence = await scene.until(lambda e: e.gpus[WHOLE].silent)
        gone = evidence.gpus[WHOLE]
        assert gone.silent == reason
        assert {said.reason for said in gone.readings.values()} == {reason}
        assert all(isinstance(said, wire.Lost) for said in gone.readings.values())
        assert isinstance(evidence.gpus[SMALL].readings["power"], wire.Value)
        world.clear()
        evidence = await scene.until(lambda e: not e.gpus[WHOLE].silent)
        assert isinstance(evidence.gpus[WHOLE].readings["power"], wire.Value)
        assert evidence.gpus[WHOLE].silent_seconds == 0.0


@pytest.mark.parametrize("error", ["insufficient_power", "corrupted_inforom", "unknown"])
async def test_a_gpu_whose_every_call_fails_says_how(world, error):
    async with at_work(world) as scene:
        await scene.whole()
        world.inject(fault(scenario.Failing, error=error))
        evidence = await scene.until(lambda e: e.gpus[WHOLE].silent)
        failing = evidence.gpus[WHOLE]
        assert failing.silent == "not_read"
        assert failing.silent_seconds >= SETTINGS.stale_seconds
        assert {said.error for said in failing.readings.values()} == {error.upper()}


async def test_after_a_new_start_of_nvml_a_failing_gpu_is_still_told_by_its_name(world):
    async with at_work(world) as scene:
        before = await scene.whole()
        world.inject(fault(scenario.Failing, error="insufficient_power"))
        world.inject(scenario.DriverGone(node="n", lasts=scenario.Seconds(2)))
        await scene.until(lambda e: e.driver.down == "no_driver")
        world.advance(3)
        evidence = await scene.until(lambda e: e.driver.starts == 2 and e.gpus[SMALL].readings)
        assert [gpu.device.uuid for gpu in evidence.gpus] == [g.device.uuid for g in before.gpus]
        assert evidence.gpus[WHOLE].silent == "insufficient_power"
        assert evidence.gpus[WHOLE].readings == {}
        assert evidence.unidentified == ()


async def test_a_gpu_that_never_said_who_it_is_is_an_index_with_a_reason(world):
    world.inject(fault(scenario.Failing, error="insufficient_power"))
    async with at_work(world) as scene:
        evidence = await scene.until(lambda e: len(e.gpus) == 3)
        assert evidence.unidentified == (
            wire.Unidentified(index=WHOLE, reason="insufficient_power"),
        )


async def test_a_call_that_hangs_is_named_with_its_time(world):
    async with at_work(world) as scene:
        await scene.whole()
        world.inject(fault(scenario.Hang))
        evidence = await scene.until(lambda e: e.gpus[WHOLE].call_seconds > 0.3)
        hung = evidence.gpus[WHOLE]
        assert hung.call == "devices"
        assert [gpu.call for gpu in evidence.gpus[1:]] == [""] * 3
        # What was read before it hung is told with its age.
        assert hung.readings["power"].age_seconds > 0.2


async def test_a_driver_that_is_gone_is_said_of_it_and_of_each_gpu(world):
    async with at_work(world) as scene:
        await scene.whole()
        world.inject(scenario.DriverGone(node="n"))
        evidence = await scene.until(lambda e: e.driver.down)
        assert evidence.driver.down == "no_driver"
        assert {gpu.silent for gpu in evidence.gpus} == {"no_driver"}
        assert len(evidence.gpus) == 4


async def test_a_release_is_no_fault_of_any_gpu(world):
    async with at_work(world, dataclasses.replace(SETTINGS, stale_seconds=5)) as scene:
        await scene.whole()
        scene.exporter.release.ask("driver_upgrade", 60)
        evidence = await scene.until(lambda e: e.driver.down)
        assert evidence.driver.down == "released"
        assert [gpu.silent for gpu in evidence.gpus] == [""] * 4
        assert evidence.listening == "stopped"


async def test_what_happens_is_told_once_to_whoever_says_what_it_knows(world):
    async with at_work(world) as scene:
        evidence = await scene.whole()
        wanted = fault(scenario.RecoveryNeeded, action=Recovery.GPU_RESET)
        for one in (
            fault(scenario.Xid, xid=79),
            fault(scenario.Xid, PARTITIONED, xid=94, gpu_instance=7, compute_instance=0),
            fault(scenario.Ecc, bits="double"),
            wanted,
        ):
            world.inject(one)
        evidence = await scene.until(lambda e: len(e.events) == 4)
        uuids = [gpu.device.uuid for gpu in evidence.gpus]
        assert [(e.number, e.kind, e.gpu, e.data, e.gpu_instance) for e in evidence.events] == [
            (1, "xid", uuids[WHOLE], 79, None),
            (2, "xid", uuids[PARTITIONED], 94, 7),
            (3, "double_bit_ecc", uuids[WHOLE], 0, None),
            (4, "recovery_action", uuids[WHOLE], 1, None),
        ]
        assert [event.number for event in scene.told(after=2).events] == [3, 4]
        assert scene.told(after=evidence.newest).events == ()


async def test_the_kernels_log_names_the_gpus_of_nvml(world):
    async with at_work(world) as scene:
        await scene.whole()
        _, bus, *_ = world.node.gpus[PARTITIONED].identity.pci_bus_id.split(":")
        xid = LoggedXid(pci_bus_id=f"0000:{bus}:00", number=95, at_seconds=1.0, text="x")
        scene.exporter.account.events.add_logged([xid])
        (event,) = scene.told().events
        assert (event.gpu, event.source) == (world.node.gpus[PARTITIONED].uuid, "kernel")
        assert event.age_seconds > 0


async def test_instances_and_holders_stand_with_their_gpu(world):
    async with at_work(world) as scene:
        evidence = await scene.whole()
        partitioned = evidence.gpus[PARTITIONED]
        assert [d.parent for d in partitioned.instances] == [partitioned.device.uuid] * 2
        held = {"p": evidence.gpus[SMALL].device.uuid, "q": partitioned.instances[1].uuid}
        scene.exporter.tenants.take(
            [
                Allocation(
                    namespace="team", pod=pod, container=name, resource="nvidia.com/gpu",
                    device_id=uuid,
                )
                for pod, uuid in held.items()
                for name in ("one", "two")
            ],
            0.0,
        )  # fmt: skip
        evidence = await scene.tick()
        holders = [[holder.pod for holder in gpu.holders] for gpu in evidence.gpus]
        assert holders == [[], ["q"], [], ["p"]]


async def test_a_holder_has_the_uid_that_its_processes_tell(world):
    """The kubelet's list has none, and without it few tools find what is said about a pod."""
    async with at_work(world) as scene:
        evidence = await scene.whole()
        held = Allocation(
            namespace="default", pod="a", container="main", resource="nvidia.com/gpu",
            device_id=evidence.gpus[WHOLE].device.uuid,
        )  # fmt: skip
        scene.exporter.tenants.take([held], 0.0)
        (holder,) = (await scene.tick()).gpus[WHOLE].holders
        pids = (process.pid for process in world.node.gpus[WHOLE].processes)
        assert holder.uid in {world.node.owner_of(pid).uid for pid in pids} - {""}


async def test_before_the_first_tick_nothing_is_claimed(world):
    async with at_work(world) as scene:
        evidence = scene.told()
        assert (evidence.gpus, evidence.tick_age_seconds) == ((), None)
        assert (evidence.driver.down, evidence.driver.starts) == ("starting", 0)


async def test_the_monitor_gets_the_optional_reads_only_if_somebody_chose_them(world):
    async with at_work(world, dataclasses.replace(SETTINGS, metrics=())) as scene:
        evidence = await scene.whole()
        assert "inforom_check" not in evidence.gpus[WHOLE].readings
