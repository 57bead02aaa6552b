"""One suite for both implementations of the Nvml seam: simulated, and real over the C library."""

import asyncio
import threading
from collections.abc import Mapping

import pytest

from exporter.nvml.enumeration import Enumeration
from exporter.nvml.protocol import (
    DriverUnavailableError,
    Event,
    EventKind,
    Failed,
    Lost,
    Unsupported,
    Value,
)
from simulator import scenario
from slicewatch.catalog import CATALOG
from slicewatch.catalog.memory import MEMORY
from slicewatch.catalog.model import Publish
from slicewatch.catalog.power import ENERGY, POWER, TEMPERATURE
from slicewatch.catalog.processes import PROCESS_UTILIZATION, PROCESSES
from slicewatch.catalog.readings.clocks import Clock
from slicewatch.catalog.readings.memory import Memory
from slicewatch.catalog.readings.power import Energy, Power, Temperature
from slicewatch.catalog.utilization import UTILIZATION
from slicewatch.wire.layout import Device

SCENARIO = """
nodes:
  - name: n
    driver: "580.95.05"
    cuda: "13.0"
    gpus:
      - {model: H100-80GB}
      - {model: H100-80GB, mig: [null, 1g.10gb, null, 2g.20gb, 1g.10gb+me]}
      - {model: RTX4090}
workloads:
  - name: whole
    load: {wave: {low: 0.1, high: 0.9, period: 7s}}
    memory: 8GiB
    pods: [{name: a, devices: [{node: n, gpu: 0}]}]
  - name: slice
    load: 0.5
    memory: 3GiB
    pods: [{name: b, devices: [{node: n, gpu: 1, mig: 3}]}]
"""
WHOLE, PARTITIONED, DESKTOP = 0, 1, 2
DEADLINE_SECONDS = 20


def devices_of(session) -> tuple[Device, ...]:
    outcome = session.devices()
    assert isinstance(outcome, Value), outcome
    return outcome.value


def in_thread(work):
    """Run ``work`` in a thread; return it with the list that its result will be put into."""
    results = []
    thread = threading.Thread(target=lambda: results.append(work()), daemon=True)
    thread.start()
    return thread, results


def drain(events, wanted: int) -> list[Event]:
    found = []
    while len(found) < wanted:
        outcome = events.wait(DEADLINE_SECONDS)
        assert isinstance(outcome, Value), outcome
        assert outcome.value, f"only {found} arrived in time"
        found += outcome.value
    quiet = events.wait(0.01)
    assert quiet == Value(()), quiet
    return found


def test_the_driver_states_its_versions(world):
    world.nvml.stop()
    driver = world.nvml.start()
    assert (driver.driver, driver.nvml, driver.cuda) == ("580.95.05", "13.580.95.05", "13.0")


def test_a_second_start_is_refused(world):
    with pytest.raises(RuntimeError, match="started already"):
        world.nvml.start()


def test_a_stop_may_be_repeated(world):
    world.nvml.stop()
    world.nvml.stop()
    with pytest.raises(DriverUnavailableError):
        Enumeration(world.nvml).slots()


def test_every_gpu_of_the_scenario_is_listed_with_what_a_repair_needs(world):
    slots = Enumeration(world.nvml).slots()
    assert [slot.index for slot in slots] == [0, 1, 2]
    for slot, gpu in zip(slots, world.node.gpus, strict=True):
        board = gpu.identity
        assert slot.gpu == Value(
            Device(
                uuid=gpu.uuid,
                gpu=gpu.index,
                model=gpu.model.nvml_name,
                mig_enabled=gpu.index == PARTITIONED,
                minor=board.minor,
                pci_bus_id=board.pci_bus_id,
                serial=board.serial,
                board=board.board_part_number,
                vbios=board.vbios,
            )
        )
    assert slots[DESKTOP].gpu.value.serial == ""


def test_mig_devices_are_found_behind_empty_indices(world):
    whole, *instances = devices_of(world.session(PARTITIONED))
    assert whole.mig_enabled
    expected = world.node.gpus[PARTITIONED].mig_devices
    assert [device.index for device in expected] == [1, 3, 4]
    assert instances == [
        Device(
            uuid=there.uuid,
            gpu=PARTITIONED,
            model="NVIDIA H100 80GB HBM3",
            parent=whole.uuid,
            gpu_instance=there.gpu_instance_id,
            compute_instance=0,
            profile=there.profile.name,
            placement_start=there.placement.start,
            placement_size=there.placement.size,
            sm_count=there.profile.sm_count,
        )
        for there in expected
    ]
    assert [device.profile for device in instances] == ["1g.10gb", "2g.20gb", "1g.10gb+me"]


