"""vGPUs of a host, through both implementations of the Nvml seam."""

from ctypes import c_uint64

import pynvml
import pytest

from exporter.nvml.protocol import Failed, Lost, Unsupported, Value
from simulator import scenario
from slicewatch.catalog import CATALOG
from slicewatch.catalog.readings.vgpu import SchedulerPolicy
from slicewatch.catalog.vgpu import VGPU_SCHEDULER, VGPU_UTILIZATION, VGPU_WAITS, VGPUS
from testbed.driver.answers_of.vgpu import LOG, OLD_LOG, OLD_RATES, OLD_STATE, RATES, STATE

GIB = 2**30
SCENARIO = """
nodes:
  - name: n
    gpus:
      - model: L40S
        scheduler: {policy: equal_share, time_slice: 5ms}
        vgpus:
          - {vm: a, type: NVIDIA L40S-12Q, memory: 12GiB, used: 7GiB, load: 0.9,
             mix: {dram: 0.5, encoder: 0.25, decoder: 0.75}}
          - {vm: b, type: NVIDIA L40S-24Q, memory: 24GiB, used: 1GiB, load: 0.3, licensed: false}
          - {vm: c, type: NVIDIA L40S-12Q, memory: 12GiB, load: 0.9, from: 60s, until: 90s}
      - {model: L40S}
      - {model: A100-80GB, mig: [3g.40gb]}
      - model: T4
        vgpus: [{vm: d, type: GRID T4-8C, memory: 8GiB}]
      - {model: A30, license: {until: 1h}}
"""
HOST, PLAIN, PARTITIONED, QUIET, GUEST = range(5)
PROBES = (VGPUS, VGPU_UTILIZATION, VGPU_SCHEDULER, VGPU_WAITS)
NOT_SUPPORTED, TOO_OLD = pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
UNKNOWN, NOT_FOUND = pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_NOT_FOUND

of_real = pytest.mark.parametrize("world", ["real"], indirect=True)


class Gpu:
    """One GPU of a world, in a session of its own."""

    def __init__(self, world, index=HOST):
        self._session = world.session(index)
        self.simulated = world.node.gpus[index]

    def read(self, probe, row=0):
        return self._session.read(probe, self._session.devices().value[row])

    def by_vm(self):
        """Return what the host says of each vGPU, by the name of its machine."""
        names = {one.vm: one.vm_name for one in self.simulated.vgpu_host.instances()}
        return {names[vgpu.vm]: vgpu for vgpu in self.read(VGPUS).value.running}

    def uuid(self, name):
        found = self.simulated.vgpu_host.instances()
        return next(one.uuid for one in found if one.vm_name == name)

    def number(self, name):
        found = self.simulated.vgpu_host.instances()
        return next(one.id for one in found if one.vm_name == name)


def times(reading):
    return {t.uuid: (t.run_nanoseconds, t.wait_nanoseconds) for t in reading.totals}


def wait_of(times, uuid):
    run, wait = times[uuid]
    return wait / (run + wait)


def test_vgpus_are_told_apart_with_what_each_has(world):
    found = Gpu(world).by_vm()
    assert set(found) == {"a", "b"}
    assert (found["a"].type_name, found["b"].type_name) == ("NVIDIA L40S-12Q", "NVIDIA L40S-24Q")
    # More than a word of 32 bits holds, which is all that the binding has room for.
    assert (found["a"].used_bytes, found["a"].limit_bytes) == (7 * GIB, 12 * GIB)
    assert (found["b"].used_bytes, found["b"].limit_bytes) == (GIB, 24 * GIB)
    assert (found["a"].licensed, found["b"].licensed) == (1, 0)
    assert found["a"].uuid != found["b"].uuid


def test_a_machine_is_listed_while_it_runs(world):
    gpu = Gpu(world)
    assert gpu.read(VGPUS).value.active == 2
    world.advance(40)
    assert set(gpu.by_vm()) == {"a", "b", "c"}
    world.advance(30)
    assert gpu.read(VGPUS).value.active == 2
    assert set(gpu.by_vm()) == {"a", "b"}


@pytest.mark.parametrize("gpu", [PLAIN, PARTITIONED, GUEST])
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_what_is_no_host_says_so(world, gpu, probe):
    assert Gpu(world, gpu).read(probe) == Unsupported("no_vgpu_host")


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_a_mig_instance_has_no_vgpus_of_its_own(world, probe):
    assert Gpu(world, PARTITIONED).read(probe, 1) == Unsupported("mig_instance")


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_vgpus_are_lost_with_their_gpu(world, probe):
    session = world.session(HOST)
    (device,) = session.devices().value
    world.inject(scenario.Lost(node="n", gpu=HOST))
    assert session.read(probe, device) == Lost("gpu_is_lost")


