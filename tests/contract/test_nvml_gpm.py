"""What GPM tells, and utilization under MIG, which comes from it: on both implementations."""

import pytest

from exporter.nvml.gpm import LONGEST_PAIR_US
from exporter.nvml.protocol import Failed, Unsupported, Value
from simulator import scenario
from slicewatch.catalog import CATALOG
from slicewatch.catalog.gpm import GPM, GPM_DETAILS
from slicewatch.catalog.readings.gpm import GpmMetric
from slicewatch.catalog.utilization import UTILIZATION

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB}
      - {model: H100-80GB, mig: [null, 1g.10gb, 3g.40gb]}
      - {model: A100-80GB, mig: [1g.10gb]}
      - {model: A100-80GB}
workloads:
  - name: whole
    load: {wave: {low: 0.1, high: 0.9, period: 7s}}
    mix: {fp64: 0.25, decoder: 0.5, ofa: 0.125, nvlink_tx: 10GB}
    pods: [{name: a, devices: [{node: n, gpu: 0}]}]
  - name: slice
    load: {wave: {low: 0.2, high: 1.0, period: 11s}}
    mix: {sm: 0.5, tensor: 0.25}
    pods: [{name: b, devices: [{node: n, gpu: 1, mig: 1}]}]
  - name: saturated
    load: 1.0
    pods: [{name: c, devices: [{node: n, gpu: 1, mig: 2}]}]
"""
WHOLE, PARTITIONED, AMPERE_PARTITIONED, AMPERE = range(4)


def resolved(session):
    outcome = session.devices()
    assert isinstance(outcome, Value), outcome
    return outcome.value


def value_of(name, reading):
    metric = CATALOG[name]
    value = metric.value(reading)
    several = value.values() if isinstance(value, dict) else [value]
    assert all(v is None or metric.limits.hold(v) for v in several)
    return value


def read(session, probe, number=0):
    outcome = session.read(probe, resolved(session)[number])
    assert isinstance(outcome, Value), outcome
    return outcome.value


def truth(world, device, quantity, seconds):
    return world.fleet.truth.gpm_mean(
        device.uuid, quantity, world.fleet.now - seconds, world.fleet.now
    )


@pytest.mark.parametrize("length", [1.0, 1.3, 17.0])
@pytest.mark.parametrize(("gpu", "number"), [(WHOLE, 0), (PARTITIONED, 0), (PARTITIONED, 1)])
def test_ratios_are_the_means_since_the_pass_before(world, gpu, number, length):
    session = world.session(gpu)
    read(session, GPM, number)
    world.advance(length)
    device = resolved(session)[number]
    reading = session.read(GPM, device).value
    for name, quantity in {
        "gpu_gpm_graphics_ratio": "graphics",
        "gpu_gpm_sm_ratio": "sm",
        "gpu_gpm_sm_occupancy_ratio": "occupancy",
        "gpu_gpm_tensor_ratio": "tensor",
        "gpu_gpm_dram_ratio": "dram",
    }.items():
        expected = truth(world, device, quantity, length)
        assert value_of(name, reading) == pytest.approx(expected, rel=1e-4)
        assert expected > 0


def test_details_are_in_base_units_and_leave_out_what_the_board_does_not_count(world):
    session = world.session(WHOLE)
    read(session, GPM_DETAILS)
    world.advance(5)
    (device,) = resolved(session)
    reading = session.read(GPM_DETAILS, device).value
    pipes = value_of("gpu_gpm_pipe_ratio", reading)
    assert pipes["fp64"] == pytest.approx(truth(world, device, "fp64", 5), rel=1e-4)
    assert pipes["hmma"] is None
    engines = value_of("gpu_gpm_engine_ratio", reading)
    assert engines["nvdec6"] == pytest.approx(truth(world, device, "decoder", 5), rel=1e-4)
    assert engines["nvofa0"] == pytest.approx(truth(world, device, "ofa", 5), rel=1e-4)
    assert engines["nvjpg0"] == 0
    assert engines["nvdec7"] is None
    for name, link in (("pcie", "pcie"), ("nvlink", "nvlink")):
        rates = value_of(f"gpu_gpm_{name}_bytes_per_second", reading)
        for direction, end in (("receive", "rx"), ("transmit", "tx")):
            expected = truth(world, device, f"{link}_{end}", 5)
            assert rates[direction] == pytest.approx(expected, rel=1e-4)


def test_nvlink_and_engines_are_not_counted_under_mig(world):
    """dcgm-exporter #726, #675: what hardware cannot tell is absent, never 0."""
    session = world.session(PARTITIONED)
    for number in range(3):
        read(session, GPM_DETAILS, number)
    world.advance(2)
    for device in resolved(session):
        reading = session.read(GPM_DETAILS, device).value
        assert value_of("gpu_gpm_pcie_bytes_per_second", reading)["receive"] >= 0
        absent = (
            *value_of("gpu_gpm_nvlink_bytes_per_second", reading).values(),
            *value_of("gpu_gpm_engine_ratio", reading).values(),
        )
        assert set(absent) == {None}


def test_one_sample_says_nothing(world):
    session = world.session(WHOLE)
    assert read(session, GPM).values == {}
    assert read(session, GPM_DETAILS).values == {}
    assert read(world.session(PARTITIONED), UTILIZATION, 1).percent() is None