def test_an_unchanged_gpu_resolves_to_equal_devices(world):
    session = world.session(PARTITIONED)
    assert devices_of(session) == devices_of(session)


def test_readings_of_a_gpu_are_what_the_simulator_says(world):
    session = world.session(WHOLE)
    (device,) = devices_of(session)
    gpu = world.node.gpus[WHOLE]
    memory = gpu.memory
    read = {probe.name: session.read(probe, device) for probe in CATALOG.probes()}
    assert read["memory"] == Value(
        Memory(memory.total_bytes, memory.free_bytes, 8 * 2**30, memory.reserved_bytes)
    )
    assert read["power"] == Value(Power(gpu.power_milliwatts))
    assert read["energy"] == Value(Energy(gpu.energy_millijoules))
    assert read["temperature"] == Value(Temperature(gpu.temperature_celsius))
    assert read["sm_clock"] == Value(Clock(1980))
    assert read["memory_clock"] == Value(Clock(2619))


def test_a_mig_device_has_memory_of_its_own(world):
    """dcgm-exporter #512: memory was missing for instances only."""
    session = world.session(PARTITIONED)
    whole, first, second, third = devices_of(session)
    used = [session.read(MEMORY, device).value.used_bytes for device in (first, second, third)]
    assert used == [0, 3 * 2**30, 0]
    assert session.read(MEMORY, whole).value.used_bytes == 3 * 2**30
    total = world.node.gpus[PARTITIONED].mig_devices[1].profile.memory_bytes
    assert session.read(MEMORY, second).value.total_bytes == total


LACKING = tuple(map(Unsupported, ("device", "no_vgpu_host", "no_vgpu_guest")))


@pytest.mark.parametrize("probe", CATALOG.probes(), ids=lambda probe: probe.name)
def test_every_probe_of_the_catalog_can_be_read_or_says_what_the_board_lacks(world, probe):
    session = world.session(WHOLE)
    (device,) = devices_of(session)
    outcome = session.read(probe, device)
    assert outcome in LACKING or isinstance(outcome.value, probe.reading)


@pytest.mark.parametrize("probe", CATALOG.probes(), ids=lambda probe: probe.name)
def test_a_mig_device_answers_what_its_scope_says(world, probe):
    session = world.session(PARTITIONED)
    _, instance, *_ = devices_of(session)
    outcome = session.read(probe, instance)
    if "mig" in probe.scopes:
        assert isinstance(outcome, Value), outcome
    else:
        assert outcome == Unsupported("mig_instance")


def test_a_partitioned_gpu_has_power_but_no_processes_of_its_own(world):
    session = world.session(PARTITIONED)
    whole, *_ = devices_of(session)
    assert session.read(PROCESS_UTILIZATION, whole) == Unsupported("mig_enabled")
    assert isinstance(session.read(POWER, whole), Value)


def test_an_unknown_probe_is_a_mistake_of_the_caller(world):
    session = world.session(WHOLE)
    (device,) = devices_of(session)
    unknown = type(UTILIZATION)(name="vapour", reading=Clock, scopes=frozenset())
    with pytest.raises(ValueError, match="vapour"):
        session.read(unknown, device)


def test_the_first_read_counts_nothing_from_before_the_session(world):
    session = world.session(WHOLE)
    (device,) = devices_of(session)
    first = session.read(UTILIZATION, device).value
    assert first.since_us is None
    assert first.covered_seconds() == 0


def test_no_sample_between_two_reads_is_lost_or_counted_twice(world):
    session = world.session(WHOLE)
    seen = []
    busy = 0.0
    for step in (0.0, 1.0, 0.1, 0.05, 2.5, 0.7, 10.0, 0.3, 4.0):
        world.advance(step)
        (device,) = devices_of(session)
        reading = session.read(UTILIZATION, device).value
        if reading.samples and seen:
            assert reading.since_us == seen[-1]
        seen += [at for at, _ in reading.samples]
        busy += reading.busy_seconds()
    assert seen == sorted(set(seen))
    begin, end = ((at - world.fleet.clock.epoch_us) / 1e6 for at in (seen[0], seen[-1]))
    assert len(seen) == 1 + round((end - begin) / scenario.SAMPLE_PERIOD_SECONDS)
    truth = world.fleet.truth.busy_seconds(device.uuid, begin, end)
    assert busy == pytest.approx(truth, abs=0.005 * (end - begin))


