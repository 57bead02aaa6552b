"""How busy the engines of a GPU are, on both implementations."""

import pytest

from exporter.nvml.protocol import Unsupported, Value
from simulator import scenario
from simulator.scenario import SAMPLE_PERIOD_SECONDS
from slicewatch.catalog import CATALOG
from slicewatch.catalog.utilization import DECODER, ENCODER, JPEG, MEMORY_INTERFACE, OFA

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: L40S}
      - {model: H100-80GB, mig: [1g.10gb]}
workloads:
  - name: video
    load: {wave: {low: 0.2, high: 1.0, period: 5s}}
    mix: {dram: 0.5, encoder: 0.6, decoder: 0.4, jpeg: 0.3, ofa: 0.2}
    pods: [{name: a, devices: [{node: n, gpu: 0}]}]
"""
VIDEO, PARTITIONED = 0, 1
PARTS = {MEMORY_INTERFACE: 0.5, ENCODER: 0.6, DECODER: 0.4, JPEG: 0.3, OFA: 0.2}
by_probe = pytest.mark.parametrize("probe", PARTS, ids=lambda probe: probe.name)


def read(session, probe):
    outcome = session.devices()
    assert isinstance(outcome, Value), outcome
    return session.read(probe, outcome.value[0])


@by_probe
def test_an_engine_is_as_busy_as_in_the_last_sampling_period(world, probe):
    session = world.session(VIDEO)
    seen = set()
    for _ in range(12):
        world.advance(SAMPLE_PERIOD_SECONDS)
        percent = read(session, probe).value.percent
        now = world.fleet.now
        load = world.fleet.truth.mean_utilization(
            world.node.gpus[VIDEO].uuid, now - 2 * SAMPLE_PERIOD_SECONDS, now
        )
        # The period ended at most one period ago, and the load has moved on since.
        assert percent == pytest.approx(100 * PARTS[probe] * load, abs=10)
        seen.add(percent)
    assert len(seen) > 3


@by_probe
def test_an_idle_board_is_at_0_which_is_a_value(world, probe):
    world.fleet.node("n").gpus[VIDEO].set_load(0.0)
    world.advance(1)
    assert read(world.session(VIDEO), probe).value.percent == 0


@by_probe
def test_nothing_of_it_is_measured_under_mig(world, probe):
    """dcgm-exporter #216, #3, #675: a reason instead of zeros."""
    session = world.session(PARTITIONED)
    gpu, instance = session.devices().value
    assert session.read(probe, gpu) == Unsupported("mig_enabled")
    assert session.read(probe, instance) == Unsupported("mig_instance")


@by_probe
def test_a_word_for_not_available_is_no_percentage(world, probe):
    """gpu-monitoring-tools #152."""
    world.inject(scenario.Garbage(node="n", gpu=VIDEO))
    reading = read(world.session(VIDEO), probe).value
    metric = CATALOG[f"gpu_{probe.name}_utilization"]
    assert not metric.limits.hold(metric.value(reading))
