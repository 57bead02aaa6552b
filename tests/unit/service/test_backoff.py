"""Waiting times: they double up to a limit, and differ between processes."""

import pytest

from slicewatch.service.backoff import Backoff


def test_each_wait_is_between_half_of_its_step_and_the_whole():
    backoff = Backoff(first_seconds=1, most_seconds=10)
    for step in (1, 2, 4, 8, 10, 10):
        assert step / 2 <= backoff.next_seconds() <= step


def test_a_success_starts_over():
    backoff = Backoff(first_seconds=1, most_seconds=10)
    for _ in range(5):
        backoff.next_seconds()
    backoff.reset()
    assert backoff.next_seconds() <= 1


def test_waits_of_different_processes_spread():
    assert len({Backoff().next_seconds() for _ in range(50)}) > 40


@pytest.mark.parametrize("failures", [100, 5_000])
def test_an_outage_of_days_still_has_a_wait(failures):
    backoff = Backoff()
    for _ in range(failures):
        backoff.next_seconds()
    assert 15 <= backoff.next_seconds() <= 30
