"""Power, heat and clocks of drivers that answer in part, in the old way, or with an error."""

from ctypes import c_double, c_int32, c_uint32, c_uint64

import pynvml
import pytest

from exporter.nvml.protocol import Failed, Lost, Unsupported, Value
from exporter.nvml.real.reads.thermal import MOST_FANS
from exporter.nvml.real.returns import Return
from slicewatch.catalog import CATALOG
from slicewatch.catalog.clocks import CLOCK_EVENT_TIMES, CLOCK_EVENTS, MAX_CLOCKS
from slicewatch.catalog.power import POWER, POWER_DRAW, POWER_LIMITS
from slicewatch.catalog.readings.clocks import ClockEvents, ClockEventTimes, MaxClocks
from slicewatch.catalog.readings.power import PowerDraw, PowerLimits
from slicewatch.catalog.readings.thermal import Fans, Thresholds
from slicewatch.catalog.thermal import (
    FANS,
    MARGIN_THRESHOLDS,
    MEMORY_TEMPERATURE,
    TEMPERATURE_MARGIN,
    TEMPERATURE_THRESHOLDS,
)

SCENARIO = """
nodes: [{name: n, gpus: [{model: H100-80GB}, {model: RTX4090}, {model: A100-80GB}]}]
"""
HOPPER, DESKTOP, AMPERE = range(3)
SUPPORTED = 0x1FF


def read(world, probe, gpu=HOPPER):
    session = world.session(gpu)
    return session.read(probe, *session.devices().value)


def refuse_fields(world, code, *fields, gpu=HOPPER):
    def change(answers):
        for field in fields:
            answers.refuse("nvmlDeviceGetFieldValues", code, key=(field, 0))

    world.answer(gpu, change)


@pytest.mark.parametrize(
    "code", [Return.NOT_SUPPORTED, Return.INVALID_ARGUMENT, Return.UNKNOWN, Return.NOT_FOUND]
)
def test_a_field_that_is_refused_leaves_the_others_of_the_call(world, code):
    refuse_fields(world, code, pynvml.NVML_FI_DEV_POWER_AVERAGE)
    instant = world.node.gpus[HOPPER].sensors.power_instant_milliwatts
    assert read(world, POWER_DRAW) == Value(PowerDraw(instant, None))


@pytest.mark.parametrize(
    ("codes", "outcome"),
    [
        ((Return.NOT_SUPPORTED, Return.NOT_SUPPORTED), Unsupported("device")),
        ((Return.INVALID_ARGUMENT, Return.INVALID_ARGUMENT), Unsupported("driver")),
        ((Return.NO_PERMISSION, Return.NO_PERMISSION), Unsupported("permission")),
        ((Return.NOT_SUPPORTED, Return.UNKNOWN), Failed("UNKNOWN")),
        ((Return.UNKNOWN, Return.GPU_IS_LOST), Lost("gpu_is_lost")),
    ],
)
def test_fields_that_are_all_refused_say_what_matters_most(world, codes, outcome):
    def change(answers):
        fields = (pynvml.NVML_FI_DEV_POWER_INSTANT, pynvml.NVML_FI_DEV_POWER_AVERAGE)
        for field, code in zip(fields, codes, strict=True):
            answers.refuse("nvmlDeviceGetFieldValues", code, key=(field, 0))

    world.answer(HOPPER, change)
    assert read(world, POWER_DRAW) == outcome


def test_a_gpu_that_is_lost_amid_a_call_is_lost_although_a_field_was_answered(world):
    refuse_fields(world, Return.GPU_IS_LOST, pynvml.NVML_FI_DEV_POWER_AVERAGE)
    assert read(world, POWER_DRAW) == Lost("gpu_is_lost")


@pytest.mark.parametrize("wide", [c_uint32, c_uint64, c_int32])
def test_a_field_is_read_in_the_type_that_the_driver_gives_it(world, wide):
    world.answer(
        HOPPER, lambda into: into.put_field(pynvml.NVML_FI_DEV_POWER_INSTANT, wide(123_456))
    )
    assert read(world, POWER_DRAW).value.instant_milliwatts == 123_456


