"""Sliding windows: means and peaks equal those of a naive list of readings."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.measure.windows import Windows

TICK, BUCKETS = 2.0, 5
values = st.floats(0, 1e6)
weights = st.floats(0.001, 40)
steps = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 2), values, weights),
    st.tuples(st.just("advance"), st.floats(0, 9)),
    st.tuples(st.just("forget"), st.integers(0, 2)),
    st.tuples(st.just("hold"), st.integers(0, 2), st.one_of(st.none(), values)),
    st.tuples(st.just("pass"), st.integers(0, 2), st.floats(0.001, 4)),
)


def make(**changes):
    facts = {"series": 1, "window_seconds": TICK * BUCKETS, "tick_seconds": TICK} | changes
    windows = Windows(**facts)
    windows.reserve(3)
    return windows


def mean(windows, slot, series=0):
    """Return the mean of a series."""
    means, _ = windows.summary([slot])
    return means[0][series]


def naive(readings, bucket):
    """Return (mean, peak) of (bucket, value, weight) in the last buckets."""
    inside = [(v, w) for b, v, w in readings if bucket - BUCKETS < b <= bucket]
    if not inside:
        return None, None
    total = math.fsum(w for _, w in inside)
    return math.fsum(v * w for v, w in inside) / total, max(v for v, _ in inside)


def pieces(bucket, value, weight):
    """Spread a reading over the ticks that it describes, if they are more than two."""
    count = 1 if weight <= 2 * TICK else math.ceil(weight / TICK)
    return [(bucket - back, value, weight / count) for back in range(count)]


@given(st.lists(steps, max_size=60))
def test_means_and_peaks_equal_a_naive_model(sequence):
    windows, now = make(), 1000.0
    windows.advance(now)
    kept, held = {slot: [] for slot in range(3)}, dict.fromkeys(range(3))
    for kind, *facts in sequence:
        if kind == "add":
            slot, value, weight = facts
            windows.add(slot, 0, value, weight)
            kept[slot] += pieces(int(now / TICK), value, weight)
        elif kind == "advance":
            now += facts[0]
            windows.advance(now)
        elif kind == "hold":
            windows.hold(facts[0], 0, facts[1])
            held[facts[0]] = facts[1]
        elif kind == "pass":
            slot, seconds = facts
            windows.let_pass(slot, seconds)
            if held[slot] is not None:
                kept[slot].append((int(now / TICK), held[slot], seconds))
        else:
            windows.forget(facts[0])
            kept[facts[0]], held[facts[0]] = [], None
    means, peaks = windows.summary(range(3))
    expected = [naive(readings, int(now / TICK)) for readings in kept.values()]
    assert [peak for (peak,) in peaks] == [peak for _, peak in expected]
    close = [m if m is None else pytest.approx(m, rel=1e-9, abs=1e-9) for m, _ in expected]
    assert [found for (found,) in means] == close


@given(st.lists(st.floats(0.01, 2.0), min_size=1, max_size=50))
def test_a_device_that_is_always_busy_never_has_a_mean_above_100(lengths):
    windows = make()
    windows.advance(1000.0)
    for length in lengths:
        windows.add(0, 0, 100.0, length)
    assert mean(windows, 0) <= 100.0


def test_readings_weigh_by_the_time_that_they_describe():
    windows = make()
    windows.advance(1000.0)
    windows.add(0, 0, 100.0, 1.0)
    windows.add(0, 0, 0.0, 3.0)
    assert mean(windows, 0) == 25.0


def test_a_value_that_is_held_counts_for_the_time_that_passes():
    windows = make()
    windows.advance(1000.0)
    windows.hold(0, 0, 100.0)
    windows.let_pass(0, 1.0)
    windows.hold(0, 0, 0.0)
    windows.let_pass(0, 2.0)
    windows.let_pass(0, 1.0)
    assert mean(windows, 0) == 25.0
    windows.hold(0, 0, None)
    windows.let_pass(0, 8.0)
    assert mean(windows, 0) == 25.0


def test_what_is_older_than_the_window_is_gone():
    windows = make()
    windows.advance(1000.0)
    windows.add(0, 0, 100.0, 1.0)
    windows.advance(1000.0 + TICK * (BUCKETS - 1))
    assert mean(windows, 0) == 100.0
    windows.advance(1000.0 + TICK * BUCKETS)
    assert mean(windows, 0) is None
    _, peaks = windows.summary([0])
    assert peaks == [[None]]


def test_a_jump_of_any_length_empties_the_window():
    windows = make()
    windows.advance(1000.0)
    windows.add(0, 0, 100.0, 1.0)
    windows.advance(1e9)
    assert windows.summary(range(3)) == ([[None]] * 3, [[None]] * 3)


def test_a_reading_after_a_long_silence_does_not_outweigh_the_window():
    windows = make()
    windows.advance(1000.0)
    windows.add(0, 0, 100.0, 600.0)
    for tick in range(1, BUCKETS):
        windows.advance(1000.0 + tick * TICK)
        windows.add(0, 0, 0.0, TICK)
    # One bucket of five is left of the silence; ten minutes in one bucket would say 98.7.
    assert mean(windows, 0) == pytest.approx(20.0)


def test_more_slots_keep_what_the_others_hold():
    windows = make()
    windows.advance(1000.0)
    windows.add(2, 0, 7.0, 1.0)
    windows.reserve(100)
    windows.add(99, 0, 8.0, 1.0)
    assert mean(windows, 2) == 7.0
    assert mean(windows, 99) == 8.0


def test_one_series_of_a_slot_is_forgotten_alone():
    windows = make(series=2)
    windows.advance(1000.0)
    windows.add(1, 0, 5.0, 1.0)
    windows.add(1, 1, 6.0, 1.0)
    windows.forget(1, 0)
    assert mean(windows, 1) is None
    assert mean(windows, 1, 1) == 6.0