def test_samples_that_lie_close_together_make_no_pair(world):
    session = world.session(WHOLE)
    read(session, GPM)
    world.advance(0.5)
    assert read(session, GPM).values == {}
    world.advance(0.5)
    first = read(session, GPM)
    assert first.values
    world.advance(0.2)
    assert read(session, GPM) == first


def test_a_tick_that_comes_a_little_early_is_not_left_out(world):
    session = world.session(WHOLE)
    read(session, GPM)
    seen = []
    for length in (1.0, 0.97, 1.03, 0.96):
        world.advance(length)
        seen.append(read(session, GPM).values[GpmMetric.GRAPHICS])
    assert len(set(seen)) == 4


def test_a_long_silence_is_not_averaged(world):
    session = world.session(WHOLE)
    read(session, GPM)
    world.advance(LONGEST_PAIR_US / 1e6 + 1)
    assert read(session, GPM).values == {}
    world.advance(1)
    assert read(session, GPM).values


@pytest.mark.parametrize("number", [0, 1, 2])
def test_busy_time_under_mig_adds_up_to_the_truth(world, number):
    """gpu-monitoring-tools #152, dcgm-exporter #216 and #3: neither nonsense nor zeros."""
    session = world.session(PARTITIONED)
    read(session, UTILIZATION, number)
    begin, busy, covered = world.fleet.now, 0.0, 0.0
    for step in (1.0, 0.3, 0.9, 1.0, 4.0, 0.1, 1.0, 60.0):
        world.advance(step)
        device = resolved(session)[number]
        reading = session.read(UTILIZATION, device).value
        assert UTILIZATION.consistent(reading)
        assert reading.percent() is None or CATALOG["gpu_utilization"].limits.hold(
            reading.percent()
        )
        busy += reading.busy_seconds()
        covered += reading.covered_seconds()
        # The same time is never in two readings.
        assert session.read(UTILIZATION, device).value.covered_seconds() == 0
    assert covered == pytest.approx(world.fleet.now - begin, abs=1e-5)
    true = world.fleet.truth.busy_seconds(device.uuid, begin, world.fleet.now)
    assert busy == pytest.approx(true, rel=1e-4)


def test_an_instance_that_never_rests_is_at_100_percent_and_not_above(world):
    session = world.session(PARTITIONED)
    read(session, UTILIZATION, 2)
    for _ in range(20):
        world.advance(1.000_003)
        percent = read(session, UTILIZATION, 2).percent()
        assert percent == pytest.approx(100, rel=1e-5)
        assert percent <= 100


def test_before_hopper_the_reason_for_utilization_is_mig_and_that_for_gpm_the_device(world):
    whole, instance = resolved(session := world.session(AMPERE_PARTITIONED))
    assert session.read(UTILIZATION, whole) == Unsupported("mig_enabled")
    assert session.read(UTILIZATION, instance) == Unsupported("mig_instance")
    for device in (whole, instance):
        assert session.read(GPM, device) == Unsupported("device")
        assert session.read(GPM_DETAILS, device) == Unsupported("device")
    session = world.session(AMPERE)
    assert session.read(GPM, *resolved(session)) == Unsupported("device")


def test_no_pair_spans_a_change_of_layout(world):
    session = world.session(PARTITIONED)
    for number in range(3):
        read(session, GPM, number)
    world.inject(
        scenario.MigLayout(node="n", gpu=PARTITIONED, mig=(None, "1g.10gb", "3g.40gb", "1g.10gb"))
    )
    world.advance(1)
    for number in range(4):
        assert read(session, GPM, number).values == {}
    world.advance(1)
    for number in range(4):
        assert read(session, GPM, number).values[GpmMetric.GRAPHICS] >= 0


def test_mig_that_is_turned_off_gives_way_to_the_drivers_own_samples(world):
    session = world.session(PARTITIONED)
    read(session, UTILIZATION)
    world.inject(scenario.MigLayout(node="n", gpu=PARTITIONED, mig=False))
    read(session, UTILIZATION)
    assert read(session, GPM).values == {}
    world.advance(1)
    assert len(read(session, UTILIZATION).samples) > 1
    assert read(session, GPM).values


def test_a_gpu_that_was_lost_is_sampled_anew(world):
    session = world.session(WHOLE)
    read(session, GPM)
    injection = world.inject(scenario.Lost(node="n", gpu=WHOLE))
    session.devices()
    world.advance(5)
    world.clear(injection)
    assert read(session, GPM).values == {}


def test_an_instance_that_is_gone_is_not_sampled(world):
    session = world.session(PARTITIONED)
    _, first, _ = resolved(session)
    world.inject(scenario.MigLayout(node="n", gpu=PARTITIONED, mig=("7g.80gb",)))
    assert isinstance(session.read(GPM, first), Failed)


def test_nonsense_is_no_value(world):
    """gpu-monitoring-tools #152: numbers that cannot be are rejected, not shown."""
    for gpu in (WHOLE, PARTITIONED):
        session = world.session(gpu)
        read(session, GPM)
        world.inject(scenario.Garbage(node="n", gpu=gpu))
        world.advance(1)
        reading = read(session, GPM)
        assert reading.values
        for name in ("gpu_gpm_sm_ratio", "gpu_gpm_graphics_ratio"):
            assert not CATALOG[name].limits.hold(CATALOG[name].value(reading))
    assert not UTILIZATION.consistent(read(session, UTILIZATION))
