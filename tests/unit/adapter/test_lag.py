"""A frame that waited in a buffer is as old as it is, though it has just arrived."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.sources.lag import DRIFT, Lag

SKEW = 5_000.0


def test_frames_that_arrive_in_the_rhythm_of_sending_have_no_lag():
    lag = Lag()
    for tick in range(100):
        assert lag.undelayed(tick, SKEW + tick) == SKEW + tick


def test_frames_that_pile_up_are_told_by_how_long_they_waited():
    lag = Lag()
    lag.undelayed(0.0, SKEW)
    for tick in range(1, 30):
        received = SKEW + 2 * tick
        assert lag.undelayed(tick, received) == pytest.approx(SKEW + tick, abs=0.02)


def test_a_lag_that_is_over_leaves_nothing_behind():
    lag = Lag()
    lag.undelayed(0.0, SKEW)
    assert lag.undelayed(1.0, SKEW + 11) == pytest.approx(SKEW + 1, abs=0.01)
    assert lag.undelayed(12.0, SKEW + 12) == pytest.approx(SKEW + 12, abs=0.01)


@given(st.floats(-1e-4, 1e-4))
def test_clocks_that_drift_apart_are_not_taken_for_a_lag(drift):
    lag = Lag()
    for hour in range(200):
        received = SKEW + 3600 * hour * (1 + drift)
        assert lag.undelayed(3600.0 * hour, received) == pytest.approx(received, abs=1e-6)
    assert drift < DRIFT


def test_a_frame_is_never_newer_than_its_receipt():
    lag = Lag()
    lag.undelayed(0.0, SKEW)
    assert lag.undelayed(5.0, SKEW + 1) <= SKEW + 1


def test_a_sender_that_states_no_clock_is_taken_at_its_receipt():
    assert Lag().undelayed(None, 7.0) == 7.0