def test_utilization_is_that_of_each_vgpu_since_the_last_read(world):
    gpu = Gpu(world)
    gpu.read(VGPU_UTILIZATION)
    world.advance(5)
    rates = {rate.uuid: rate for rate in gpu.read(VGPU_UTILIZATION).value.rates}
    rate = rates[gpu.uuid("a")]
    # Two run, so that each is granted half at most.
    assert (rate.sm_percent, rate.memory_percent) == (50, 25)
    assert (rate.encoder_percent, rate.decoder_percent) == (13, 38)
    assert rates[gpu.uuid("b")].sm_percent == 30


def test_utilization_without_a_new_sample_is_unknown_and_no_failure(world):
    gpu = Gpu(world)
    gpu.read(VGPU_UTILIZATION)
    reading = gpu.read(VGPU_UTILIZATION).value
    assert reading.rates == ()


def test_nonsense_of_a_driver_in_trouble_is_out_of_range(world):
    """go-nvml #51, DCGM #83: blanks were shown as percentages."""
    world.inject(scenario.Garbage(node="n", gpu=HOST))
    reading = Gpu(world).read(VGPU_UTILIZATION).value
    metric = CATALOG["gpu_vgpu_sm_ratio"]
    assert reading.rates
    assert not any(map(metric.limits.hold, metric.value(reading).values()))


def test_the_scheduler_says_how_time_is_shared(world):
    scheduler = Gpu(world).read(VGPU_SCHEDULER).value
    assert scheduler.policy_name() is SchedulerPolicy.EQUAL_SHARE
    assert scheduler.slice_seconds() == pytest.approx(0.005)
    default = Gpu(world, QUIET).read(VGPU_SCHEDULER).value
    assert default.policy_name() is SchedulerPolicy.BEST_EFFORT
    assert default.slice_seconds() is None


def test_the_first_read_of_the_log_adds_nothing(world):
    gpu = Gpu(world)
    reading = gpu.read(VGPU_WAITS).value
    assert set(times(reading).values()) == {(0, 0)}
    assert reading.ratio() is None


def test_one_read_a_second_tells_running_and_waiting_of_all_the_time(world):
    gpu = Gpu(world)
    gpu.read(VGPU_WAITS)
    begin = world.fleet.now
    ran = waited = 0
    for _ in range(20):
        world.advance(1)
        reading = gpu.read(VGPU_WAITS).value
        ran, waited = ran + reading.run_nanoseconds, waited + reading.wait_nanoseconds
    truth = world.fleet.truth.vgpu_wait_ratio
    gpu_uuid = gpu.simulated.uuid
    expected = truth(gpu_uuid, None, begin, world.fleet.now)
    assert waited / (ran + waited) == pytest.approx(expected, rel=0.01)
    found = times(reading)
    for name in ("a", "b"):
        expected = truth(gpu_uuid, name, begin, world.fleet.now)
        assert wait_of(found, gpu.uuid(name)) == pytest.approx(expected, rel=0.01, abs=1e-4)
    assert found[gpu.uuid("a")][0] == pytest.approx(20e9 * 0.5, rel=0.01)


def test_nobody_waits_where_nobody_works(world):
    gpu = Gpu(world, QUIET)
    for _ in range(3):
        world.advance(1)
        reading = gpu.read(VGPU_WAITS).value
    assert (reading.totals, reading.ratio(), reading.consistent()) == ((), None, True)


def test_totals_of_a_machine_end_with_it_and_become_nobody_elses(world):
    gpu = Gpu(world)
    world.advance(31)
    gpu.read(VGPU_WAITS)
    world.advance(28.9)
    ending = gpu.uuid("c")
    assert times(gpu.read(VGPU_WAITS).value)[ending][1] > 0
    world.advance(0.2)
    assert set(times(gpu.read(VGPU_WAITS).value)) == {gpu.uuid("a"), gpu.uuid("b")}


def test_totals_outlive_nvml(world):
    gpu = Gpu(world)
    gpu.read(VGPU_WAITS)
    world.advance(1)
    before = times(gpu.read(VGPU_WAITS).value)
    world.nvml.stop()
    world.advance(1)
    world.nvml.start()
    after = times(Gpu(world).read(VGPU_WAITS).value)
    uuid = gpu.uuid("a")
    assert after[uuid][0] - before[uuid][0] == pytest.approx(0.5e9, rel=0.05)


