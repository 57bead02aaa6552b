"""What only the real implementation meets: a driver that answers call by call."""

import ctypes
import struct

import pynvml
import pytest

from exporter.nvml.enumeration import Enumeration
from exporter.nvml.protocol import EventKind, Failed, Lost, Unsupported, Value
from exporter.nvml.real.events import RealEvents
from exporter.nvml.real.returns import Return
from simulator import scenario
from slicewatch.catalog import CATALOG
from slicewatch.catalog.memory import MEMORY
from slicewatch.catalog.power import POWER, TEMPERATURE
from slicewatch.catalog.readings.memory import Memory
from slicewatch.catalog.readings.power import Temperature
from slicewatch.catalog.utilization import UTILIZATION
from testbed.driver.answers import Sample
from testbed.driver.answers_of.utilization import UTILIZATION_SAMPLES
from testbed.driver.state import EventState

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: A100-80GB}
      - {model: A100-80GB, mig: [null, 1g.10gb, null, 3g.40gb]}
"""
WHOLE, PARTITIONED = 0, 1
CYCLES = 5
EVERY_TICK = [p for p in CATALOG.probes() if not p.interval_seconds and not p.optional]


def resolved(session):
    outcome = session.devices()
    assert isinstance(outcome, Value), outcome
    return outcome.value


def read_all(session):
    return [session.read(p, d) for d in resolved(session) for p in EVERY_TICK]


def test_every_cycle_makes_the_same_calls_and_none_of_them_looks_up_what_is_known(world):
    """dcgm-exporter #599, gpu-operator #2482: lookups that grew with pods times instances."""
    sessions = [world.session(gpu) for gpu in (WHOLE, PARTITIONED)]
    for session in sessions:
        read_all(session)
    counts = []
    for _ in range(CYCLES):
        world.driver.forget_calls()
        world.advance(1)
        for session in sessions:
            read_all(session)
        counts.append(world.driver.calls())
    assert counts[0] == {
        "nvmlDeviceGetHandleByIndex_v2": 2,
        "nvmlDeviceGetUUID": 4,
        "nvmlDeviceGetMigMode": 2,
        "nvmlDeviceGetMaxMigDeviceCount": 1,
        "nvmlDeviceGetMigDeviceHandleByIndex": 7,
        "nvmlDeviceGetGpuInstanceId": 2,
        "nvmlDeviceGetComputeInstanceId": 2,
        "nvmlDeviceGetAttributes_v2": 2,
        "nvmlDeviceGetMemoryInfo_v2": 4,
        "nvmlDeviceGetUtilizationRates": 1,
        "nvmlDeviceGetSamples": 2,
        "nvmlDeviceGetPowerUsage": 2,
        "nvmlDeviceGetTotalEnergyConsumption": 2,
        "nvmlDeviceGetTemperatureV": 2,
        "nvmlDeviceGetClockInfo": 4,
        "nvmlDeviceGetFieldValues": 2,
        "nvmlDeviceGetEncoderUtilization": 1,
        "nvmlDeviceGetDecoderUtilization": 1,
        "nvmlDeviceGetProcessesUtilizationInfo": 1,
        "nvmlDeviceGetVirtualizationMode": 2,
        "nvmlGpmQueryDeviceSupport": 4,
    }
    assert counts == counts[:1] * CYCLES


def test_what_a_mig_instance_lacks_is_answered_without_a_call(world):
    session = world.session(PARTITIONED)
    _, instance, _ = resolved(session)
    world.driver.forget_calls()
    assert session.read(POWER, instance) == Unsupported("mig_instance")
    assert world.driver.calls() == {}


def test_an_instance_that_comes_back_is_looked_up_anew(world):
    session = world.session(PARTITIONED)
    resolved(session)
    layout = world.inject(scenario.MigLayout(node="n", gpu=PARTITIONED, mig=()))
    assert len(resolved(session)) == 1
    world.clear(layout)
    world.driver.forget_calls()
    assert len(resolved(session)) == 3
    assert world.driver.calls()["nvmlGpuInstanceGetInfo"] == 2


@pytest.mark.parametrize("growths", [1, 2])
def test_a_buffer_that_grows_between_its_two_calls_is_read_again(world, growths):
    session = world.session(WHOLE)
    session.read(UTILIZATION, *resolved(session))
    world.advance(1)
    world.feed.file.grow_samples(WHOLE, growths)
    reading = session.read(UTILIZATION, *resolved(session))
    assert len(reading.value.samples) == 6


