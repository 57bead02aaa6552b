"""Quantities as they are read."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.api.quantity import quantity
from slicewatch.kube.quantity import number, thousandths


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("70", 70), ("87500m", "87.5"), ("1k", 1000), ("2500k", 2_500_000), ("1G", 10**9),
        ("1E", 10**18), ("1e3", 1000), ("1E3", 1000), ("1.5e-1", "0.15"), ("2Gi", 2**31),
        ("-1500m", "-1.5"), ("+.5", "0.5"), ("5.", 5), ("12u", "0.000012"), (70, 70), (0.5, "0.5"),
    ],
)  # fmt: skip
def test_a_quantity_has_its_value(text: str, value: str) -> None:
    assert number(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "80%", "NaN", "1 k", "k", "1kk", "0x10", "1e", "."])
def test_what_is_none_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        number(text)


@pytest.mark.parametrize(
    ("text", "milli"), [("0.0001", 1), ("1", 1000), ("1001u", 2), ("-1500u", -1)]
)
def test_thousandths_are_rounded_up(text: str, milli: int) -> None:
    assert thousandths(text) == milli


def test_what_overflows_is_zero_to_an_autoscaler() -> None:
    assert thousandths("9223372036854775807m") == 2**63 - 1
    assert thousandths("10P") == 0


@given(st.floats(-9e12, 9e12))
def test_what_the_adapter_writes_is_read_to_the_thousandth(value: float) -> None:
    assert abs(thousandths(quantity(value)) - value * 1000) <= 0.5 + abs(value) * 1e-12