def test_a_read_between_two_samples_says_nothing(world):
    """The next sample speaks of that time: a rate in its place would count it twice."""
    session = world.session(WHOLE)
    (device,) = devices_of(session)
    session.read(UTILIZATION, device)
    reading = session.read(UTILIZATION, device).value
    assert (reading.samples, reading.current_percent, reading.percent()) == ((), None, None)


def test_where_samples_have_stopped_the_current_rate_is_read(world):
    """polarsignals #37: the samples of an idle GPU run dry, and its utilization was gone."""
    session = world.session(WHOLE)
    session.read(UTILIZATION, *devices_of(session))
    injection = world.inject(scenario.Lost(node="n", gpu=WHOLE))
    world.advance(5)
    world.clear(injection)
    (device,) = devices_of(session)
    reading = session.read(UTILIZATION, device).value
    assert reading.samples == ()
    assert reading.current_percent == world.node.gpus[WHOLE].current_utilization
    assert reading.percent() == reading.current_percent


@pytest.mark.parametrize(
    "error", ["insufficient_power", "irq_issue", "corrupted_inforom", "unknown"]
)
def test_a_gpu_whose_every_call_fails_says_how_and_leaves_the_others_alone(world, error):
    failing = Failed(error.upper())
    session, other = world.session(WHOLE), world.session(DESKTOP)
    (device,) = devices_of(session)
    injection = world.inject(scenario.Failing(node="n", gpu=WHOLE, error=error))
    assert session.read(POWER, device) == failing
    assert session.devices() == failing
    slots = Enumeration(world.nvml).slots()
    assert [slot.gpu for slot in slots][WHOLE] == failing
    assert world.nvml.events((device,)) == failing
    assert len(devices_of(other)) == 1
    world.clear(injection)
    assert isinstance(session.read(POWER, *devices_of(session)), Value)


def test_no_sample_is_lost_when_nvml_is_started_anew(world):
    session = world.session(WHOLE)
    last = session.read(UTILIZATION, *devices_of(session)).value.samples[-1][0]
    world.nvml.stop()
    world.advance(1)
    world.nvml.start()
    session = world.session(WHOLE)
    reading = session.read(UTILIZATION, *devices_of(session)).value
    assert reading.since_us == last
    assert reading.covered_seconds() == pytest.approx(1, abs=0.17)


def test_time_that_the_buffer_no_longer_holds_is_not_invented(world):
    session = world.session(WHOLE)
    session.read(UTILIZATION, *devices_of(session))
    world.advance(300)
    reading = session.read(UTILIZATION, *devices_of(session)).value
    kept = scenario.SAMPLES_KEPT * scenario.SAMPLE_PERIOD_SECONDS
    assert 0.9 * kept < reading.covered_seconds() <= kept


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(scenario.Lost, "gpu_is_lost"), (scenario.ResetRequired, "reset_required")],
)
def test_one_gpu_that_is_gone_leaves_the_others_readable(world, fault, reason):
    sessions = [world.session(gpu) for gpu in (WHOLE, PARTITIONED)]
    (device,) = devices_of(sessions[0])
    injection = world.inject(fault(node="n", gpu=WHOLE))
    assert sessions[0].read(POWER, device) == Lost(reason)
    assert sessions[0].devices() == Lost(reason)
    assert [type(slot.gpu) for slot in Enumeration(world.nvml).slots()] == [Lost, Value, Value]
    whole, *instances = devices_of(sessions[1])
    assert len(instances) == 3
    assert isinstance(sessions[1].read(POWER, whole), Value)
    world.clear(injection)
    (device,) = devices_of(sessions[0])
    assert isinstance(sessions[0].read(POWER, device), Value)


def test_a_hang_holds_up_its_own_gpu_alone_and_ends(world):
    hanging, other = world.session(WHOLE), world.session(PARTITIONED)
    injection = world.inject(scenario.Hang(node="n", gpu=WHOLE))
    thread, results = in_thread(hanging.devices)
    whole, *_ = devices_of(other)
    assert isinstance(other.read(TEMPERATURE, whole), Value)
    thread.join(0.05)
    assert thread.is_alive()
    world.clear(injection)
    thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive()
    assert isinstance(results[0], Value)


