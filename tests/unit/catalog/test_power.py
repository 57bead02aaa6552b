"""What power readings become: watts per limit, and nothing where a board states nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.catalog import CATALOG
from slicewatch.catalog.readings.power import PowerDraw, PowerLimits

INSTANT, AVERAGE = CATALOG["gpu_power_instant_watts"], CATALOG["gpu_power_average_watts"]
LIMIT = CATALOG["gpu_power_limit_watts"]


@given(st.integers(0, 20_000_000), st.integers(0, 20_000_000))
def test_both_draws_are_milliwatts_of_the_reading_in_watts(instant, average):
    reading = PowerDraw(instant, average)
    assert INSTANT.value(reading) * 1000 == pytest.approx(instant)
    assert AVERAGE.value(reading) * 1000 == pytest.approx(average)


def test_a_draw_that_is_not_measured_is_absent_and_leaves_the_other():
    assert AVERAGE.value(PowerDraw(70_000, None)) is None
    assert INSTANT.value(PowerDraw(70_000, None)) == 70


def test_each_limit_has_its_own_label():
    assert LIMIT.value(PowerLimits(350_000, 400_000, 700_000, 200_000, 700_000)) == {
        "enforced": 350, "management": 400, "default": 700, "min": 200, "max": 700,
    }  # fmt: skip


def test_a_limit_that_is_not_stated_is_absent():
    assert LIMIT.value(PowerLimits(None, None, 0, None, None)) == {
        "enforced": None, "management": None, "default": 0, "min": None, "max": None,
    }  # fmt: skip


@pytest.mark.parametrize("sentinel", [2**32 - 1, 2**64 - 1, 2_147_483_632, 2**63 - 16])
def test_words_for_not_available_are_out_of_range(sentinel):
    assert not INSTANT.limits.hold(INSTANT.value(PowerDraw(sentinel, None)))
    assert not AVERAGE.limits.hold(AVERAGE.value(PowerDraw(None, sentinel)))
    assert not LIMIT.limits.hold(LIMIT.value(PowerLimits(*[sentinel] * 5))["max"])
