"""Durations as people write them, in seconds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.service.settings import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (15, 15.0),
        (0.25, 0.25),
        ("15", 15.0),
        ("15s", 15.0),
        (" 15s ", 15.0),
        ("250ms", 0.25),
        ("1m30s", 90.0),
        ("2h", 7200.0),
        ("1d", 86400.0),
        ("1.5m", 90.0),
        (".5s", 0.5),
        ("0", 0.0),
        ("1e2", 100.0),
    ],
)
def test_a_duration_is_read_as_seconds(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "s", "15x", "15 s", "-5", -5, "-5s", "1.2.3s", "1e400", "inf", "nan", "1m 30s",
        float("inf"), float("nan"), True, None, [15], "1e5s", "\u0663s",
    ],
)  # fmt: skip
def test_what_is_no_duration_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="write it like 15s, 250ms or 1m30s"):
        duration(text)


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_the_parts_of_a_duration_add_up(hours, minutes, seconds, milliseconds):
    text = f"{hours}h{minutes}m{seconds}s{milliseconds}ms"
    assert duration(text) == pytest.approx(
        hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
    )


@given(st.text(max_size=12))
def test_any_text_is_a_duration_of_finite_length_or_refused(text):
    try:
        seconds = duration(text)
    except ValueError:
        return
    assert 0 <= seconds < float("inf")
