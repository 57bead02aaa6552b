"""The simulated NVML: enumeration, reads and refusals, as the driver would give them."""

import asyncio

import pytest

from exporter.nvml.enumeration import Enumeration
from exporter.nvml.protocol import DriverUnavailableError, Failed, Lost, Unsupported, Value
from exporter.nvml.simulated import SimulatedNvml
from simulator.fleet import Fleet
from slicewatch.catalog import CATALOG
from slicewatch.catalog.clocks import SM_CLOCK
from slicewatch.catalog.memory import MEMORY
from slicewatch.catalog.model import Probe, Scope
from slicewatch.catalog.power import ENERGY, POWER, TEMPERATURE
from slicewatch.catalog.readings.memory import Memory
from slicewatch.catalog.utilization import UTILIZATION

SCENARIO = """
nodes:
  - name: n
    driver: 580.95.05
    gpus:
      - {model: H100-80GB}
      - {model: A100-80GB, mig: [~, 3g.40gb, ~, 1g.10gb]}
workloads:
  - name: w
    load: 0.25
    memory: 10GiB
    pods:
      - {name: p, devices: [{node: n, gpu: 0}]}
      - {name: q, devices: [{node: n, gpu: 1, mig: 1}]}
"""


@pytest.fixture
def fleet():
    return Fleet.load(SCENARIO)


@pytest.fixture
def nvml(fleet):
    nvml = SimulatedNvml(fleet.node("n"))
    nvml.start()
    yield nvml
    nvml.stop()


def devices_of(session):
    found = session.devices()
    assert isinstance(found, Value)
    return found.value


def session_on(nvml, index):
    (slot,) = (slot for slot in Enumeration(nvml).slots() if slot.index == index)
    assert isinstance(slot.gpu, Value)
    return nvml.open(slot.gpu.value)


def test_a_start_tells_the_versions(fleet):
    driver = SimulatedNvml(fleet.node("n")).start()
    assert (driver.driver, driver.nvml, driver.cuda) == ("580.95.05", "13.580.95.05", "13.0")


def test_gpus_are_listed_with_what_a_repair_needs(nvml):
    first, second = (slot.gpu.value for slot in Enumeration(nvml).slots())
    assert (first.gpu, first.model, first.mig_enabled) == (0, "NVIDIA H100 80GB HBM3", False)
    assert (second.gpu, second.mig_enabled, second.minor) == (1, True, 1)
    assert first.uuid.startswith("GPU-")
    assert first.pci_bus_id == "00000000:17:00.0"
    assert first.serial
    assert first.board


def test_mig_devices_follow_their_gpu_across_the_holes(nvml):
    gpu, *instances = devices_of(session_on(nvml, 1))
    assert not gpu.is_mig
    assert [(d.profile, d.sm_count, d.parent) for d in instances] == [
        ("3g.40gb", 42, gpu.uuid),
        ("1g.10gb", 14, gpu.uuid),
    ]
    assert all(d.uuid.startswith("MIG-") and d.gpu == 1 for d in instances)
    assert len({d.gpu_instance for d in instances}) == 2


def test_every_probe_of_the_catalog_has_a_simulated_reading(nvml, fleet):
    fleet.advance_to(1)
    session = session_on(nvml, 0)
    (gpu,) = devices_of(session)
    for probe in CATALOG.probes():
        assert Scope.GPU in probe.scopes
        outcome = session.read(probe, gpu)
        lacking = isinstance(outcome, Unsupported) and not outcome.reason.startswith("mig")
        assert lacking or isinstance(outcome.value, probe.reading)


def test_a_probe_without_a_simulated_reading_is_a_mistake_of_the_programmer(nvml):
    session = session_on(nvml, 0)
    (gpu,) = devices_of(session)
    unknown = Probe(name="fan", reading=int, scopes=frozenset({Scope.GPU}))
    with pytest.raises(ValueError, match="'fan' has no simulated reading"):
        session.read(unknown, gpu)


def test_readings_are_what_the_simulator_says(nvml, fleet):
    fleet.advance_to(30)
    session = session_on(nvml, 0)
    (gpu,) = devices_of(session)
    board = fleet.node("n").gpus[0]
    assert session.read(POWER, gpu).value.draw_milliwatts == board.power_milliwatts
    assert session.read(ENERGY, gpu).value.used_millijoules == board.energy_millijoules
    assert session.read(TEMPERATURE, gpu).value.celsius == board.temperature_celsius
    assert session.read(SM_CLOCK, gpu).value.megahertz == board.model.max_sm_clock_mhz
    memory = session.read(MEMORY, gpu).value
    assert memory.used_bytes == 10 * 2**30
    assert memory.consistent()


def test_a_mig_device_has_memory_and_nothing_that_is_only_of_a_gpu(nvml):
    session = session_on(nvml, 1)
    _, instance, other = devices_of(session)
    assert session.read(MEMORY, instance).value.used_bytes == 10 * 2**30
    assert session.read(MEMORY, other) == Value(
        Memory(total_bytes=9728 * 2**20, free_bytes=9728 * 2**20, used_bytes=0, reserved_bytes=0)
    )
    for probe in CATALOG.probes():
        if Scope.MIG not in probe.scopes:
            assert session.read(probe, instance) == Unsupported("mig_instance")
    assert session.read(UTILIZATION, instance) == Unsupported("mig_instance")


