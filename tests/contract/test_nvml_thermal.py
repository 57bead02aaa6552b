"""Heat and fans, through both implementations of the Nvml seam."""

import pytest

from exporter.nvml.protocol import Unsupported, Value
from simulator import scenario
from slicewatch.catalog import CATALOG
from slicewatch.catalog.clocks import CLOCK_EVENTS
from slicewatch.catalog.power import TEMPERATURE
from slicewatch.catalog.readings.thermal import (
    Fans,
    MemoryTemperature,
    TemperatureMargin,
    Thresholds,
)
from slicewatch.catalog.thermal import (
    FANS,
    MARGIN_THRESHOLDS,
    MEMORY_TEMPERATURE,
    TEMPERATURE_MARGIN,
    TEMPERATURE_THRESHOLDS,
)

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB}
      - {model: A100-80GB}
      - {model: RTX4090}
      - {model: A100-80GB, mig: [3g.40gb]}
workloads:
  - name: busy
    load: 0.8
    pods: [{name: a, devices: [{node: n, gpu: 0}]}, {name: b, devices: [{node: n, gpu: 2}]}]
"""
HOPPER, AMPERE, DESKTOP, PARTITIONED = range(4)
PROBES = (MEMORY_TEMPERATURE, TEMPERATURE_MARGIN, TEMPERATURE_THRESHOLDS, MARGIN_THRESHOLDS, FANS)
NONE = Unsupported("device")


def read(world, probe, gpu, number=0):
    session = world.session(gpu)
    return session.read(probe, session.devices().value[number])


def test_memory_is_measured_where_there_is_a_sensor(world):
    celsius = world.node.gpus[HOPPER].temperature_celsius
    assert read(world, MEMORY_TEMPERATURE, HOPPER) == Value(MemoryTemperature(celsius + 6))
    assert read(world, MEMORY_TEMPERATURE, DESKTOP) == NONE


def test_the_margin_is_the_distance_to_slowing_down(world):
    celsius = world.node.gpus[HOPPER].temperature_celsius
    assert read(world, TEMPERATURE_MARGIN, HOPPER) == Value(TemperatureMargin(87 - celsius))
    assert read(world, TEMPERATURE_MARGIN, AMPERE) == NONE


def test_a_margin_is_below_zero_beyond_the_threshold(world):
    world.inject(scenario.Slowdown(node="n", gpu=HOPPER, reason="hw_thermal_slowdown"))
    assert read(world, TEMPERATURE, HOPPER).value.celsius == 89
    assert read(world, TEMPERATURE_MARGIN, HOPPER) == Value(TemperatureMargin(-2))


def test_boards_before_ada_state_temperatures_and_newer_ones_margins(world):
    assert read(world, TEMPERATURE_THRESHOLDS, AMPERE) == Value(Thresholds(92, 89, 95, 85))
    assert read(world, MARGIN_THRESHOLDS, AMPERE) == NONE
    assert read(world, TEMPERATURE_THRESHOLDS, HOPPER) == NONE
    assert read(world, MARGIN_THRESHOLDS, HOPPER) == Value(Thresholds(-8, -2, 0, 0))
    assert read(world, MARGIN_THRESHOLDS, DESKTOP) == Value(Thresholds(-7, -2, None, 0))


def test_every_fan_has_its_speed_and_a_passive_board_has_none(world):
    celsius = world.node.gpus[DESKTOP].temperature_celsius
    percent = round(100 * (celsius - 27) / (82 - 27))
    assert 0 < percent < 100
    assert read(world, FANS, DESKTOP) == Value(Fans((percent, percent)))
    assert read(world, FANS, HOPPER) == NONE


def test_heat_without_a_slowdown_is_heat_alone(world):
    world.inject(scenario.Heat(node="n", gpu=HOPPER, celsius=91))
    assert read(world, TEMPERATURE, HOPPER).value.celsius == 91
    assert read(world, TEMPERATURE_MARGIN, HOPPER).value.celsius < 0
    events = read(world, CLOCK_EVENTS, HOPPER).value.active()
    assert (events["hw_thermal_slowdown"], events["hw_slowdown"]) == (0, 0)


def test_a_fan_may_exceed_its_tolerated_speed(world):
    world.inject(scenario.Slowdown(node="n", gpu=DESKTOP, reason="hw_thermal_slowdown"))
    reading = read(world, FANS, DESKTOP).value
    assert reading.percents[0] > 100
    metric = CATALOG["gpu_fan_speed_ratio"]
    assert all(metric.limits.hold(ratio) for ratio in metric.value(reading).values())


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_heat_belongs_to_the_board_and_not_to_its_instances(world, probe):
    assert read(world, probe, PARTITIONED, 1) == Unsupported("mig_instance")


@pytest.mark.parametrize("gpu", [HOPPER, AMPERE, DESKTOP])
@pytest.mark.parametrize("probe", [TEMPERATURE, *PROBES], ids=lambda probe: probe.name)
def test_nonsense_comes_through_for_the_catalog_to_reject(world, probe, gpu):
    """dcgm-exporter #312: 345 to 644245923 degrees were shown as a temperature."""
    world.inject(scenario.Garbage(node="n", gpu=gpu))
    outcome = read(world, probe, gpu)
    if outcome == NONE:
        return
    (metric,) = (one for one in CATALOG if one.origin is probe)
    found = metric.value(outcome.value)
    values = found.values() if metric.labels else [found]
    stated = [value for value in values if value is not None]
    assert stated
    assert not any(metric.limits.hold(value) for value in stated)
