"""Clocks: waiting for a moment of the fleet."""

import threading
import time

import pytest

from simulator.clock import ManualClock, RealTimeClock


def waiting(clock, until, woken):
    condition = threading.Condition()

    def wait():
        with condition:
            while clock.now() < until:
                clock.wait(condition, until=until, timeout_seconds=30)
        woken.set()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_a_manual_clock_wakes_who_waits_for_its_moment():
    clock, woken = ManualClock(), threading.Event()
    thread = waiting(clock, 10, woken)
    clock.advance_to(9)
    assert not woken.wait(0.05)
    clock.advance(1)
    assert woken.wait(10)
    thread.join()


def test_a_real_clock_wakes_who_waits_for_its_moment():
    clock, woken = RealTimeClock(), threading.Event()
    thread = waiting(clock, clock.now() + 0.02, woken)
    assert woken.wait(10)
    thread.join()


@pytest.mark.parametrize("clock", [ManualClock(), RealTimeClock()], ids=["manual", "real"])
def test_a_wait_ends_with_its_timeout(clock):
    condition = threading.Condition()
    began = time.monotonic()
    with condition:
        clock.wait(condition, until=clock.now() + 1000, timeout_seconds=0.01)
    assert time.monotonic() - began < 10


def test_a_moment_that_is_over_is_not_waited_for():
    clock = ManualClock()
    clock.advance_to(5)
    condition = threading.Condition()
    with condition:
        clock.wait(condition, until=5, timeout_seconds=None)


def test_a_real_clock_counts_from_the_present_time():
    clock = RealTimeClock()
    assert abs(clock.epoch_us - time.time() * 1e6) < 10e6
    assert 0 <= clock.now() < 10
