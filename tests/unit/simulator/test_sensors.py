"""The sensors of a simulated board follow from its load, and agree with each other."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.errors import ScenarioError
from simulator.fleet import Fleet
from simulator.scenario import DriverGone, Garbage, Lost, Slowdown
from slicewatch.catalog.readings.clocks import BITS, ClockEvent

SCENARIO = """
nodes: [{name: n, gpus: [{model: H100-80GB}, {model: A100-80GB}, {model: RTX4090}]}]
workloads:
  - name: w
    load: {steps: [{at: 0s, level: 0.5}, {at: 7s, level: 1.0}, {at: 10s, level: 0.0}], repeat: 13s}
    pods: [{name: p, devices: [{node: n, gpu: 0}]}, {name: q, devices: [{node: n, gpu: 2}]}]
"""
HOPPER, AMPERE, DESKTOP = range(3)


@pytest.fixture
def fleet():
    return Fleet.load(SCENARIO)


def sensors(fleet, gpu=HOPPER):
    return fleet.node("n").gpus[gpu].sensors


def nanoseconds(fleet, event, gpu=HOPPER):
    return sensors(fleet, gpu).event_nanoseconds(event)


@settings(deadline=None, max_examples=30)
@given(st.floats(2, 5000))
def test_the_mean_power_of_a_second_is_its_energy(at):
    fleet = Fleet.load(SCENARIO)
    uuid = fleet.node("n").gpus[HOPPER].uuid
    fleet.advance_to(at)
    energy = [fleet.truth.energy_joules(uuid, moment) for moment in (at - 1, at)]
    average = sensors(fleet).power_average_milliwatts
    assert average == pytest.approx(1000 * (energy[1] - energy[0]), abs=2)


def test_a_board_without_an_average_shows_the_moment(fleet):
    fleet.advance_to(8)
    shown = sensors(fleet, AMPERE)
    assert shown.power_average_milliwatts is None
    assert shown.power_milliwatts == shown.power_instant_milliwatts


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0, 400), min_size=1, max_size=8))
def test_the_power_cap_counts_exactly_the_time_at_full_load(steps):
    fleet = Fleet.load(SCENARIO)
    for step in steps:
        fleet.advance_to(fleet.now + step)
        rounds, rest = divmod(fleet.now, 13)
        expected = 3 * rounds + min(max(rest - 7, 0), 3)
        assert nanoseconds(fleet, ClockEvent.SW_POWER_CAP) / 1e9 == pytest.approx(
            expected, abs=1e-6
        )


@pytest.mark.parametrize(
    ("at", "expected"), [(1, set()), (8, {ClockEvent.SW_POWER_CAP}), (11, {ClockEvent.IDLE})]
)
def test_load_alone_decides_what_holds_the_clocks_down(fleet, at, expected):
    fleet.advance_to(at)
    assert sensors(fleet).events.active() == expected
    assert sensors(fleet).event_mask == sum(BITS[event] for event in expected)


def test_a_slowdown_at_full_load_counts_once_for_the_same_reason(fleet):
    fleet.advance_to(6)
    fleet.inject(Slowdown(node="n", gpu=HOPPER, reason="sw_power_cap", lasts=2))
    fleet.advance_to(11)
    # From 6 to 8 by the fault, from 7 to 10 by the load.
    assert nanoseconds(fleet, ClockEvent.SW_POWER_CAP) == pytest.approx(4e9)


def test_a_slowdown_that_comes_again_is_counted_every_time(fleet):
    fleet.inject(Slowdown(node="n", gpu=HOPPER, reason="sync_boost", lasts=0.25, every=10))
    fleet.advance_to(95)
    assert nanoseconds(fleet, ClockEvent.SYNC_BOOST) == pytest.approx(2.5e9)
    assert nanoseconds(fleet, ClockEvent.SYNC_BOOST, DESKTOP) == 0


def test_nothing_is_counted_while_the_gpu_is_gone_and_the_load_of_the_driver_starts_anew(fleet):
    fleet.inject(Lost(node="n", gpu=HOPPER, at=7, lasts=2))
    fleet.advance_to(12)
    assert nanoseconds(fleet, ClockEvent.SW_POWER_CAP) == pytest.approx(1e9)
    fleet.inject(DriverGone(node="n", lasts=1))
    fleet.advance_to(19)
    assert nanoseconds(fleet, ClockEvent.SW_POWER_CAP) == 0


@pytest.mark.parametrize(
    ("reason", "celsius"), [("sw_thermal_slowdown", 87), ("hw_thermal_slowdown", 89)]
)
def test_heat_that_slows_down_is_seen_in_the_temperature(fleet, reason, celsius):
    fleet.advance_to(5)
    cool = sensors(fleet).temperature_celsius
    injection = fleet.inject(Slowdown(node="n", gpu=HOPPER, reason=reason))
    assert cool < sensors(fleet).temperature_celsius == celsius
    fleet.clear(injection)
    assert sensors(fleet).temperature_celsius == cool


def test_an_idle_board_is_not_slower_than_idle_whatever_slows_it_down(fleet):
    fleet.advance_to(11)
    fleet.inject(Slowdown(node="n", gpu=HOPPER, reason="hw_slowdown"))
    assert sensors(fleet).sm_clock_mhz == 345


def test_nonsense_is_shown_by_every_sensor(fleet):
    fleet.inject(Garbage(node="n", gpu=HOPPER))
    shown = sensors(fleet)
    words = {
        shown.power_milliwatts, shown.power_instant_milliwatts, shown.power_average_milliwatts,
        *shown.power_bounds_milliwatts, *shown.max_clocks_mhz, shown.sm_clock_mhz,
        shown.memory_clock_mhz, shown.performance_state, shown.shown(5),
    }  # fmt: skip
    assert words == {2**32 - 1}
    assert shown.event_mask == nanoseconds(fleet, ClockEvent.SYNC_BOOST) == 2**64 - 1


def test_a_slowdown_for_an_unknown_reason_is_refused_with_its_place():
    fault = "faults: [{kind: slowdown, node: n, gpu: 0, reason: boredom}]"
    with pytest.raises(ScenarioError, match=r"faults\[0\]"):
        Fleet.load(SCENARIO + fault)


def test_a_slowdown_can_be_written_in_a_scenario():
    fault = "faults: [{kind: slowdown, node: n, gpu: 1, reason: hw_power_brake, at: 1s, for: 2s}]"
    fleet = Fleet.load(SCENARIO + fault)
    fleet.advance_to(2)
    assert ClockEvent.HW_POWER_BRAKE in sensors(fleet, AMPERE).events.active()
    fleet.advance_to(60)
    assert nanoseconds(fleet, ClockEvent.HW_POWER_BRAKE, AMPERE) == 2_000_000_000