def test_a_buffer_that_never_stops_growing_fails_and_loses_nothing(world):
    session = world.session(WHOLE)
    session.read(UTILIZATION, *resolved(session))
    world.advance(1)
    world.feed.file.grow_samples(WHOLE, 1000)
    assert session.read(UTILIZATION, *resolved(session)) == Failed("INSUFFICIENT_SIZE")
    world.feed.file.grow_samples(WHOLE, 0)
    assert len(session.read(UTILIZATION, *resolved(session)).value.samples) == 6


def test_garbage_among_the_samples_is_dropped(world):
    session = world.session(WHOLE)
    session.read(UTILIZATION, *resolved(session))

    def spoil(answers):
        garbage = [Sample(0, 100), Sample(2**63, 37_100)]
        answers.add_rows("nvmlDeviceGetSamples", garbage, key=(UTILIZATION_SAMPLES, 0))

    world.answer(WHOLE, spoil)
    world.advance(1)
    assert len(session.read(UTILIZATION, *resolved(session)).value.samples) == 6
    world.advance(1)
    assert len(session.read(UTILIZATION, *resolved(session)).value.samples) == 6


def test_a_buffer_that_ran_dry_between_its_two_calls_has_nothing_new(world):
    session = world.session(WHOLE)
    session.read(UTILIZATION, *resolved(session))
    world.fail(WHOLE, nvmlDeviceGetSamples=Return.INVALID_ARGUMENT)
    reading = session.read(UTILIZATION, *resolved(session)).value
    assert reading.samples == ()


def test_a_dry_buffer_on_a_board_without_rates_is_no_lack_of_support(world):
    session = world.session(WHOLE)
    session.read(UTILIZATION, *resolved(session))
    world.fail(WHOLE, nvmlDeviceGetUtilizationRates=Return.NOT_SUPPORTED)
    reading = session.read(UTILIZATION, *resolved(session)).value
    assert (reading.samples, reading.current_percent, reading.percent()) == ((), None, None)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (Return.NOT_SUPPORTED, Unsupported("device")),
        (Return.NO_PERMISSION, Unsupported("permission")),
        (Return.UNKNOWN, Failed("UNKNOWN")),
        (Return.GPU_IS_LOST, Lost("gpu_is_lost")),
        (4711, Failed("CODE_4711")),
    ],
)
def test_one_call_that_fails_costs_its_own_reading_alone(world, code, outcome):
    session = world.session(WHOLE)
    world.fail(WHOLE, nvmlDeviceGetPowerUsage=code)
    (device,) = resolved(session)
    assert session.read(POWER, device) == outcome
    assert isinstance(session.read(TEMPERATURE, device), Value)
    assert isinstance(session.read(UTILIZATION, device), Value)


def test_an_aggregate_that_needs_more_rights_leaves_the_instances_readable(world):
    # A driver refuses the memory of the whole GPU, and the place of an instance, to some callers.
    session = world.session(PARTITIONED)
    world.fail(PARTITIONED, nvmlDeviceGetGpuInstanceById=Return.NO_PERMISSION)
    whole, first, second = resolved(session)
    assert (first.profile, second.profile) == ("1g.10gb", "3g.40gb")
    assert first.placement_start is None
    assert isinstance(session.read(MEMORY, first), Value)
    assert isinstance(session.read(POWER, whole), Value)


def test_used_memory_is_without_what_is_reserved_whichever_way_the_driver_counts(world):
    session = world.session(WHOLE)
    gibibyte = 2**30

    def count_reserved_as_used(state):
        state.memory.total, state.memory.reserved = 80 * gibibyte, gibibyte
        state.memory.used, state.memory.free = 11 * gibibyte, 69 * gibibyte

    world.alter(WHOLE, count_reserved_as_used)
    expected = Memory(80 * gibibyte, 69 * gibibyte, 10 * gibibyte, gibibyte)
    assert session.read(MEMORY, *resolved(session)) == Value(expected)


def test_a_driver_that_rejects_the_structure_is_asked_in_the_old_way(world):
    session = world.session(WHOLE)
    world.fail(WHOLE, nvmlDeviceGetTemperatureV=Return.ARGUMENT_VERSION_MISMATCH)
    celsius = world.node.gpus[WHOLE].temperature_celsius
    assert session.read(TEMPERATURE, *resolved(session)) == Value(Temperature(celsius))


