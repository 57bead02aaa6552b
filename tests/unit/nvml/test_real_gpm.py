"""GPM through the driver: one sample at a time, none kept, and what a driver refuses."""

import threading
import time

import pynvml
import pytest

from exporter.nvml.protocol import Failed, Lost, Unsupported, Value
from exporter.nvml.real.gpm import BUSY, PATIENCE_SECONDS
from exporter.nvml.real.returns import Return
from simulator import scenario
from slicewatch.catalog.gpm import GPM, GPM_DETAILS
from slicewatch.catalog.readings.gpm import GpmMetric
from slicewatch.catalog.utilization import UTILIZATION
from testbed.driver.answers import nvml

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB, count: 4}
      - {model: H100-80GB, mig: [1g.10gb, 1g.10gb, 1g.10gb]}
workloads:
  - name: w
    load: 0.5
    pods: [{name: p, devices: [{node: n, gpu: 0}, {node: n, gpu: 4, mig: 0}]}]
"""
WHOLE, OTHER, PARTITIONED = 0, 1, 4
PROBES = (UTILIZATION, GPM, GPM_DETAILS)
DEADLINE_SECONDS = 20


def resolved(session):
    outcome = session.devices()
    assert isinstance(outcome, Value), outcome
    return outcome.value


def read_all(session):
    return {(d.uuid, p.name): session.read(p, d) for d in resolved(session) for p in PROBES}


def samples_held(world):
    calls = world.driver.calls()
    return calls.get("nvmlGpmSampleAlloc", 0) - calls.get("nvmlGpmSampleFree", 0)


def test_no_two_samples_are_taken_at_once_in_the_whole_process(world):
    """DataDog #54458 and plazonic #7: drivers crashed, with a thread of its own for each GPU."""
    begin = threading.Barrier(5)
    sessions = [world.session(gpu) for gpu in range(5)]

    def work(session):
        for _ in range(20):
            begin.wait(DEADLINE_SECONDS)
            resolved(session)
            session.read(GPM, resolved(session)[0])
            begin.wait(DEADLINE_SECONDS)

    threads = [threading.Thread(target=work, args=(s,), daemon=True) for s in sessions[1:]]
    for thread in threads:
        thread.start()
    for _ in range(20):
        world.advance(1)
        begin.wait(DEADLINE_SECONDS)
        read_all(sessions[0])
        begin.wait(DEADLINE_SECONDS)
    for thread in threads:
        thread.join(DEADLINE_SECONDS)
        assert not thread.is_alive()
    assert world.driver.calls()["nvmlGpmSampleGet"] >= 5 * 15
    assert world.feed.file.gpm_most_at_once == 1


def test_all_probes_of_a_pass_share_one_sample_of_each_device(world):
    session = world.session(PARTITIONED)
    for _ in range(3):
        world.advance(1)
        world.driver.forget_calls()
        read_all(session)
        calls = world.driver.calls()
        assert (calls["nvmlGpmSampleGet"], calls["nvmlGpmMigSampleGet"]) == (1, 3)
    assert calls["nvmlGpmMetricsGet"] == 2 * 4
    assert "nvmlGpmQueryDeviceSupport" not in calls


def test_three_samples_a_device_are_held_and_none_after_the_end(world):
    world.driver.forget_calls()
    session = world.session(PARTITIONED)
    for _ in range(6):
        world.advance(1)
        read_all(session)
    # Two that are compared, and the room for the next one.
    assert samples_held(world) == 3 * 4
    session.close()
    assert samples_held(world) == 0
    session.close()
    assert samples_held(world) == 0


def test_nothing_of_an_instance_is_held_once_it_is_gone(world):
    """DCGM #276: what an exporter still holds keeps others from repartitioning a GPU."""
    world.driver.forget_calls()
    session = world.session(PARTITIONED)
    for _ in range(2):
        world.advance(1)
        read_all(session)
    world.inject(scenario.MigLayout(node="n", gpu=PARTITIONED, mig=()))
    assert len(resolved(session)) == 1
    assert samples_held(world) == 0


def test_a_sample_that_fails_is_given_back_and_its_pair_goes_on(world):
    world.driver.forget_calls()
    session = world.session(WHOLE)
    (device,) = resolved(session)
    session.read(GPM, device)
    world.fail(WHOLE, nvmlGpmSampleGet=Return.UNKNOWN)
    world.advance(1)
    resolved(session)
    world.driver.forget_calls()
    assert [session.read(p, device) for p in (GPM, GPM_DETAILS)] == [Failed("UNKNOWN")] * 2
    assert world.driver.calls()["nvmlGpmSampleGet"] == 1
    assert samples_held(world) == 0
    world.alter(WHOLE, None)
    world.advance(1)
    resolved(session)
    assert session.read(GPM, device).value.values[GpmMetric.GRAPHICS] == pytest.approx(50)


def test_a_metric_with_an_error_of_its_own_is_absent_and_costs_no_other(world):
    """DCGM #303: zeros were shown where a metric could not be computed."""
    session = world.session(WHOLE)
    world.answer(
        WHOLE,
        lambda into: into.refuse("nvmlGpmMetricsGet", Return.UNKNOWN, key=(GpmMetric.SM, 0)),
    )
    session.read(GPM, *resolved(session))
    world.advance(1)
    reading = session.read(GPM, *resolved(session)).value
    assert reading.ratio(GpmMetric.SM) is None
    assert reading.ratio(GpmMetric.GRAPHICS) == pytest.approx(0.5)


