"""Signals looked up in tables: the same as the signals themselves, in any order, at a fixed cost."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simulator import load
from simulator.load import constant, cumulated, value_at
from simulator.tabulation import TABLE_SECONDS, Tabulated, summed

BEGIN, END = 250.0, 4000.0

moments = st.floats(BEGIN, END)
several = st.lists(moments, min_size=2, max_size=8, unique=True).map(sorted).map(np.array)
levels = st.floats(0, 1)


@st.composite
def demands(draw):
    if draw(st.booleans()):
        return load.wave(draw(levels), draw(levels), period=draw(st.floats(20, 900)))
    return load.steps([(0.0, draw(levels)), (70.0, draw(levels))], period=draw(st.floats(71, 900)))


weighted = st.lists(st.tuples(st.floats(1, 3), demands()), min_size=1, max_size=3)
signals = weighted.flatmap(lambda parts: st.sampled_from(load.fair_shares(parts)))


class Counted:
    """A signal that counts how often it is asked for anything."""

    def __init__(self, signal):
        self.signal = signal
        self.asked = 0

    def breaks(self, begin, end):
        self.asked += 1
        return self.signal.breaks(begin, end)

    def values(self, times):
        self.asked += 1
        return self.signal.values(times)


def tabulated(signal):
    return Tabulated(signal, begin=BEGIN, end=END)


@settings(deadline=None)
@given(signals, several)
def test_integrals_are_those_of_the_signal(signal, times):
    table = tabulated(signal)
    assert summed(table, times) == pytest.approx(cumulated(signal, times), abs=1e-9)
    # A signal made of it, whose integral nobody tabulated, finds the same steps.
    of_both = load.Sum(parts=((0.5, table), (0.5, signal)))
    assert cumulated(of_both, times) == pytest.approx(cumulated(signal, times), abs=1e-9)


@settings(deadline=None)
@given(signals, moments)
def test_values_are_those_of_the_signal(signal, at):
    steps = signal.breaks(0.0, END + 1)
    # Rounding may put a moment on either side of a step that is that near.
    assume(not len(steps) or np.abs(steps - at).min() > 1e-6)
    assert value_at(tabulated(signal), at) == value_at(signal, at)


def test_a_step_at_the_seam_of_two_tables_belongs_to_the_second():
    table = tabulated(load.steps([(0.0, 0.25), (TABLE_SECONDS, 0.75)]))
    assert value_at(table, TABLE_SECONDS - 1e-6) == 0.25
    assert value_at(table, TABLE_SECONDS) == 0.75
    around = np.array([TABLE_SECONDS - 10, TABLE_SECONDS, TABLE_SECONDS + 10])
    assert summed(table, around) == pytest.approx([0, 2.5, 10])


@settings(deadline=None)
@given(signals, st.lists(st.tuples(moments, st.floats(0, 100)), min_size=2, max_size=6))
def test_what_was_asked_before_changes_no_bit(signal, periods):
    spans = [np.array([begin, min(begin + length, END)]) for begin, length in periods]
    table = tabulated(signal)
    together = [summed(table, span)[-1] for span in spans]
    assert together == [summed(tabulated(signal), span)[-1] for span in spans]
    assert together == [summed(table, span)[-1] for span in spans]


@settings(deadline=None)
@given(signals, st.integers(1, 5), st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_a_sum_from_a_checkpoint_to_the_next_never_falls(signal, number, parts):
    table, begin = tabulated(signal), number * TABLE_SECONDS
    times = [begin + part * TABLE_SECONDS for part in (*sorted(parts), 1.0)]
    sums = [summed(table, np.array([begin, time]))[-1] for time in times]
    assert sums == sorted(sums)
    assert sums[0] >= 0


@given(st.lists(levels, min_size=40, max_size=40))
def test_a_sum_stands_still_while_nothing_runs_up_to_the_next_checkpoint(heights):
    busy = [(11.7 * number, height) for number, height in enumerate(heights)]
    table = tabulated(load.steps([*busy, (500.0, 0.0)], period=TABLE_SECONDS))
    sums = {
        float(summed(table, np.array([TABLE_SECONDS, time]))[-1])
        for time in (1101.0, 1150.3, 2 * TABLE_SECONDS)
    }
    assert len(sums) == 1


def test_a_stage_that_begins_at_the_seam_of_two_tables_has_nothing_before_it():
    table = Tabulated(constant(0.5), begin=TABLE_SECONDS, end=END)
    assert summed(table, np.array([TABLE_SECONDS, TABLE_SECONDS])) == pytest.approx([0, 0])
    assert summed(table, np.array([TABLE_SECONDS, 700.0])) == pytest.approx([0, 50])


def test_a_signal_is_worked_out_once_for_all_that_is_asked_in_minutes():
    signal = Counted(load.wave(0.1, 0.9, period=97.0))
    table = tabulated(signal)
    for second in range(610, 1190):
        value_at(table, second)
        summed(table, np.array([TABLE_SECONDS, second]))
        summed(table, np.linspace(max(BEGIN, second - 60.0), second, 72))
    assert signal.asked == 2


def test_a_moment_far_back_that_is_asked_for_again_and_again_keeps_its_table():
    """Counters since the driver was loaded, which happened some tables ago."""
    signal = Counted(load.wave(0.1, 0.9, period=97.0))
    table = tabulated(signal)
    for second in range(3010, 3100):
        summed(table, np.array([TABLE_SECONDS, 700.0]))
        summed(table, np.array([5 * TABLE_SECONDS, second]))
    assert signal.asked == 4


def test_no_table_goes_beyond_its_stage():
    """Else each of many short stages would work out minutes in which it does not hold."""
    signal = load.wave(0.1, 0.9, period=1.0)
    spans = []
    watched = Counted(signal)
    watched.breaks = lambda begin, end: spans.append((begin, end)) or signal.breaks(begin, end)
    summed(Tabulated(watched, begin=610.0, end=615.0), np.array([611.0, 612.0]))
    assert spans == [(610.0, 615.0)]


def test_longer_periods_and_other_times_are_left_to_the_signal():
    table = tabulated(constant(0.5))
    for times in ([300.0, 3900.0], [0.0, 100.0], [3900.0, 5000.0]):
        assert summed(table, np.array(times))[-1] == pytest.approx((times[1] - times[0]) / 2)
    assert list(table.values(np.array([10.0, 5000.0]))) == [0.5, 0.5]
    assert len(table.values(np.array([]))) == 0
