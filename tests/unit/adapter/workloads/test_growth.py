"""Counters: growth over a window, whatever happens to the process that counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.sources.workloads.declaration import Type, WorkloadMetric
from adapter.sources.workloads.growth import Counters
from slicewatch.catalog.model import Combine

KEY = ((), "")
A, B = (("e", "a"),), (("e", "b"),)


def rate(window=30.0, combine=Combine.SUM):
    return Counters(
        WorkloadMetric(
            name="n", series="n_total", type=Type.RATE, window_seconds=window, combine=combine
        )
    )


def fed(counters, values, interval=5.0):
    for number, value in enumerate(values):
        counters.add(number * interval, {A: {"": value}})
    return counters.growth()


def test_one_page_says_nothing_about_growth():
    assert rate().growth() is None
    assert fed(rate(), [100.0]) is None


def test_growth_is_that_of_the_window():
    growth = fed(rate(10.0), [0.0, 100.0, 101.0, 103.0])
    assert (growth.seconds, growth.amounts) == (10.0, {KEY: 3.0})


def test_growth_covers_at_least_the_window_once_so_much_is_known():
    counters = rate(10.0)
    for at in (0.0, 4.0, 8.0, 13.0):
        counters.add(at, {A: {"": at}})
    assert counters.growth().seconds == 13.0 - 0.0
    counters.add(15.0, {A: {"": 15.0}})
    assert counters.growth().seconds == 15.0 - 4.0


def test_a_counter_that_went_down_has_begun_again():
    """prometheus-adapter PR #431: a restarted container does not make a rate negative."""
    assert fed(rate(), [1000.0, 1010.0, 3.0, 5.0]).amounts == {KEY: 15.0}


def test_all_parts_of_a_series_begin_again_together():
    counters = Counters(WorkloadMetric(name="n", series="n", type=Type.AVERAGE))
    counters.add(0.0, {A: {"sum": 10.0, "count": 100.0}})
    counters.add(5.0, {A: {"sum": 12.0, "count": 2.0}})
    assert counters.growth().amounts == {((), "sum"): 12.0, ((), "count"): 2.0}


def test_another_series_that_begins_again_changes_nothing_of_the_first():
    counters = rate()
    counters.add(0.0, {A: {"": 1000.0}, B: {"": 1000.0}})
    counters.add(5.0, {A: {"": 1001.0}, B: {"": 2.0}})
    assert counters.growth().amounts == {KEY: 3.0}


def test_a_series_counts_from_the_first_page_that_has_it():
    counters = rate()
    counters.add(0.0, {A: {"": 1.0}})
    counters.add(5.0, {A: {"": 2.0}, B: {"": 1_000_000.0}})
    counters.add(10.0, {A: {"": 3.0}, B: {"": 1_000_004.0}})
    assert counters.growth().amounts == {KEY: 6.0}


def test_after_a_long_pause_counting_begins_again():
    counters = rate(30.0)
    counters.add(0.0, {A: {"": 0.0}})
    counters.add(61.0, {A: {"": 6000.0}})
    assert counters.growth() is None
    counters.add(66.0, {A: {"": 6005.0}})
    assert (counters.growth().seconds, counters.growth().amounts) == (5.0, {KEY: 5.0})


def test_a_series_that_ended_is_no_longer_among_those_to_choose_from():
    counters = rate(combine=Combine.MAX)
    counters.add(0.0, {A: {"": 0.0}, B: {"": 0.0}})
    counters.add(5.0, {A: {"": 5.0}, B: {"": 50.0}})
    counters.add(10.0, {A: {"": 10.0}})
    assert counters.growth().amounts == {(A, ""): 10.0}


@pytest.mark.parametrize("combine", [Combine.SUM, Combine.MAX])
@given(steps=st.lists(st.integers(0, 1000), min_size=2, max_size=30), data=st.data())
def test_growth_is_what_was_counted_however_often_the_process_began_again(combine, steps, data):
    counters = rate(1e6, combine)
    total, value = 0, 0
    for number, step in enumerate(steps):
        # It can be told that it began again only if it has counted less since.
        begins = number > 0 and step < value and data.draw(st.booleans())
        value = step if begins else value + step
        total += step if number else 0
        counters.add(5.0 * number, {A: {"": float(value)}})
    assert sum(counters.growth().amounts.values()) == total
