"""What thermal readings become: degrees, margins below zero, fan speeds above one."""

import pytest

from slicewatch.catalog import CATALOG
from slicewatch.catalog.readings.power import Temperature
from slicewatch.catalog.readings.thermal import (
    Fans,
    MemoryTemperature,
    TemperatureMargin,
    Thresholds,
)

MEMORY = CATALOG["gpu_memory_temperature_celsius"]
MARGIN = CATALOG["gpu_temperature_margin_celsius"]
THRESHOLD = CATALOG["gpu_temperature_threshold_celsius"]
MARGIN_THRESHOLD = CATALOG["gpu_temperature_margin_threshold_celsius"]
FAN = CATALOG["gpu_fan_speed_ratio"]


def test_memory_and_margin_are_the_degrees_of_the_reading():
    assert MEMORY.value(MemoryTemperature(61)) == 61
    assert MARGIN.value(TemperatureMargin(-3)) == -3
    assert MARGIN.limits.hold(-3)


@pytest.mark.parametrize("metric", [THRESHOLD, MARGIN_THRESHOLD], ids=lambda metric: metric.name)
def test_thresholds_are_told_apart_and_what_is_not_stated_is_absent(metric):
    assert metric.value(Thresholds(95, 89, None, 0)) == {
        "shutdown": 95, "slowdown": 89, "memory_max": None, "gpu_max": 0,
    }  # fmt: skip


def test_a_fan_is_numbered_as_nvml_does_and_one_that_does_not_answer_is_absent():
    """nvidia_gpu_exporter #393: a fan in error state was shown as if it stood still."""
    assert FAN.value(Fans((30, None, 105))) == {"0": 0.3, "1": None, "2": 1.05}


@pytest.mark.parametrize(
    ("percent", "possible"), [(0, True), (100, True), (200, True), (201, False)]
)
def test_a_fan_may_exceed_what_is_tolerated_but_not_by_far(percent, possible):
    assert FAN.limits.hold(FAN.value(Fans((percent,)))["0"]) == possible


@pytest.mark.parametrize("nonsense", [345, 644_245_923, 4_278_190_080, 2_147_483_632, 2**32 - 1])
def test_temperatures_that_no_gpu_survives_are_out_of_range(nonsense):
    """dcgm-exporter #312: they were shown as they came."""
    die = CATALOG["gpu_temperature_celsius"]
    assert not die.limits.hold(die.value(Temperature(nonsense)))
    assert not MEMORY.limits.hold(MEMORY.value(MemoryTemperature(nonsense)))
    assert not MARGIN.limits.hold(MARGIN.value(TemperatureMargin(nonsense)))
    assert not THRESHOLD.limits.hold(THRESHOLD.value(Thresholds(nonsense, 0, 0, 0))["shutdown"])
    assert not FAN.limits.hold(FAN.value(Fans((nonsense,)))["0"])