@of_real
@pytest.mark.parametrize("code", [NOT_SUPPORTED, TOO_OLD])
@pytest.mark.parametrize(
    ("probe", "calls"),
    [
        (VGPU_UTILIZATION, (RATES, OLD_RATES)),
        (VGPU_SCHEDULER, (STATE, OLD_STATE)),
        (VGPU_WAITS, (LOG, OLD_LOG)),
    ],
    ids=lambda it: getattr(it, "name", ""),
)
def test_either_of_two_calls_suffices_and_the_one_that_works_is_remembered(
    world, probe, calls, code
):
    """HAMi #601, #2015: new boards refuse the old calls, old drivers lack the new ones."""
    for broken in calls:
        gpu = Gpu(world)
        world.fail(HOST, **{broken: code})
        world.advance(1)
        assert isinstance(gpu.read(probe), Value)
        world.driver.forget_calls()
        world.advance(1)
        assert isinstance(gpu.read(probe), Value)
        assert world.driver.calls().get(broken, 0) == 0
    world.fail(HOST, **dict.fromkeys(calls, code))
    reason = "driver" if code == TOO_OLD else "device"
    assert Gpu(world).read(probe) == Unsupported(reason)


@of_real
def test_a_driver_that_is_not_there_in_a_guest_is_no_driver_that_is_gone_from_the_host(world):
    """NVML has one code for both, which else stands for a start of NVML anew."""
    number = (Gpu(world).number("a"), 0)

    def change(into):
        call = "nvmlVgpuInstanceGetLicenseInfo_v2"
        into.refuse(call, pynvml.NVML_ERROR_DRIVER_NOT_LOADED, key=number)

    world.answer(HOST, change)
    found = Gpu(world).by_vm()
    assert (found["a"].licensed, found["a"].used_bytes) == (None, 7 * GIB)
    assert found["b"].licensed == 0


@of_real
def test_a_call_that_says_nothing_of_one_vgpu_leaves_all_else(world):
    """HAMi #1089: one call that failed for one device hid every metric of all."""
    gpu = Gpu(world)
    number = (gpu.number("a"), 0)

    def change(into):
        for call in ("GetFbUsage", "GetVmID", "GetType"):
            into.refuse(f"nvmlVgpuInstance{call}", UNKNOWN, key=number)

    uuid = gpu.uuid("a")
    world.answer(HOST, change)
    running = {vgpu.uuid: vgpu for vgpu in Gpu(world).read(VGPUS).value.running}
    hidden = running.pop(uuid)
    assert (hidden.type_name, hidden.vm, hidden.used_bytes, hidden.limit_bytes) == (
        "", "", None, None,
    )  # fmt: skip
    assert hidden.licensed == 1
    (other,) = running.values()
    assert other.used_bytes == GIB


@of_real
def test_a_vgpu_without_a_name_is_counted_but_has_no_series(world):
    number = (Gpu(world).number("a"), 0)

    def change(into):
        into.put("nvmlVgpuInstanceGetUUID", b"\xff\xfe", key=number)

    world.answer(HOST, change)
    reading = Gpu(world).read(VGPUS).value
    assert (reading.active, len(reading.running)) == (2, 1)


@of_real
def test_a_vgpu_that_ends_between_two_calls_is_left_out(world):
    number = (Gpu(world).number("a"), 0)

    def change(into):
        into.refuse("nvmlVgpuInstanceGetType", NOT_FOUND, key=number)

    world.answer(HOST, change)
    assert set(Gpu(world).by_vm()) == {"b"}


@of_real
def test_memory_that_the_driver_does_not_state_is_out_of_range(world):
    number = (Gpu(world).number("a"), 0)

    def change(into):
        into.put("nvmlVgpuInstanceGetFbUsage", c_uint64(2**64 - 1), key=number)

    world.answer(HOST, change)
    metric = CATALOG["gpu_vgpu_memory_used_bytes"]
    shown = metric.value(Gpu(world).read(VGPUS).value)
    assert sorted(map(metric.limits.hold, shown.values())) == [False, True]


@of_real
@pytest.mark.parametrize("lost", ["nvmlVgpuInstanceGetType", "nvmlVgpuInstanceGetFbUsage"])
def test_a_gpu_that_goes_between_two_calls_is_lost(world, lost):
    gpu = Gpu(world)
    world.fail(HOST, **{lost: pynvml.NVML_ERROR_GPU_IS_LOST})
    assert gpu.read(VGPUS) == Lost("gpu_is_lost")


@of_real
def test_rates_are_read_in_whichever_type_the_driver_gives_them(world):
    gpu = Gpu(world)
    at_us = world.fleet.clock.epoch_us + 30_000_000

    def change(into):
        row = pynvml.c_nvmlVgpuInstanceUtilizationInfo_v1_t(
            vgpuInstance=gpu.number("a"), timeStamp=at_us
        )
        row.smUtil.dVal, row.memUtil.dVal = 12.5, 1.25
        into.put_list(RATES, [row], value_type=pynvml.NVML_VALUE_TYPE_DOUBLE)

    world.answer(HOST, change)
    (rate,) = gpu.read(VGPU_UTILIZATION).value.rates
    assert (rate.sm_percent, rate.memory_percent) == (12.5, 1.25)