def test_a_compute_instance_that_is_a_part_of_its_gpu_instance_says_so(world):
    def divide(state):
        state.slots[3].compute_slices = 1
        state.slots[3].compute_instance = 2

    world.alter(PARTITIONED, divide)
    *_, device = resolved(world.session(PARTITIONED))
    assert (device.profile, device.compute_instance) == ("1c.3g.40gb", 2)


def test_one_instance_that_fails_hides_neither_the_others_nor_the_gpu(world):
    def spoil(state):
        state.slots[1].uuid = b"MIG-\xff\xfe"

    session = world.session(PARTITIONED)
    world.alter(PARTITIONED, spoil)
    whole, *instances = resolved(session)
    assert whole.mig_enabled
    assert [device.profile for device in instances] == ["3g.40gb"]


def test_an_instance_that_moves_to_a_later_index_during_a_pass_is_one_device(world):
    """The page would have each of its series twice, for which Prometheus refuses all of it."""

    def move(state):
        state.slots[2] = state.slots[1]

    session = world.session(PARTITIONED)
    before = resolved(session)
    world.alter(PARTITIONED, move)
    assert resolved(session) == before
    assert isinstance(session.read(MEMORY, before[1]), Value)


def test_an_instance_under_the_uuid_of_its_gpu_does_not_hide_the_gpu(world):
    def spoil(state):
        state.slots[1].uuid = state.uuid

    session = world.session(PARTITIONED)
    world.alter(PARTITIONED, spoil)
    whole, *instances = resolved(session)
    assert [device.profile for device in instances] == ["3g.40gb"]
    assert isinstance(session.read(POWER, whole), Value)


def test_texts_in_no_known_encoding_do_not_hide_a_gpu(world):
    def spoil(state):
        state.name = b"H100 \xff"
        state.serial = b"\xfe"

    world.alter(WHOLE, spoil)
    found = Enumeration(world.nvml).slots()[WHOLE].gpu.value
    assert (found.model, found.serial) == ("", "")
    assert found.uuid == world.node.gpus[WHOLE].uuid


@pytest.mark.parametrize("uuid", [b"GPU-\xff", b""])
def test_a_gpu_that_cannot_be_told_from_others_is_no_device(world, uuid):
    """nvitop #100: a uuid that was cut off at a zero byte."""

    def spoil(state):
        state.uuid = uuid

    world.alter(WHOLE, spoil)
    slots = Enumeration(world.nvml).slots()
    assert isinstance(slots[WHOLE].gpu, Failed)
    assert isinstance(slots[PARTITIONED].gpu, Value)


def test_a_board_without_minor_number_or_serial_is_listed_all_the_same(world):
    world.fail(
        WHOLE,
        nvmlDeviceGetMinorNumber=Return.NOT_SUPPORTED,
        nvmlDeviceGetSerial=Return.CORRUPTED_INFOROM,
        nvmlDeviceGetMigMode=Return.NO_PERMISSION,
    )
    found = Enumeration(world.nvml).slots()[WHOLE].gpu.value
    assert (found.minor, found.serial, found.mig_enabled) == (None, "", False)


def test_another_gpu_at_the_same_index_is_not_taken_for_the_one_of_the_session(world):
    session = world.session(WHOLE)
    resolved(session)

    def replace(state):
        state.uuid = b"GPU-another"

    world.alter(WHOLE, replace)
    assert session.devices() == Lost("gpu_not_found")


def test_a_gpu_that_is_not_at_its_index_is_lost(world):
    session = world.session(WHOLE)
    resolved(session)

    def remove(state):
        state.present = 0

    world.alter(WHOLE, remove)
    assert session.devices() == Lost("gpu_not_found")


def test_a_closed_session_reads_nothing(world):
    session = world.session(WHOLE)
    (device,) = resolved(session)
    session.close()
    assert session.read(POWER, device) == Failed("NOT_FOUND")


def test_a_gpu_without_events_leaves_the_set_usable(world):
    gpus = tuple(slot.gpu.value for slot in Enumeration(world.nvml).slots())
    world.fail(WHOLE, nvmlDeviceRegisterEvents=Return.NOT_SUPPORTED)
    events = world.nvml.events(gpus).value
    world.inject(scenario.Xid(node="n", gpu=PARTITIONED, xid=43))
    (event,) = events.wait(10).value
    assert (event.kind, event.gpu, event.data) == (EventKind.XID, gpus[PARTITIONED].uuid, 43)
    events.close()


