"""Loads over time and their integrals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import load
from simulator.load import Succession, WeightedSum, constant, cumulated, integral, value_at

levels = st.floats(0, 1)
times = st.floats(0, 5000)


@st.composite
def curves(draw):
    kind = draw(st.sampled_from(["constant", "steps", "ramp", "wave"]))
    if kind == "constant":
        return constant(draw(levels))
    if kind == "ramp":
        begin, over = draw(st.floats(0, 1000)), draw(st.floats(1, 1000))
        return load.ramp(draw(levels), draw(levels), begin=begin, over=over)
    if kind == "wave":
        period, phase = draw(st.floats(10, 2000)), draw(st.floats(0, 500))
        return load.wave(draw(levels), draw(levels), period=period, phase=phase)
    stairs = sorted(draw(st.sets(st.integers(0, 900), min_size=1, max_size=5)))
    period = draw(st.one_of(st.none(), st.floats(901, 2000)))
    return load.steps([(float(at), draw(levels)) for at in stairs], period=period)


shared = st.lists(curves(), min_size=1, max_size=4).map(load.together)


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
    # A jump can be misplaced by half a small step; there are a few dozen at the most.
    assert integral(signal, begin, begin + length) == pytest.approx(stepped, abs=length / 500)


@given(shared, times)
def test_a_device_is_never_busier_than_all_the_time(signal, at):
    assert 0 <= value_at(signal, at) <= 1
    assert signal.peak <= 1


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


def test_a_ramp_goes_straight_and_stays():
    way = load.ramp(0.2, 1.0, begin=100, over=80)
    assert value_at(way, 50) == pytest.approx(0.2)
    assert value_at(way, 140) == pytest.approx(0.6)
    assert value_at(way, 1000) == pytest.approx(1.0)
    assert integral(way, 100, 180) == pytest.approx(48)


def test_a_wave_is_low_at_its_phase_and_high_half_a_period_later():
    swell = load.wave(0.2, 0.8, period=600, phase=30)
    assert value_at(swell, 30) == pytest.approx(0.2)
    assert value_at(swell, 330) == pytest.approx(0.8)
    assert integral(swell, 30, 6030) == pytest.approx(3000)


def test_what_is_asked_for_beyond_the_device_waits():
    # 0.5 to 1.5 over 100 s crosses 1 in the middle: 0.75 * 50 s, then full.
    total = load.together([constant(0.5), load.ramp(0.0, 1.0, begin=0, over=100)])
    assert integral(total, 0, 100) == pytest.approx(0.75 * 50 + 50)


def test_one_load_after_the_other_holds_each_in_its_time():
    parts = (constant(0.1), load.ramp(0, 1, begin=0, over=100), constant(0.3))
    signal = Succession(begins=np.array([0.0, 50.0, 100.0]), signals=parts)
    assert integral(signal, 0, 200) == pytest.approx(0.1 * 50 + 0.75 * 50 + 0.3 * 100)
    assert value_at(signal, 75) == pytest.approx(0.75)


def test_weights_scale_loads():
    half = WeightedSum(parts=((0.25, constant(1.0)), (0.5, constant(0.5))))
    assert integral(half, 0, 10) == pytest.approx(5)
