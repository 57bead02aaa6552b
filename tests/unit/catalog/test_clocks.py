"""What clock readings become: hertz, a P-state, and reasons with their times."""

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.catalog import CATALOG
from slicewatch.catalog.readings.clocks import (
    BITS,
    Clock,
    ClockEvent,
    ClockEvents,
    ClockEventTimes,
    MaxClocks,
    PerformanceState,
)

VIDEO, MOST = CATALOG["gpu_video_clock_hertz"], CATALOG["gpu_max_clock_hertz"]
STATE = CATALOG["gpu_performance_state"]
ACTIVE = CATALOG["gpu_clock_event_active"]
SECONDS = CATALOG["gpu_clock_event_seconds_total"]

MASKS = st.integers(0, 2 ** len(ClockEvent) - 1)


def test_clocks_are_in_hertz_by_domain():
    assert VIDEO.value(Clock(1545)) == 1.545e9
    assert MOST.value(MaxClocks(1980, None, 2619, 1545)) == {
        "graphics": 1.98e9, "sm": None, "memory": 2.619e9, "video": 1.545e9,
    }  # fmt: skip


@pytest.mark.parametrize("megahertz", [10_501, 14_001])
def test_the_memory_clock_of_a_desktop_board_is_in_range(megahertz):
    assert CATALOG["gpu_mem_clock_mhz"].limits.hold(megahertz)
    assert MOST.limits.hold(MOST.value(MaxClocks(0, 0, megahertz, 0))["memory"])


@pytest.mark.parametrize("word", [2**32 - 1, 2**64 - 1, 2_147_483_632])
def test_words_for_not_available_are_no_clock_and_no_state(word):
    assert not VIDEO.limits.hold(VIDEO.value(Clock(word)))
    assert not MOST.limits.hold(MOST.value(MaxClocks(word, 0, 0, 0))["graphics"])
    assert not STATE.limits.hold(STATE.value(PerformanceState(word)))


@pytest.mark.parametrize("state", range(16))
def test_every_performance_state_is_in_range_and_the_unknown_one_is_absent(state):
    assert STATE.value(PerformanceState(state)) == state
    assert STATE.limits.hold(state)
    assert STATE.value(PerformanceState(pynvml.NVML_PSTATE_UNKNOWN)) is None


@pytest.mark.parametrize(
    ("event", "constant"),
    [
        ("idle", "nvmlClocksEventReasonGpuIdle"),
        ("applications_clocks", "nvmlClocksEventReasonApplicationsClocksSetting"),
        ("sw_power_cap", "nvmlClocksEventReasonSwPowerCap"),
        ("hw_slowdown", "nvmlClocksThrottleReasonHwSlowdown"),
        ("sync_boost", "nvmlClocksEventReasonSyncBoost"),
        ("sw_thermal_slowdown", "nvmlClocksEventReasonSwThermalSlowdown"),
        ("hw_thermal_slowdown", "nvmlClocksThrottleReasonHwThermalSlowdown"),
        ("hw_power_brake", "nvmlClocksThrottleReasonHwPowerBrakeSlowdown"),
        ("display_clocks", "nvmlClocksEventReasonDisplayClockSetting"),
    ],
)
def test_each_reason_has_the_bit_that_the_binding_gives_it(event, constant):
    assert BITS[ClockEvent(event)] == getattr(pynvml, constant)


def test_reasons_that_the_binding_does_not_know_yet_have_the_bits_of_the_header():
    assert (BITS[ClockEvent.BOARD_LIMIT], BITS[ClockEvent.RELIABILITY]) == (0x200, 0x400)


@given(MASKS, MASKS)
def test_a_supported_reason_is_0_or_1_and_an_unsupported_one_has_no_series(active, supported):
    states = ACTIVE.value(ClockEvents(active & supported, supported))
    assert set(states) == {event for event, bit in BITS.items() if supported & bit}
    assert all(states[event] == bool(active & BITS[event]) for event in states)


@given(MASKS)
def test_where_support_is_not_told_only_what_is_active_is_shown(active):
    states = ACTIVE.value(ClockEvents(active, None))
    assert states == {event: 1 for event, bit in BITS.items() if active & bit}


def test_a_reason_of_a_newer_driver_is_left_out_and_spoils_nothing():
    reading = ClockEvents(1 << 40 | BITS[ClockEvent.IDLE], 1 << 40 | BITS[ClockEvent.IDLE])
    assert reading.consistent()
    assert ACTIVE.value(reading) == {"idle": 1}


@pytest.mark.parametrize("word", [2**32 - 1, 2**64 - 1])
def test_a_mask_that_says_not_available_is_rejected_as_a_whole(word):
    assert not ClockEvents(word, 0x1FF).consistent()
    assert not ClockEvents(0, word).consistent()
    assert ClockEvents(0, None).consistent()


def test_times_are_seconds_per_reason_and_what_is_not_counted_is_absent():
    reading = ClockEventTimes(sw_power_cap_nanoseconds=1_500_000_000, hw_power_brake_nanoseconds=0)
    found = SECONDS.value(reading)
    assert {reason: value for reason, value in found.items() if value is not None} == {
        "sw_power_cap": 1.5, "hw_power_brake": 0,
    }  # fmt: skip


@pytest.mark.parametrize("word", [2**64 - 1, 2**63 - 16])
def test_words_for_not_available_are_no_time(word):
    value = SECONDS.value(ClockEventTimes(word))["sw_power_cap"]
    assert not SECONDS.limits.hold(value)
