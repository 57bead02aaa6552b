"""Sliding windows: means equal those of a naive list of readings."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exporter.measure.windows import Grid, Window

TICK, BUCKETS = 2.0, 5
values = st.floats(0, 1e6)
weights = st.floats(0.001, 40)
steps = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 2), values, weights),
    st.tuples(st.just("advance"), st.floats(0, 9)),
    st.tuples(st.just("forget"), st.integers(0, 2)),
    st.tuples(st.just("hold"), st.integers(0, 2), st.one_of(st.none(), values)),
    st.tuples(st.just("pass"), st.floats(0.001, 4)),
)


class Bench:
    """A window, and the grid that it lies on."""

    def __init__(self, series=1):
        self.grid = Grid(window_seconds=TICK * BUCKETS, tick_seconds=TICK)
        self.grid.advance(1000.0)
        self.window = Window(series, self.grid)

    def mean(self, series=0):
        return self.window.means()[series]


@pytest.fixture
def bench():
    return Bench()


def naive(readings, bucket):
    """Return the mean of (bucket, value, weight) in the last buckets."""
    inside = [(v, w) for b, v, w in readings if bucket - BUCKETS < b <= bucket]
    if not inside:
        return None
    return math.fsum(v * w for v, w in inside) / math.fsum(w for _, w in inside)


def pieces(bucket, value, weight):
    """Spread a reading over the ticks that it describes, if they are more than two."""
    count = 1 if weight <= 2 * TICK else math.ceil(weight / TICK)
    return [(bucket - back, value, weight / count) for back in range(count)]


@example([("add", 0, 3.0, 1.0), ("advance", 12.0), ("add", 0, 5.0, 1.0), ("advance", 8.0)])
@given(st.lists(steps, max_size=60))
def test_means_equal_a_naive_model(sequence):
    bench, now = Bench(series=3), 1000.0
    window = bench.window
    kept = [[] for _ in range(3)]
    for kind, *facts in sequence:
        if kind == "add":
            series, value, weight = facts
            window.add(series, value, weight)
            kept[series] += pieces(int(now / TICK), value, weight)
        elif kind == "advance":
            now += facts[0]
            bench.grid.advance(now)
        elif kind == "hold":
            window.held[facts[0]] = facts[1]
        elif kind == "pass":
            window.let_pass(facts[0])
            for readings, value in zip(kept, window.held, strict=True):
                if value is not None:
                    readings.append((int(now / TICK), value, facts[0]))
        else:
            window.forget(facts[0])
            kept[facts[0]] = []
    means = [naive(readings, int(now / TICK)) for readings in kept]
    # A part of a nanosecond is rounded, of milliseconds.
    close = [m if m is None else pytest.approx(m, rel=1e-5, abs=1e-5) for m in means]
    assert window.means() == close


@given(st.lists(st.floats(0.01, 2.0), min_size=1, max_size=50))
def test_a_device_that_is_always_busy_has_a_mean_of_exactly_100(lengths):
    bench = Bench()
    for tick, length in enumerate(lengths):
        bench.grid.advance(1000.0 + tick)
        bench.window.add(0, 100.0, length)
    assert bench.mean() == 100.0


@given(st.lists(st.floats(0, 1e12), max_size=50))
def test_nothing_is_left_of_what_fell_out(before):
    bench = Bench()
    for tick, value in enumerate(before):
        bench.grid.advance(1000.0 + tick * TICK)
        bench.window.held[0] = value
        bench.window.let_pass(TICK)
    bench.window.held[0] = 0.0
    for tick in range(len(before), len(before) + BUCKETS):
        bench.grid.advance(1000.0 + tick * TICK)
        bench.window.let_pass(TICK)
    assert bench.mean() == 0.0


def test_readings_weigh_by_the_time_that_they_describe(bench):
    bench.window.add(0, 100.0, 1.0)
    bench.window.add(0, 0.0, 3.0)
    assert bench.mean() == 25.0


def test_a_value_that_is_held_counts_for_the_time_that_passes(bench):
    bench.window.held[0] = 100.0
    bench.window.let_pass(1.0)
    bench.window.held[0] = 0.0
    bench.window.let_pass(2.0)
    bench.window.let_pass(1.0)
    assert bench.mean() == 25.0
    bench.window.held[0] = None
    bench.window.let_pass(8.0)
    assert bench.mean() == 25.0


def test_what_is_older_than_the_window_is_gone(bench):
    bench.window.add(0, 100.0, 1.0)
    bench.grid.advance(1000.0 + TICK * (BUCKETS - 1))
    assert bench.mean() == 100.0
    bench.grid.advance(1000.0 + TICK * BUCKETS)
    assert bench.mean() is None


def test_a_jump_of_any_length_empties_the_window(bench):
    bench.window.add(0, 100.0, 1.0)
    bench.grid.advance(1e9)
    assert bench.mean() is None


def test_a_reading_after_a_long_silence_does_not_outweigh_the_window(bench):
    bench.window.add(0, 100.0, 600.0)
    for tick in range(1, BUCKETS):
        bench.grid.advance(1000.0 + tick * TICK)
        bench.window.add(0, 0.0, TICK)
    # One bucket of five is left of the silence; ten minutes in one bucket would say 98.7.
    assert bench.mean() == pytest.approx(20.0)


def test_one_series_is_forgotten_alone():
    bench = Bench(series=2)
    bench.window.add(0, 5.0, 1.0)
    bench.window.add(1, 6.0, 1.0)
    bench.window.forget(0)
    assert bench.window.means() == [None, 6.0]