def test_an_old_device_is_not_read_as_the_new_one_of_the_same_uuid(world):
    session = world.session(PARTITIONED)
    world.inject(scenario.MigLayout(node="n", gpu=PARTITIONED, mig=("1g.10gb",)))
    _, old = devices_of(session)
    world.inject(scenario.MigLayout(node="n", gpu=PARTITIONED, mig=("1g.10gb+me",)))
    whole, new = devices_of(session)
    assert (old.uuid, old.profile) == (new.uuid, "1g.10gb")
    assert new.profile == "1g.10gb+me"
    assert session.read(MEMORY, old) == Failed("NOT_FOUND")
    assert isinstance(session.read(MEMORY, new), Value)
    assert isinstance(session.read(POWER, whole), Value)


def test_a_device_that_was_destroyed_is_not_read_before_the_next_resolution(world):
    session = world.session(PARTITIONED)
    _, first, *_ = devices_of(session)
    world.inject(scenario.MigLayout(node="n", gpu=PARTITIONED, mig=("3g.40gb",)))
    assert isinstance(session.read(MEMORY, first), Failed)
    assert [device.profile for device in devices_of(session)] == ["", "3g.40gb"]


def test_mig_can_be_turned_off_and_on(world):
    session = world.session(PARTITIONED)
    injection = world.inject(scenario.MigLayout(node="n", gpu=PARTITIONED, mig=False))
    (whole,) = devices_of(session)
    assert not whole.mig_enabled
    assert isinstance(session.read(UTILIZATION, whole), Value)
    world.clear(injection)
    partitioned, *instances = devices_of(session)
    assert partitioned.mig_enabled
    assert len(instances) == 3


def test_a_driver_that_is_gone_asks_for_a_new_start(world):
    session = world.session(WHOLE)
    injection = world.inject(scenario.DriverGone(node="n"))
    assert session.devices() == Failed("DRIVER_NOT_LOADED", reinitialise=True)
    with pytest.raises(DriverUnavailableError) as enumeration:
        Enumeration(world.nvml).slots()
    assert enumeration.value.reason == "no_driver"
    world.nvml.stop()
    with pytest.raises(DriverUnavailableError) as start:
        world.nvml.start()
    assert start.value.reason == "no_driver"
    world.advance(5)
    world.clear(injection)
    world.nvml.start()
    assert isinstance(world.session(WHOLE).devices(), Value)


def test_a_session_from_before_the_driver_was_loaded_anew_is_of_no_use(world):
    session = world.session(WHOLE)
    world.inject(scenario.DriverGone(node="n", lasts=scenario.Seconds(2)))
    world.advance(5)
    outcome = session.devices()
    assert isinstance(outcome, Failed)
    assert outcome.reinitialise
    world.nvml.stop()
    world.nvml.start()
    assert isinstance(world.session(WHOLE).devices(), Value)


def test_energy_counts_from_the_last_load_of_the_driver(world):
    world.inject(scenario.DriverGone(node="n", lasts=scenario.Seconds(2)))
    world.advance(12)
    world.nvml.stop()
    world.nvml.start()
    session = world.session(WHOLE)
    (device,) = devices_of(session)
    truth = world.fleet.truth.energy_joules(device.uuid, world.fleet.now)
    assert session.read(ENERGY, device).value.used_millijoules == pytest.approx(
        1000 * truth, abs=1
    )


def test_a_driver_of_another_version_needs_a_new_start_once_it_fits(world):
    session = world.session(WHOLE)
    world.inject(scenario.DriverVersion(node="n", version="590.44.01", lasts=scenario.Seconds(10)))
    assert session.devices() == Failed("LIB_RM_VERSION_MISMATCH", reinitialise=True)
    world.nvml.stop()
    with pytest.raises(DriverUnavailableError) as start:
        world.nvml.start()
    assert start.value.reason == "version_mismatch"
    world.advance(11)
    assert world.nvml.start().driver == "590.44.01"
    assert isinstance(world.session(WHOLE).devices(), Value)


def test_nonsense_is_passed_on_and_breaks_nothing(world):
    world.inject(scenario.Garbage(node="n", gpu=WHOLE))
    world.inject(scenario.Garbage(node="n", gpu=PARTITIONED))
    world.advance(1)
    for session in (world.session(WHOLE), world.session(PARTITIONED)):
        for device in devices_of(session):
            # Who runs is a list, which nonsense leaves as it is.
            for probe in (one for one in CATALOG.probes() if one is not PROCESSES):
                outcome = session.read(probe, device)
                assert isinstance(outcome, Value | Failed | Unsupported)
                assert not isinstance(outcome, Value) or is_rejected(probe, outcome.value)


def is_rejected(probe, reading) -> bool:
    if probe.consistent is not None and not probe.consistent(reading):
        return True
    made = [metric for metric in CATALOG if metric.origin is probe]
    return not any(
        metric.limits.hold(value) for metric in made for value in values(metric, reading)
    )