@of_real
@pytest.mark.parametrize("ahead_us", [-(10**15), 10**15], ids=["of no time", "of tomorrow"])
def test_rows_of_impossible_times_are_left_out_and_move_nothing(world, ahead_us):
    """nvtop #110: rows that nobody filled; as a cursor they would hide all that comes after."""
    gpu = Gpu(world)
    gpu.read(VGPU_UTILIZATION)
    world.advance(5)

    def change(into):
        at_us = max(world.fleet.clock.epoch_us + ahead_us, 0)
        row = pynvml.c_nvmlVgpuInstanceUtilizationInfo_v1_t(
            vgpuInstance=gpu.number("a"), timeStamp=at_us
        )
        into.add_rows(RATES, [row])

    world.answer(HOST, change)
    assert len(gpu.read(VGPU_UTILIZATION).value.rates) == 2
    world.advance(5)
    assert len(gpu.read(VGPU_UTILIZATION).value.rates) == 2


@of_real
def test_a_log_that_claims_more_than_it_can_hold_is_read_as_far_as_it_goes(world):
    gpu = Gpu(world)
    gpu.read(VGPU_WAITS)

    def change(into):
        log = pynvml.c_nvmlVgpuSchedulerLogInfo_v2_t(engineId=1, entriesCount=2**32 - 1)
        into.put(LOG, log, key=(1, 0))

    world.answer(HOST, change)
    reading = gpu.read(VGPU_WAITS).value
    assert (reading.run_nanoseconds, reading.wait_nanoseconds) == (0, 0)
    # Rows that nobody filled are no run list.
    assert "" not in times(reading)


@of_real
def test_run_lists_of_unknown_vgpus_count_for_the_gpu_alone(world):
    """How a run list is numbered is not documented: small numbers would fit no instance."""

    def change(into):
        log = pynvml.c_nvmlVgpuSchedulerLogInfo_v2_t(engineId=1, entriesCount=1)
        now_ns = round(1e9 * world.fleet.now)
        log.logEntries[0].timestamp, log.logEntries[0].swRunlistId = now_ns, 3
        log.logEntries[0].timeRunTotal = now_ns // 4
        log.logEntries[0].cumulativePreemptionTime = now_ns // 2
        into.put(LOG, log, key=(1, 0))

    world.answer(HOST, change)
    gpu = Gpu(world)
    gpu.read(VGPU_WAITS)
    world.advance(4)
    reading = gpu.read(VGPU_WAITS).value
    assert times(reading)[""] == pytest.approx((1e9, 2e9), rel=1e-6)
    assert reading.ratio() == pytest.approx(2 / 3)


@of_real
def test_a_partitioned_host_lists_its_vgpus_but_schedules_each_on_its_own(world):
    host = pynvml.NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU

    def change(into):
        into.put("nvmlDeviceGetVirtualizationMode", host)
        into.put_list("nvmlDeviceGetActiveVgpus", [])

    world.answer(PARTITIONED, change)
    gpu = Gpu(world, PARTITIONED)
    assert gpu.read(VGPUS).value.active == 0
    assert gpu.read(VGPU_SCHEDULER) == Unsupported("mig_enabled")
    assert gpu.read(VGPU_WAITS) == Unsupported("mig_enabled")


@of_real
def test_a_board_that_is_no_host_is_asked_for_its_mode_only(world):
    gpu = Gpu(world, PLAIN)
    world.driver.forget_calls()
    for probe in PROBES:
        gpu.read(probe)
    asked = {name: n for name, n in world.driver.calls().items() if n and "gpu" in name.lower()}
    assert not [name for name in asked if "vgpu" in name.lower()]
    assert world.driver.calls()["nvmlDeviceGetVirtualizationMode"] == len(PROBES)


@of_real
def test_a_log_that_fails_is_a_failure_and_no_time_without_waiting(world):
    gpu = Gpu(world)
    gpu.read(VGPU_WAITS)
    world.fail(HOST, **{LOG: UNKNOWN})
    world.advance(2)
    assert gpu.read(VGPU_WAITS) == Failed("UNKNOWN")
    world.alter(HOST, None)
    world.advance(1)
    # What passed meanwhile is in the totals.
    assert gpu.read(VGPU_WAITS).value.run_nanoseconds == pytest.approx(3 * 0.8e9, rel=0.05)
