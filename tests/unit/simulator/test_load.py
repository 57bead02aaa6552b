"""Loads over time and their integrals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import load
from simulator.load import STEPS, Sum, constant, cumulated, fair_shares, value_at

# How far a staircase may be from the wave that it stands for, which goes from 0 to 1.
WAVE_STEP = np.pi / 2 / STEPS

levels = st.floats(0, 1)
times = st.floats(0, 5000)


@st.composite
def curves(draw):
    kind = draw(st.sampled_from(["constant", "steps", "wave"]))
    if kind == "constant":
        return constant(draw(levels))
    if kind == "wave":
        period, phase = draw(st.floats(10, 2000)), draw(st.floats(0, 500))
        return load.wave(draw(levels), draw(levels), period=period, phase=phase)
    stairs = sorted(draw(st.sets(st.integers(0, 900), min_size=1, max_size=5)))
    period = draw(st.one_of(st.none(), st.floats(901, 2000)))
    return load.steps([(float(at), draw(levels)) for at in stairs], period=period)


shared = st.lists(curves(), min_size=1, max_size=4).map(load.together)


def integral(signal, begin, end):
    return float(cumulated(signal, np.array([begin, end]))[-1])


@given(shared, times, times, times)
def test_an_integral_is_the_sum_of_its_parts(signal, one, two, three):
    begin, middle, end = sorted((one, two, three))
    parts = integral(signal, begin, middle) + integral(signal, middle, end)
    assert parts == pytest.approx(integral(signal, begin, end), abs=1e-6)


@given(shared, times, st.floats(1, 500))
def test_an_integral_is_what_many_small_steps_add_up_to(signal, begin, length):
    number = 20_000
    middles = begin + (np.arange(number) + 0.5) * length / number
    stepped = float(signal.values(middles).mean()) * length
    # A jump can be off by half a small step, and there are many of them.
    assert integral(signal, begin, begin + length) == pytest.approx(stepped, abs=length / 500)


@given(shared, times)
def test_a_device_is_never_busier_than_all_the_time(signal, at):
    assert 0 <= value_at(signal, at) <= 1


@given(shared, st.lists(times, min_size=2, max_size=10, unique=True).map(sorted))
def test_sums_up_to_many_times_agree_with_one_integral_each(signal, moments):
    sums = cumulated(signal, np.array(moments))
    single = [integral(signal, moments[0], moment) for moment in moments]
    assert list(sums) == pytest.approx(single, abs=1e-6)


def test_steps_hold_from_their_time_on_and_are_zero_before_the_first():
    stairs = load.steps([(10, 0.5), (20, 0.25)])
    assert [value_at(stairs, at) for at in (0, 9.9, 10, 19.9, 20, 1000)] == [
        0, 0, 0.5, 0.5, 0.25, 0.25,
    ]  # fmt: skip


def test_steps_repeat():
    stairs = load.steps([(0, 1.0), (10, 0.0)], period=20)
    assert [value_at(stairs, at) for at in (5, 15, 25, 35, 2005)] == [1, 0, 1, 0, 1]
    assert integral(stairs, 0, 2000) == pytest.approx(1000)


def test_a_wave_is_low_at_its_phase_and_high_half_a_period_later():
    swell = load.wave(0.2, 0.8, period=600, phase=30)
    assert value_at(swell, 30) == pytest.approx(0.2, abs=0.6 * WAVE_STEP)
    assert value_at(swell, 330) == pytest.approx(0.8, abs=0.6 * WAVE_STEP)
    assert integral(swell, 30, 6030) == pytest.approx(3000)


def test_what_is_asked_for_beyond_the_device_waits():
    total = load.together([constant(0.5), load.steps([(0, 0.25), (50, 0.75)])])
    assert integral(total, 0, 100) == pytest.approx(0.75 * 50 + 50)


weighted = st.lists(st.tuples(st.integers(1, 4).map(float), curves()), min_size=1, max_size=5)


@given(weighted, times)
def test_shares_are_max_min_fair(demands, at):
    asked = [value_at(signal, at) for _, signal in demands]
    got = [value_at(share, at) for share in fair_shares(demands)]
    assert sum(got) == pytest.approx(min(1.0, sum(asked)))
    per_weight = [share / weight for share, (weight, _) in zip(got, demands, strict=True)]
    for share, wanted, level in zip(got, asked, per_weight, strict=True):
        assert share <= wanted + 1e-12
        # Who has less than it asks for has no less, by weight, than anybody.
        assert share == pytest.approx(wanted) or level == pytest.approx(max(per_weight))


@settings(deadline=None)
@given(weighted, times, st.floats(1, 500))
def test_what_the_shares_add_up_to_is_how_busy_the_device_is(demands, begin, length):
    device = integral(load.together([demand for _, demand in demands]), begin, begin + length)
    parts = [integral(share, begin, begin + length) for share in fair_shares(demands)]
    assert sum(parts) == pytest.approx(device, abs=1e-6)
    assert device <= length + 1e-6


def test_a_small_load_gets_all_that_it_asks_for_and_greedy_ones_share_the_rest():
    shares = fair_shares([(1.0, constant(0.1)), (1.0, constant(1.0)), (2.0, constant(0.9))])
    assert [value_at(share, 5) for share in shares] == pytest.approx([0.1, 0.3, 0.6])


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 2000))
def test_a_staircase_stays_close_to_the_wave_that_it_stands_for(low, high, at):
    swell = load.wave(low, high, period=600, phase=30)
    true = low + (high - low) * (1 - np.cos(2 * np.pi * (at - 30) / 600)) / 2
    assert value_at(swell, at) == pytest.approx(true, abs=WAVE_STEP)


def test_weights_scale_loads():
    half = Sum(parts=((0.25, constant(1.0)), (0.5, constant(0.5))))
    assert integral(half, 0, 10) == pytest.approx(5)


def test_waiting_is_what_thinking_and_running_leave_of_the_time():
    waits = load.Waiting(demand=constant(0.8), got=constant(0.2))
    # Of four seconds, 0.8 are run, 0.2 are thought, and three are waited.
    assert integral(waits, 0, 4) == pytest.approx(3)
    assert value_at(load.Waiting(demand=constant(0), got=constant(0)), 1) == 0