def refused(world, code):
    def refuse(into):
        into.forget("nvmlGpmMetricsGet")
        into.refuse("nvmlGpmMetricsGet", code)

    session = world.session(WHOLE)
    world.answer(WHOLE, refuse)
    session.read(GPM, *resolved(session))
    world.advance(1)
    return session.read(GPM, *resolved(session))


def test_metrics_that_all_fail_are_a_failed_read(world):
    """DCGM #303: after an Xid 31 the profiling counters said 0 of a busy GPU."""
    assert refused(world, Return.UNKNOWN) == Failed("UNKNOWN")


def test_a_board_that_supports_none_of_the_metrics_says_so(world):
    assert refused(world, Return.NOT_SUPPORTED) == Unsupported("device")


@pytest.mark.parametrize("call", ["nvmlGpmQueryDeviceSupport", "nvmlGpmMigSampleGet"])
@pytest.mark.parametrize(
    ("code", "gpm", "utilization"),
    [
        (Return.NO_PERMISSION, Unsupported("permission"), Unsupported("permission")),
        (Return.FUNCTION_NOT_FOUND, Unsupported("driver"), Unsupported("mig_instance")),
        (Return.NOT_SUPPORTED, Unsupported("device"), Unsupported("mig_instance")),
        (Return.GPU_IS_LOST, Lost("gpu_is_lost"), Lost("gpu_is_lost")),
        (Return.UNKNOWN, Failed("UNKNOWN"), Failed("UNKNOWN")),
    ],
)
def test_a_refusal_keeps_its_reason(world, call, code, gpm, utilization):
    session = world.session(PARTITIONED)
    _, instance, *_ = resolved(session)
    world.fail(PARTITIONED, **{call: code})
    assert session.read(UTILIZATION, instance) == utilization
    assert session.read(GPM, instance) == gpm


def test_a_guest_whose_virtual_gpu_has_no_counters_says_so(world):
    def without(into):
        into.put_version("nvmlGpmQueryDeviceSupport", nvml.c_nvmlGpmSupport_t(version=1))

    world.answer(WHOLE, without)
    session = world.session(WHOLE)
    world.driver.forget_calls()
    assert session.read(GPM, *resolved(session)) == Unsupported("device")
    assert "nvmlGpmSampleGet" not in world.driver.calls()


def test_compute_instances_that_share_a_gpu_instance_have_nothing_of_their_own(world):
    def share(state):
        state.slots[1].gpu_instance = state.slots[0].gpu_instance
        state.slots[1].compute_instance = 1

    world.alter(PARTITIONED, share)
    session = world.session(PARTITIONED)
    whole, first, second, alone = resolved(session)
    for probe in PROBES:
        for device in (first, second):
            assert session.read(probe, device) == Unsupported("shared_gpu_instance")
        for device in (whole, alone):
            assert isinstance(session.read(probe, device), Value)


def test_an_instance_created_anew_with_the_same_names_is_not_compared_with_the_old_one(world):
    session = world.session(PARTITIONED)
    _, instance, *_ = resolved(session)
    session.read(GPM, instance)
    layout = world.inject(scenario.MigLayout(node="n", gpu=PARTITIONED, mig=()))
    world.clear(layout)
    world.advance(1)
    assert resolved(session)[1] == instance
    assert session.read(GPM, instance) == Failed("INVALID_ARGUMENT")
    world.advance(1)
    resolved(session)
    assert session.read(GPM, instance).value.values


def test_a_gpu_that_hangs_in_a_sample_holds_up_the_others_once_a_pass(world):
    """dcgm-exporter #215: one call that never returns."""
    hanging, others = world.session(WHOLE), world.session(PARTITIONED)
    (device,) = resolved(hanging)
    hanging.read(GPM, device)
    world.advance(1)
    resolved(hanging)
    world.feed.file.hang(WHOLE, hanging=True)
    thread = threading.Thread(target=lambda: hanging.read(GPM, device), daemon=True)
    before = world.driver.calls()["nvmlGpmSampleGet"]
    thread.start()
    deadline = time.monotonic() + DEADLINE_SECONDS
    try:
        while world.driver.calls()["nvmlGpmSampleGet"] == before and time.monotonic() < deadline:
            thread.join(0.01)
        devices = resolved(others)
        began = time.monotonic()
        outcomes = [others.read(GPM, there) for there in devices]
        spent = time.monotonic() - began
    finally:
        world.feed.file.hang(WHOLE, hanging=False)
        thread.join(DEADLINE_SECONDS)
    assert outcomes == [BUSY] * 4
    assert spent < 2 * PATIENCE_SECONDS
    assert not thread.is_alive()
    resolved(others)
    assert isinstance(others.read(GPM, devices[0]), Value)


def test_our_numbers_are_those_of_the_binding():
    names = {
        "GRAPHICS": "GRAPHICS_UTIL", "SM": "SM_UTIL", "OCCUPANCY": "SM_OCCUPANCY",
        "INTEGER": "INTEGER_UTIL", "TENSOR": "ANY_TENSOR_UTIL", "DRAM": "DRAM_BW_UTIL",
        "PCIE_TRANSMIT": "PCIE_TX_PER_SEC", "PCIE_RECEIVE": "PCIE_RX_PER_SEC",
        "NVLINK_RECEIVE": "NVLINK_TOTAL_RX_PER_SEC", "NVLINK_TRANSMIT": "NVLINK_TOTAL_TX_PER_SEC",
    }  # fmt: skip
    for metric in GpmMetric:
        suffix = "TENSOR_UTIL" if metric.name.endswith("MA") else "UTIL"
        name = names.get(metric.name, f"{metric.name}_{suffix}")
        assert metric == getattr(pynvml, f"NVML_GPM_METRIC_{name}")