def test_a_field_of_a_type_that_is_not_known_has_no_value(world):
    world.answer(
        HOPPER, lambda into: into.put_field(pynvml.NVML_FI_DEV_POWER_INSTANT, c_double(1.5))
    )
    assert read(world, POWER_DRAW).value.instant_milliwatts is None


def test_the_same_fields_are_asked_again_in_one_call_and_show_what_changed(world):
    session = world.session(HOPPER)
    (device,) = session.devices().value
    idle = session.read(POWER_DRAW, device).value
    world.fleet.node("n").gpus[HOPPER].set_load(1.0)
    world.advance(2)
    world.driver.forget_calls()
    assert idle.instant_milliwatts < session.read(POWER_DRAW, device).value.instant_milliwatts
    assert world.driver.calls() == {"nvmlDeviceGetFieldValues": 1}


def test_a_limit_that_cannot_be_read_leaves_the_others(world):
    world.fail(HOPPER, nvmlDeviceGetPowerManagementLimitConstraints=Return.NOT_SUPPORTED)
    most = 700_000
    assert read(world, POWER_LIMITS) == Value(PowerLimits(most, most, most, None, None))


def test_limits_of_a_board_without_power_management_are_unsupported(world):
    names = ("Limit", "DefaultLimit", "LimitConstraints")
    calls = [f"nvmlDeviceGetPowerManagement{name}" for name in names]
    refused = dict.fromkeys([*calls, "nvmlDeviceGetEnforcedPowerLimit"], Return.NOT_SUPPORTED)
    world.fail(HOPPER, **refused)
    assert read(world, POWER_LIMITS) == Unsupported("device")
    assert isinstance(read(world, POWER), Value)


def test_a_fan_in_error_state_is_absent_and_leaves_the_other(world):
    """nvidia_gpu_exporter #393: the call of a fan answers UNKNOWN."""
    world.answer(
        DESKTOP,
        lambda into: into.refuse("nvmlDeviceGetFanSpeed_v2", Return.UNKNOWN, key=(0, 0)),
    )
    reading = read(world, FANS, DESKTOP).value
    assert reading.percents[0] is None
    assert reading.percents[1] is not None


def test_fans_that_all_fail_are_a_failure_and_not_a_lack_of_fans(world):
    """nvidia_gpu_exporter #393."""
    world.fail(DESKTOP, nvmlDeviceGetFanSpeed_v2=Return.UNKNOWN)
    assert read(world, FANS, DESKTOP) == Failed("UNKNOWN")


def test_a_driver_that_cannot_count_fans_has_one(world):
    world.fail(DESKTOP, nvmlDeviceGetNumFans=Return.FUNCTION_NOT_FOUND)
    speed = read(world, FANS, DESKTOP).value.percents
    assert len(speed) == 1
    assert speed[0] is not None


def test_a_board_with_no_fan_at_all_says_so_whichever_way_its_driver_does(world):
    world.answer(HOPPER, lambda into: into.put("nvmlDeviceGetNumFans", 0))
    assert read(world, FANS) == Unsupported("device")
    world.answer(HOPPER, None)
    assert read(world, FANS) == Unsupported("device")


def test_an_absurd_number_of_fans_is_not_walked_to_its_end(world):
    world.answer(DESKTOP, lambda into: into.put("nvmlDeviceGetNumFans", 4_000_000_000))
    assert len(read(world, FANS, DESKTOP).value.percents) == MOST_FANS
    assert isinstance(read(world, FANS, DESKTOP).value, Fans)


def test_a_temperature_that_no_gpu_survives_comes_through_and_is_rejected(world):
    """dcgm-exporter #312: 644245923 degrees."""
    world.answer(
        HOPPER,
        lambda into: into.put_field(pynvml.NVML_FI_DEV_MEMORY_TEMP, c_uint32(644_245_923)),
    )
    metric = CATALOG["gpu_memory_temperature_celsius"]
    assert not metric.limits.hold(metric.value(read(world, MEMORY_TEMPERATURE).value))