def values(metric, reading) -> list[float]:
    found = metric.value(reading)
    several = found.values() if isinstance(found, Mapping) else [found]
    # What adds nothing to a sum says nothing.
    nothing = {None, 0.0} if metric.publish is Publish.ACCUMULATED else {None}
    return [value for value in several if value not in nothing]


def test_each_event_arrives_once_and_in_order(world):
    gpus = tuple(slot.gpu.value for slot in Enumeration(world.nvml).slots())
    world.inject(scenario.Xid(node="n", gpu=WHOLE, xid=13))
    world.advance(1)
    events = world.nvml.events(gpus).value
    faults = (
        scenario.Xid(node="n", gpu=WHOLE, xid=62),
        scenario.Xid(node="n", gpu=WHOLE, xid=45),
        scenario.Xid(node="n", gpu=PARTITIONED, xid=43, gpu_instance=5, compute_instance=0),
        scenario.Ecc(node="n", gpu=PARTITIONED, bits="double"),
    )
    for fault in faults:
        world.inject(fault)
    world.advance(1)
    whole, partitioned = gpus[WHOLE].uuid, gpus[PARTITIONED].uuid
    assert drain(events, len(faults)) == [
        Event(kind=EventKind.XID, gpu=whole, data=62),
        Event(kind=EventKind.XID, gpu=whole, data=45),
        Event(kind=EventKind.XID, gpu=partitioned, data=43, gpu_instance=5, compute_instance=0),
        Event(kind=EventKind.DOUBLE_BIT_ECC, gpu=partitioned, data=0),
    ]
    events.close()


def test_no_event_is_lost_between_two_waits(world):
    gpus = tuple(slot.gpu.value for slot in Enumeration(world.nvml).slots())
    events = world.nvml.events(gpus).value
    for xid in range(1, 40):
        world.inject(scenario.Xid(node="n", gpu=WHOLE, xid=xid))
        if xid % 3 == 0:
            world.advance(0.5)
            assert [event.data for event in drain(events, 3)] == [xid - 2, xid - 1, xid]
    events.close()


def test_a_wait_returns_as_soon_as_something_happens(world):
    gpus = tuple(slot.gpu.value for slot in Enumeration(world.nvml).slots())
    events = world.nvml.events(gpus).value
    thread, results = in_thread(lambda: events.wait(DEADLINE_SECONDS))
    world.inject(scenario.Xid(node="n", gpu=WHOLE, xid=79))
    thread.join(DEADLINE_SECONDS / 2)
    assert not thread.is_alive()
    assert [event.data for event in results[0].value] == [79]
    events.close()


def test_events_of_a_gpu_that_is_not_listened_to_are_left_out(world):
    gpus = tuple(slot.gpu.value for slot in Enumeration(world.nvml).slots())
    events = world.nvml.events(gpus[PARTITIONED:DESKTOP]).value
    world.inject(scenario.Xid(node="n", gpu=WHOLE, xid=79))
    world.inject(scenario.Xid(node="n", gpu=PARTITIONED, xid=31))
    assert [event.data for event in drain(events, 1)] == [31]
    events.close()


def test_a_lost_gpu_does_not_silence_the_others(world):
    gpus = tuple(slot.gpu.value for slot in Enumeration(world.nvml).slots())
    world.inject(scenario.Lost(node="n", gpu=WHOLE))
    events = world.nvml.events(gpus).value
    world.inject(scenario.Xid(node="n", gpu=PARTITIONED, xid=31))
    assert [event.data for event in drain(events, 1)] == [31]
    events.close()


def test_listening_fails_where_the_driver_is_gone(world):
    gpus = tuple(slot.gpu.value for slot in Enumeration(world.nvml).slots())
    events = world.nvml.events(gpus).value
    world.inject(scenario.DriverGone(node="n"))
    assert events.wait(0.01) == Failed("DRIVER_NOT_LOADED", reinitialise=True)
    events.close()
    refused = world.nvml.events(gpus)
    assert isinstance(refused, Failed)
    assert refused.reinitialise


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
async def test_the_simulated_one_refuses_the_thread_of_an_event_loop(world):
    # The real one cannot afford to look at every call; it is documented to block instead.
    with pytest.raises(RuntimeError, match="worker thread"):
        world.nvml.count()
    with pytest.raises(RuntimeError, match="worker thread"):
        world.nvml.identify(0)
    assert await asyncio.to_thread(world.nvml.count) == 3
