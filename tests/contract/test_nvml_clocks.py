"""Clocks and what holds them down, through both implementations of the Nvml seam."""

import pytest

from exporter.nvml.protocol import Unsupported, Value
from simulator import scenario
from slicewatch.catalog import CATALOG
from slicewatch.catalog.clocks import (
    CLOCK_EVENT_TIMES,
    CLOCK_EVENTS,
    MAX_CLOCKS,
    MEMORY_CLOCK,
    PERFORMANCE_STATE,
    SM_CLOCK,
    VIDEO_CLOCK,
)
from slicewatch.catalog.readings.clocks import Clock, MaxClocks, PerformanceState

SCENARIO = """
nodes:
  - name: n
    gpus: [{model: H100-80GB}, {model: H100-80GB}, {model: A100-80GB, mig: [3g.40gb]}]
workloads:
  - name: steps
    load: {steps: [{at: 10s, level: 0.5}, {at: 20s, level: 1.0}, {at: 26s, level: 0.5}]}
    pods: [{name: a, devices: [{node: n, gpu: 0}]}]
"""
BUSY, IDLE, PARTITIONED = range(3)
PROBES = (VIDEO_CLOCK, MAX_CLOCKS, PERFORMANCE_STATE, CLOCK_EVENTS, CLOCK_EVENT_TIMES)


def read(world, probe, gpu, number=0):
    session = world.session(gpu)
    return session.read(probe, session.devices().value[number])


def active(world, gpu) -> set[str]:
    states = read(world, CLOCK_EVENTS, gpu).value.active()
    return {reason for reason, state in states.items() if state}


def seconds(world, gpu) -> dict[str, float]:
    reading = read(world, CLOCK_EVENT_TIMES, gpu).value
    found = CATALOG["gpu_clock_event_seconds_total"].value(reading)
    return {str(reason): value for reason, value in found.items() if value is not None}


def test_clocks_are_read_per_domain(world):
    assert read(world, SM_CLOCK, BUSY) == Value(Clock(1980))
    assert read(world, MEMORY_CLOCK, BUSY) == Value(Clock(2619))
    assert read(world, VIDEO_CLOCK, BUSY) == Value(Clock(1545))
    assert read(world, VIDEO_CLOCK, IDLE).value.megahertz < 1545
    assert read(world, MAX_CLOCKS, BUSY) == Value(MaxClocks(1980, 1980, 2619, 1545))


def test_the_performance_state_falls_when_nothing_runs(world):
    assert read(world, PERFORMANCE_STATE, BUSY) == Value(PerformanceState(0))
    assert read(world, PERFORMANCE_STATE, IDLE) == Value(PerformanceState(8))


def test_each_supported_reason_is_shown_whether_it_is_active_or_not(world):
    assert read(world, CLOCK_EVENTS, IDLE).value.active() == {
        "idle": 1, "applications_clocks": 0, "sw_power_cap": 0, "hw_slowdown": 0, "sync_boost": 0,
        "sw_thermal_slowdown": 0, "hw_thermal_slowdown": 0, "hw_power_brake": 0,
        "display_clocks": 0,
    }  # fmt: skip
    assert active(world, BUSY) == set()


@pytest.mark.parametrize(
    ("reason", "shown", "clock"),
    [
        ("sw_thermal_slowdown", {"sw_thermal_slowdown"}, 1980),
        ("sync_boost", {"sync_boost"}, 1980),
        ("hw_slowdown", {"hw_slowdown"}, 990),
        ("hw_thermal_slowdown", {"hw_slowdown", "hw_thermal_slowdown"}, 990),
        ("hw_power_brake", {"hw_slowdown", "hw_power_brake"}, 990),
    ],
)
def test_a_slowdown_is_shown_while_it_lasts_and_halves_clocks_if_the_hardware_does_it(
    world, reason, shown, clock
):
    injection = world.inject(scenario.Slowdown(node="n", gpu=BUSY, reason=reason))
    assert active(world, BUSY) == shown
    assert read(world, SM_CLOCK, BUSY) == Value(Clock(clock))
    assert active(world, IDLE) == {"idle"}
    world.clear(injection)
    assert active(world, BUSY) == set()


def test_the_time_of_a_slowdown_is_counted_exactly_even_between_two_reads(world):
    """Flags are sampled, so a slowdown between two reads is seen by the counter alone."""
    lasts = scenario.Seconds(1.25)
    world.inject(scenario.Slowdown(node="n", gpu=BUSY, reason="hw_power_brake", lasts=lasts))
    world.advance(4)
    assert active(world, BUSY) == set()
    assert seconds(world, BUSY) == {
        "sw_power_cap": 6, "sync_boost": 0, "sw_thermal_slowdown": 0, "hw_thermal_slowdown": 0,
        "hw_power_brake": 1.25,
    }  # fmt: skip


def test_the_times_start_anew_when_the_driver_is_loaded(world):
    assert seconds(world, BUSY)["sw_power_cap"] == 6
    world.inject(scenario.DriverGone(node="n", lasts=scenario.Seconds(2)))
    world.advance(5)
    world.nvml.stop()
    world.nvml.start()
    assert seconds(world, BUSY)["sw_power_cap"] == 0


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_clocks_belong_to_the_board_and_not_to_its_instances(world, probe):
    assert isinstance(read(world, probe, PARTITIONED), Value)
    assert read(world, probe, PARTITIONED, 1) == Unsupported("mig_instance")
