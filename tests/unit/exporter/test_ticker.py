"""The grid of the ticks."""

from hypothesis import given
from hypothesis import strategies as st

from exporter.ticker import EARLY_SHARE, next_tick

nows = st.floats(1, 1e7)
ticks = st.sampled_from([0.05, 0.1, 0.25, 1.0, 2.0, 15.0, 60.0])


@given(nows, ticks)
def test_the_next_tick_is_ahead_by_about_one_tick(now, tick):
    ahead = next_tick(now, tick) - now
    assert tick * (EARLY_SHARE - 1e-3) <= ahead <= tick * (1 + EARLY_SHARE + 1e-3)


@given(nows, ticks)
def test_ticks_lie_on_a_grid(now, tick):
    count = next_tick(now, tick) / tick
    assert abs(count - round(count)) < 1e-6


def test_a_timer_that_goes_off_early_does_not_tick_twice():
    assert next_tick(9.9996, 1.0) == 11.0


def test_a_late_tick_does_not_make_up_for_those_it_missed():
    assert next_tick(13.7, 1.0) == 14.0
