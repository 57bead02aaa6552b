"""Heat: the operator's limit warns, the board's own word may cordon, a blip does neither."""

import pytest

from health.case import Thresholds
from health.checks.model import Action
from slicewatch.catalog.clocks import CLOCK_EVENT_TIMES, CLOCK_EVENTS
from slicewatch.catalog.power import TEMPERATURE
from slicewatch.catalog.readings.clocks import BITS, ClockEvent, ClockEvents, ClockEventTimes
from slicewatch.catalog.readings.power import Temperature
from slicewatch.catalog.readings.thermal import TemperatureMargin
from slicewatch.catalog.readings.thermal import Thresholds as Limits
from slicewatch.catalog.thermal import (
    MARGIN_THRESHOLDS,
    TEMPERATURE_MARGIN,
    TEMPERATURE_THRESHOLDS,
)
from testbed.evidence import case, gpu
from tests.unit.health.checks.verdict import (
    BY_ID,
    action,
    actions,
    found,
    is_healthy,
    is_unknown,
    judged,
)

SECOND = 1_000_000_000


def board(celsius, *, active=(), margin=None, seconds=None, slowdown=None, kind="hw_thermal"):
    """Return a GPU of a temperature.

    Args:
        active: what holds the clocks down now.
        margin: to the limit, of a board whose hardware slows down at -2.
        seconds: that heat has held the clocks down.
        slowdown: where the hardware slows down, of a board that states temperatures.
    """
    readings = {
        TEMPERATURE: Temperature(celsius),
        CLOCK_EVENTS: ClockEvents(sum(BITS[event] for event in active), 0x1FF),
    }
    if margin is not None:
        readings[TEMPERATURE_MARGIN] = TemperatureMargin(margin)
        readings[MARGIN_THRESHOLDS] = Limits(-8, -2, None, 0)
    if slowdown is not None:
        readings[TEMPERATURE_THRESHOLDS] = Limits(slowdown + 3, slowdown, None, slowdown - 4)
    if seconds is not None:
        name = {"hw_thermal": "hw_thermal_slowdown", "sw_thermal": "sw_thermal_slowdown"}
        field = f"{name.get(kind, kind)}_nanoseconds"
        times = dict.fromkeys(("hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake"), 0)
        known = {f"{event}_nanoseconds": count for event, count in times.items()}
        readings[CLOCK_EVENT_TIMES] = ClockEventTimes(**known | {field: int(seconds * SECOND)})
    return gpu(readings=readings)


HW = (ClockEvent.HW_SLOWDOWN, ClockEvent.HW_THERMAL_SLOWDOWN)


class TestHot:
    def test_above_the_operators_limit_is_a_warning(self):
        assert found("hot", case(board(91))) == (Action.WARN, "hotter than 90 °C")
        assert is_healthy("hot", case(board(90)))

    def test_it_has_to_last_for_three_polls(self):
        assert BY_ID["hot"].raise_seconds == 120
        assert not judged("hot", case(board(91))).at_once

    def test_an_operator_may_want_the_limit_to_cordon(self):
        hard = Thresholds(temperature_celsius=85, hot_cordons=True)
        assert action("hot", case(board(86), thresholds=hard)) is Action.CORDON

    def test_a_card_that_works_at_88_is_well(self):
        """RTX cards of small boxes do (k8s-infrastructure PR #115)."""
        assert actions(case(*5 * [board(88, margin=2, seconds=0)])) == {}

    @pytest.mark.parametrize("celsius", [-40, 0, 200, 255, 2**31 - 1])
    def test_what_a_broken_sensor_reads_is_no_temperature(self, celsius):
        """Broken GPUs read 0.00 (gpu-fryer #10)."""
        assert is_unknown("hot", case(board(celsius)))
        assert is_unknown("overheated", case(board(celsius, margin=-9, active=HW)))


