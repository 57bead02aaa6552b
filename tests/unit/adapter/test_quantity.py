"""Quantities, by table and by property: what an autoscaler reads back is what was measured."""

import re
from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.api.quantity import LARGEST, quantity

SUFFIXES = {"m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12}


def thousandths(text: str) -> int:
    """Read a quantity as autoscalers do: thousandths, rounded up."""
    found = re.fullmatch(r"(-?\d+)([mkMGT]?)", text)
    assert found is not None, text
    exact = Decimal(found[1]).scaleb(SUFFIXES[found[2]] + 3)
    assert exact == int(exact)
    return int(exact)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (87.5, "87500m"),
        (19.6, "19600m"),
        (1000, "1k"),
        (1500, "1500"),
        (2_500_000, "2500k"),
        (1_000_000_000, "1G"),
        (-1.5, "-1500m"),
        (85_899_345_920, "85899345920"),
        (32.3, "32300m"),
        (1.001, "1001m"),
        (0.0009, "1m"),
        (0.0005, "0"),
        (0.0015, "2m"),
        (0.0025, "2m"),
        (0.00049, "0"),
        (1e12, "1T"),
        (1e16, "9T"),
        (1e300, "9T"),
        (-1e300, "-9T"),
        (8_999_999_999_999.5, "8999999999999500m"),
    ],
)
def test_a_value_is_written_in_its_canonical_form(value: float, text: str) -> None:
    assert quantity(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_a_number_is_never_written(value: float) -> None:
    with pytest.raises(ValueError, match="not a valid quantity"):
        quantity(value)


@given(st.floats(-LARGEST, LARGEST))
def test_an_autoscaler_reads_the_value_rounded_to_a_thousandth(value: float) -> None:
    expected = Decimal(repr(value)).quantize(Decimal("0.001"), rounding=ROUND_HALF_EVEN)
    assert thousandths(quantity(value)) == int(expected * 1000)


@given(st.integers(0, 1000))
def test_every_tenth_of_a_percent_is_exact(tenths: int) -> None:
    assert thousandths(quantity(tenths / 10)) == tenths * 100


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_value_overflows_what_a_thousand_pods_sum_to(value: float) -> None:
    assert abs(thousandths(quantity(value))) * 1000 < 2**63


@given(st.floats(-LARGEST, LARGEST))
def test_no_shorter_form_exists(value: float) -> None:
    text = quantity(value)
    assert text == "0" or not re.fullmatch(r"-?\d*000[mkMG]?", text)
