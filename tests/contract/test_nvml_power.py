"""Power and its limits, through both implementations of the Nvml seam."""

import pytest

from exporter.nvml.protocol import Unsupported, Value
from simulator import scenario
from slicewatch.catalog.power import POWER, POWER_DRAW, POWER_LIMITS
from slicewatch.catalog.readings.power import Power, PowerDraw, PowerLimits

SCENARIO = """
nodes:
  - name: n
    gpus: [{model: H100-80GB}, {model: A100-80GB}, {model: A100-80GB, mig: [3g.40gb]}]
workloads:
  - name: steps
    load: {steps: [{at: 0s, level: 0.0}, {at: 29500ms, level: 1.0}]}
    pods: [{name: a, devices: [{node: n, gpu: 0}]}, {name: b, devices: [{node: n, gpu: 1}]}]
"""
HOPPER, AMPERE, PARTITIONED = 0, 1, 2


def read(world, probe, gpu, number=0):
    session = world.session(gpu)
    return session.read(probe, session.devices().value[number])


def test_a_gpu_that_averages_tells_the_mean_of_the_last_second_beside_the_moment(world):
    # Half a second at full load, half a second idle.
    mean = round(1000 * (70 + 700) / 2)
    assert read(world, POWER_DRAW, HOPPER) == Value(PowerDraw(700_000, mean))
    assert read(world, POWER, HOPPER) == Value(Power(mean))


def test_a_gpu_that_does_not_average_tells_the_moment_alone(world):
    assert read(world, POWER_DRAW, AMPERE) == Value(PowerDraw(400_000, None))
    assert read(world, POWER, AMPERE) == Value(Power(400_000))


@pytest.mark.parametrize(("gpu", "most", "least"), [(HOPPER, 700, 200), (AMPERE, 400, 100)])
def test_all_limits_of_a_board_are_read(world, gpu, most, least):
    most, least = 1000 * most, 1000 * least
    assert read(world, POWER_LIMITS, gpu) == Value(PowerLimits(most, most, most, least, most))


@pytest.mark.parametrize("probe", [POWER_DRAW, POWER_LIMITS], ids=lambda probe: probe.name)
def test_power_belongs_to_the_board_and_not_to_its_instances(world, probe):
    assert isinstance(read(world, probe, PARTITIONED), Value)
    assert read(world, probe, PARTITIONED, 1) == Unsupported("mig_instance")


def test_words_for_not_available_are_no_power(world):
    world.inject(scenario.Garbage(node="n", gpu=HOPPER))
    draw = read(world, POWER_DRAW, HOPPER).value
    assert {draw.instant_milliwatts, draw.average_milliwatts} == {2**32 - 1}
