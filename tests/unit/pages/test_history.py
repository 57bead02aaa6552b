"""Sparklines: means of steps, gaps where nothing was known, as long for all that is there."""

from hypothesis import given
from hypothesis import strategies as st

from slicewatch.pages.history import STEPS, History

VALUES = st.none() | st.floats(0, 100)


def row(value):
    return (value, None, None, None)


def test_a_step_is_the_mean_of_what_was_known_in_it():
    history = History(step_seconds=5)
    for now, value in ((0, 10.0), (2, None), (4, 20.0), (6, 90.0)):
        history.take(now, {"a": row(value)})
    assert history.lines("a").utilization == (15.0,)


def test_a_step_without_a_value_is_a_gap():
    history = History(step_seconds=5)
    for now, value in ((0, 10.0), (5, None), (10, 30.0), (15, 1.0)):
        history.take(now, {"a": row(value)})
    assert history.lines("a").utilization == (10.0, None, 30.0)


def test_what_comes_later_has_gaps_before_it_and_what_has_gone_is_forgotten():
    history = History(step_seconds=1)
    history.take(0, {"a": row(1.0)})
    history.take(1, {"a": row(2.0), "b": row(5.0)})
    history.take(2, {"b": row(6.0)})
    assert history.lines("b").utilization == (None, 5.0)
    assert history.lines("a").utilization == ()


def test_a_long_silence_is_all_gaps_and_costs_no_more_than_the_ring():
    history = History(step_seconds=1)
    history.take(0, {"a": row(1.0)})
    history.take(1e9, {"a": row(2.0)})
    assert history.lines("a").utilization == ()
    history.take(1e9 + 1, {"a": row(2.0)})
    assert history.lines("a").utilization[-1] == 2.0
    assert len(history.lines("a").utilization) == STEPS


@given(st.lists(st.tuples(st.floats(0, 20), st.dictionaries(st.sampled_from("abc"), VALUES))))
def test_lines_are_never_longer_than_the_ring_and_all_as_long(ticks):
    history, now = History(step_seconds=5), 0.0
    present = {}
    for passed, present in ticks:
        now += passed
        history.take(now, {key: row(value) for key, value in present.items()})
    lengths = {len(history.lines(key).utilization) for key in present} - {0}
    assert len(lengths) <= 1
    assert all(length <= STEPS for length in lengths)