def test_a_board_without_ecc_reports_its_xids(world):
    def forget_ecc(state):
        state.event_types = 0x8

    gpus = tuple(slot.gpu.value for slot in Enumeration(world.nvml).slots())
    world.alter(WHOLE, forget_ecc)
    events = world.nvml.events(gpus[:1]).value
    world.inject(scenario.Xid(node="n", gpu=WHOLE, xid=31))
    assert [event.data for event in events.wait(10).value] == [31]
    events.close()


def test_events_that_no_gpu_reports_are_unsupported(world):
    gpus = tuple(slot.gpu.value for slot in Enumeration(world.nvml).slots())
    for gpu in (WHOLE, PARTITIONED):
        world.fail(gpu, nvmlDeviceRegisterEvents=Return.NOT_SUPPORTED)
    assert world.nvml.events(gpus) == Unsupported("device")


def test_a_set_that_fails_is_freed_and_keeps_saying_so(world):
    gpus = tuple(slot.gpu.value for slot in Enumeration(world.nvml).slots())
    events = world.nvml.events(gpus).value
    world.feed.file.fail_events(Return.UNKNOWN)
    world.driver.forget_calls()
    assert events.wait(0.01) == Failed("UNKNOWN")
    assert events.wait(0.01) == Failed("UNKNOWN")
    events.close()
    assert world.driver.calls() == {"nvmlEventSetWait_v2": 1, "nvmlEventSetFree": 1}
    world.feed.file.fail_events(0)
    assert isinstance(world.nvml.events(gpus), Value)


def test_an_event_of_a_gpu_under_another_address_still_names_it(world):
    event_set = pynvml.nvmlEventSetCreate()
    handle = pynvml.nvmlDeviceGetHandleByIndex(WHOLE)
    pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, event_set)
    events = RealEvents(event_set, {})
    world.inject(scenario.Xid(node="n", gpu=WHOLE, xid=31))
    assert [event.gpu for event in events.wait(10).value] == [world.node.gpus[WHOLE].uuid]
    world.fail(WHOLE, nvmlDeviceGetUUID=Return.GPU_IS_LOST)
    world.inject(scenario.Xid(node="n", gpu=WHOLE, xid=79))
    assert [(event.gpu, event.data) for event in events.wait(10).value] == [("", 79)]
    events.close()


def test_an_event_of_a_kind_that_nobody_asked_for_costs_no_other(world):
    event_set = pynvml.nvmlEventSetCreate()
    handle = pynvml.nvmlDeviceGetHandleByIndex(WHOLE)
    pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, event_set)
    events = RealEvents(event_set, {})
    world.inject(scenario.Xid(node="n", gpu=WHOLE, xid=31))
    both = pynvml.nvmlEventTypeXidCriticalError | pynvml.nvmlEventTypeClock
    world.feed.file.put_event(EventState(gpu=WHOLE, type=both))
    world.inject(scenario.Xid(node="n", gpu=WHOLE, xid=79))
    assert [event.data for event in events.wait(10).value] == [31, 79]
    events.close()


def test_the_structures_are_unpacked_as_the_binding_lays_them_out():
    memory = pynvml.c_nvmlMemory_v2_t(version=1, total=2, reserved=3, free=4, used=5)
    assert struct.Struct("@I4Q").unpack_from(memory) == (1, 2, 3, 4, 5)
    sample = pynvml.c_nvmlSample_t(timeStamp=7)
    sample.sampleValue.uiVal = 8
    assert struct.Struct("@QI").unpack_from(sample) == (7, 8)
    assert ctypes.sizeof(pynvml.c_nvmlDeviceAttributes) == struct.calcsize("@8IQ")


def test_profiles_whose_names_are_not_text_hide_no_instance(world):
    def spoil(state):
        for profile in state.profiles:
            profile.name = b"MIG \xff\xfe"

    world.alter(PARTITIONED, spoil)
    _, *instances = resolved(world.session(PARTITIONED))
    assert len(instances) == len(world.node.gpus[PARTITIONED].mig_devices)


def test_an_absurd_number_of_instances_is_not_walked_to_its_end(world):
    def spoil(state):
        state.mig_slots = 4_000_000_000

    world.alter(PARTITIONED, spoil)
    _, *instances = resolved(world.session(PARTITIONED))
    assert len(instances) == len(world.node.gpus[PARTITIONED].mig_devices)