def test_a_partitioned_gpu_has_no_utilization_but_power(nvml):
    session = session_on(nvml, 1)
    gpu, *_ = devices_of(session)
    assert session.read(UTILIZATION, gpu) == Unsupported("mig_enabled")
    assert isinstance(session.read(POWER, gpu), Value)


def test_a_first_read_counts_nothing_from_before_the_session(nvml, fleet):
    fleet.advance_to(15)
    session = session_on(nvml, 0)
    (gpu,) = devices_of(session)
    first = session.read(UTILIZATION, gpu).value
    assert (first.covered_seconds(), first.since_us) == (0, None)
    fleet.advance_to(20)
    second = session.read(UTILIZATION, gpu).value
    assert second.since_us == first.samples[-1][0]
    assert second.covered_seconds() == pytest.approx(5, abs=0.17)
    assert second.percent() == pytest.approx(25)


def test_a_gap_longer_than_the_buffer_is_not_counted_as_covered(nvml, fleet):
    session = session_on(nvml, 0)
    (gpu,) = devices_of(session)
    fleet.advance_to(1)
    session.read(UTILIZATION, gpu)
    fleet.advance_to(100)
    reading = session.read(UTILIZATION, gpu).value
    assert reading.covered_seconds() == pytest.approx(20, abs=0.2)


def test_windows_of_readings_agree_with_the_truth(fleet, nvml):
    board = fleet.node("n").gpus[0]
    session = session_on(nvml, 0)
    (gpu,) = devices_of(session)
    fleet.advance_to(1)
    first = session.read(UTILIZATION, gpu).value
    busy = 0.0
    for second in range(2, 62):
        board.set_load(second % 5 / 4)
        fleet.advance_to(second)
        reading = session.read(UTILIZATION, gpu).value
        busy += reading.busy_seconds()
    begin, end = ((r.samples[-1][0] - fleet.clock.epoch_us) / 1e6 for r in (first, reading))
    truth = fleet.truth.busy_seconds(board.uuid, begin, end)
    assert busy == pytest.approx(truth, abs=0.005 * (end - begin))


def test_what_was_not_resolved_is_not_found(nvml):
    session = session_on(nvml, 1)
    slot = Enumeration(nvml).slots()[1]
    assert session.read(POWER, slot.gpu.value) == Failed("NOT_FOUND")


def test_a_mig_device_that_vanished_is_not_found(nvml, fleet):
    session = session_on(nvml, 1)
    _, instance, _ = devices_of(session)
    fleet.clear()
    fleet.inject(layout(["1g.10gb"]))
    assert session.read(MEMORY, instance) == Failed("NOT_FOUND")


def test_a_gpu_that_was_never_there_is_lost(nvml):
    (slot, _) = Enumeration(nvml).slots()
    stranger = slot.gpu.value.__class__(uuid="GPU-0", gpu=0, model="")
    assert nvml.open(stranger).devices() == Lost("gpu_not_found")


def test_nothing_answers_before_the_start_and_after_the_stop(fleet):
    nvml = SimulatedNvml(fleet.node("n"))
    with pytest.raises(DriverUnavailableError, match="UNINITIALIZED"):
        Enumeration(nvml).slots()
    nvml.start()
    session = session_on(nvml, 0)
    nvml.stop()
    assert session.devices() == Failed("UNINITIALIZED", reinitialise=True)
    nvml.start()
    assert session.devices() == Failed("UNINITIALIZED", reinitialise=True)
    assert isinstance(session_on(nvml, 0).devices(), Value)


def test_a_second_start_without_a_stop_is_refused(nvml):
    with pytest.raises(RuntimeError, match="started already"):
        nvml.start()


async def test_it_refuses_to_block_an_event_loop(fleet):
    nvml = SimulatedNvml(fleet.node("n"))
    with pytest.raises(RuntimeError, match="not on the event loop's thread"):
        nvml.start()
    driver = await asyncio.to_thread(nvml.start)
    assert driver.driver == "580.95.05"
    slots = await asyncio.to_thread(Enumeration(nvml).slots)
    with pytest.raises(RuntimeError, match="not on the event loop's thread"):
        Enumeration(nvml).slots()
    session = await asyncio.to_thread(nvml.open, slots[0].gpu.value)
    with pytest.raises(RuntimeError, match="not on the event loop's thread"):
        session.devices()


def test_it_can_be_made_from_a_shipped_scenario_in_real_time():
    nvml = SimulatedNvml.of("demo", node="gpu-b")
    nvml.start()
    assert [slot.gpu.value.mig_enabled for slot in Enumeration(nvml).slots()] == [True, True]
    nvml.stop()


def layout(profiles):
    from simulator.scenario import MigLayout

    return MigLayout(node="n", gpu=1, mig=tuple(profiles))