class TestOverheated:
    def test_heat_cordons_when_the_board_says_so_itself(self):
        assert action("overheated", case(board(92, margin=-2, active=HW))) is Action.CORDON
        assert action("overheated", case(board(92, slowdown=92, active=HW))) is Action.CORDON

    def test_less_than_all_of_it_does_not(self):
        assert is_healthy("overheated", case(board(92, margin=-2)))
        assert is_healthy("overheated", case(board(92, margin=-1, active=HW)))
        assert is_healthy("overheated", case(board(92, slowdown=93, active=HW)))
        assert is_healthy("overheated", case(board(90, margin=-2, active=HW)))

    def test_a_margin_of_nothing_on_a_cool_board_is_no_fault(self):
        """Healthy H100 report 0 and less (gpud #1208, #1186)."""
        assert is_healthy("overheated", case(board(55, margin=-5)))

    def test_a_board_that_does_not_state_its_limit_does_not_cordon(self):
        assert is_unknown("overheated", case(board(95, active=HW)))
        assert action("hot", case(board(95, active=HW))) is Action.WARN

    def test_time_that_was_counted_beats_a_bit_that_is_set_for_a_moment(self):
        calm = [board(92, margin=-3, seconds=s, active=HW) for s in (100, 101)]
        assert is_healthy("overheated", case(*calm))
        slowed = [board(92, margin=-3, seconds=s) for s in (100, 130)]
        assert action("overheated", case(*slowed)) is Action.CORDON


class TestSlowdown:
    def test_a_tenth_of_the_time_is_a_slowdown(self):
        seen = [board(80, seconds=s) for s in (1000, 1006)]
        assert found("thermal_slowdown", case(*seen)) == (
            Action.WARN, "the hardware slows the GPU down for heat",
        )  # fmt: skip
        assert is_healthy("thermal_slowdown", case(*(board(80, seconds=s) for s in (1000, 1005))))

    def test_the_drivers_slowdown_is_told_apart(self):
        seen = [board(80, seconds=s, kind="sw_thermal") for s in (0, 60)]
        said = judged("thermal_slowdown", case(*seen))
        assert said.reason == "SoftwareThermalSlowdown"

    def test_without_counters_the_bit_of_the_moment_has_to_last(self):
        """One was set for one poll at 75 degrees, and warned at once (DCGM #270)."""
        assert action("thermal_slowdown", case(board(75, active=HW))) is Action.WARN
        assert BY_ID["thermal_slowdown"].raise_seconds >= 120
        assert is_healthy("thermal_slowdown", case(board(75)))

    @pytest.mark.parametrize(
        "event", [ClockEvent.IDLE, ClockEvent.SW_POWER_CAP, ClockEvent.SYNC_BOOST]
    )
    def test_what_is_normal_under_load_and_while_idle_is_no_fault(self, event):
        assert actions(case(*9 * [board(60, active=(event,))])) == {}

    def test_a_counter_that_began_anew_says_nothing_of_the_time(self):
        seen = [board(80, seconds=s) for s in (1000, 3)]
        assert is_healthy("thermal_slowdown", case(*seen))

    def test_two_polls_that_have_one_reading_make_no_rate(self):
        one = board(80, seconds=60)
        later = case(one, one)
        later.polls[1] = type(later.polls[1])(
            at=later.polls[0].at + 0.5, evidence=later.polls[1].evidence, gpu=later.polls[1].gpu
        )
        assert is_healthy("thermal_slowdown", later)


class TestPowerBrake:
    def test_it_is_the_sites_and_never_more_than_a_warning(self):
        """Half of a fleet had it set (NVSentinel #1666)."""
        seen = case(board(60, active=(ClockEvent.HW_POWER_BRAKE, ClockEvent.HW_SLOWDOWN)))
        assert actions(seen) == {"power_brake": Action.WARN}
        assert BY_ID["power_brake"].action is Action.WARN
        assert is_healthy("power_brake", case(board(60)))