def test_a_threshold_that_is_not_stated_leaves_the_others(world):
    world.answer(
        AMPERE,
        lambda into: into.refuse(
            "nvmlDeviceGetTemperatureThreshold", Return.NOT_SUPPORTED, key=(2, 0)
        ),
    )
    assert read(world, TEMPERATURE_THRESHOLDS, AMPERE) == Value(Thresholds(92, 89, None, 85))


def test_margins_are_unknown_to_an_older_driver(world):
    world.fail(HOPPER, nvmlDeviceGetMarginTemperature=Return.FUNCTION_NOT_FOUND)
    assert read(world, TEMPERATURE_MARGIN) == Unsupported("driver")
    fields = range(
        pynvml.NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT,
        pynvml.NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT + 1,
    )
    refuse_fields(world, Return.INVALID_ARGUMENT, *fields)
    assert read(world, MARGIN_THRESHOLDS) == Unsupported("driver")


def test_a_clock_domain_that_is_not_stated_leaves_the_others(world):
    world.answer(
        HOPPER,
        lambda into: into.refuse("nvmlDeviceGetMaxClockInfo", Return.NOT_SUPPORTED, key=(3, 0)),
    )
    assert read(world, MAX_CLOCKS) == Value(MaxClocks(1980, 1980, 2619, None))


def test_a_driver_that_says_throttle_for_event_is_asked_so(world):
    world.fail(
        HOPPER,
        nvmlDeviceGetCurrentClocksEventReasons=Return.FUNCTION_NOT_FOUND,
        nvmlDeviceGetSupportedClocksEventReasons=Return.FUNCTION_NOT_FOUND,
    )
    assert read(world, CLOCK_EVENTS) == Value(ClockEvents(1, SUPPORTED))


def test_where_support_is_not_told_the_active_reasons_are_still_read(world):
    refused = ("Event", "Throttle")
    world.fail(
        HOPPER,
        **{f"nvmlDeviceGetSupportedClocks{way}Reasons": Return.NOT_SUPPORTED for way in refused},
    )
    assert read(world, CLOCK_EVENTS) == Value(ClockEvents(1, None))


def test_a_failure_to_tell_support_is_a_failure(world):
    world.fail(HOPPER, nvmlDeviceGetSupportedClocksEventReasons=Return.UNKNOWN)
    assert read(world, CLOCK_EVENTS) == Failed("UNKNOWN")


def test_times_that_only_newer_drivers_count_are_absent_on_older_ones(world):
    newer = (
        pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
        pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
        pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
    )

    def change(answers):
        for field in newer:
            answers.refuse("nvmlDeviceGetFieldValues", Return.INVALID_ARGUMENT, key=(field, 0))
        answers.put_field(pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL, c_uint64(7))

    world.answer(HOPPER, change)
    assert read(world, CLOCK_EVENT_TIMES) == Value(
        ClockEventTimes(0, 0, sw_thermal_slowdown_nanoseconds=7)
    )


def test_a_driver_without_these_fields_is_asked_per_policy(world):
    def change(answers):
        answers.refuse("nvmlDeviceGetFieldValues", Return.INVALID_ARGUMENT)
        for policy, nanoseconds in ((0, 5), (1, 6), (2, 7)):
            time = pynvml.c_nvmlViolationTime_t(violationTime=nanoseconds)
            answers.put("nvmlDeviceGetViolationStatus", time, key=(policy, 0))

    world.fail(HOPPER, nvmlDeviceGetFieldValues=Return.FUNCTION_NOT_FOUND)
    world.answer(HOPPER, change)
    assert read(world, CLOCK_EVENT_TIMES) == Value(ClockEventTimes(5, 7, 6))


def test_a_board_that_counts_no_times_is_unsupported(world):
    world.fail(
        HOPPER,
        nvmlDeviceGetFieldValues=Return.NOT_SUPPORTED,
        nvmlDeviceGetViolationStatus=Return.NOT_SUPPORTED,
    )
    assert read(world, CLOCK_EVENT_TIMES) == Unsupported("device")


def test_times_that_fail_are_not_read_in_another_way(world):
    world.fail(HOPPER, nvmlDeviceGetFieldValues=Return.UNKNOWN)
    assert read(world, CLOCK_EVENT_TIMES) == Failed("UNKNOWN")
