"""The arithmetic of readings: no time is counted twice or lost between two reads."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.catalog import CATALOG
from slicewatch.catalog.readings.memory import Memory
from slicewatch.catalog.readings.utilization import LONGEST_PERIOD_US, Utilization

PERCENTS = st.integers(0, 100)


@st.composite
def streams(draw, percents=PERCENTS):
    """Samples of a driver: rising timestamps, with an occasional gap in the buffer."""
    gaps = draw(st.lists(st.integers(1, 2 * LONGEST_PERIOD_US), min_size=1, max_size=40))
    at = draw(st.integers(0, 2**50))
    samples = []
    for gap in gaps:
        at += gap
        samples.append((at, draw(percents)))
    return tuple(samples)


def split_into_reads(stream, lengths, since_us):
    """Cut a stream as a session does: each read knows where the previous one ended."""
    rest = stream
    for length in [*lengths, len(stream)]:
        samples, rest = rest[:length], rest[length:]
        yield Utilization(samples=samples, since_us=since_us)
        since_us = samples[-1][0] if samples else since_us


@given(streams(), st.lists(st.integers(0, 5), max_size=30), st.booleans())
def test_however_a_stream_is_split_the_totals_stay(stream, lengths, known_begin):
    since = stream[0][0] - 1000 if known_begin else None
    whole = Utilization(samples=stream, since_us=since)
    parts = list(split_into_reads(stream, lengths, since))
    for total in (Utilization.covered_seconds, Utilization.busy_seconds):
        assert math.isclose(sum(map(total, parts)), total(whole), rel_tol=1e-12, abs_tol=1e-12)


@given(streams())
def test_busy_time_lies_within_the_covered_time(stream):
    reading = Utilization(samples=stream, since_us=stream[0][0] - 1)
    assert 0 <= reading.busy_seconds() <= reading.covered_seconds()


@given(streams(percents=st.just(100)))
def test_a_fully_busy_gpu_is_at_exactly_100_percent(stream):
    reading = Utilization(samples=stream, since_us=stream[0][0] - 1)
    assert reading.percent() == 100.0


@given(streams())
def test_a_consistent_reading_makes_values_within_their_limits(stream):
    reading = Utilization(samples=stream, since_us=stream[0][0] - 1)
    assert reading.consistent()
    for name in ("gpu_utilization", "gpu_busy_seconds_total"):
        metric = CATALOG[name]
        assert metric.limits.hold(metric.value(reading))


def test_a_sample_counts_for_the_time_since_the_one_before_it():
    reading = Utilization(samples=((1_200_000, 100), (2_000_000, 0)), since_us=1_000_000)
    assert reading.covered_seconds() == 1.0
    assert reading.busy_seconds() == pytest.approx(0.2)
    assert reading.percent() == pytest.approx(20.0)


def test_the_first_read_of_a_session_gives_its_first_sample_no_weight():
    reading = Utilization(samples=((1_000_000, 100), (1_500_000, 40)), since_us=None)
    assert reading.covered_seconds() == 0.5
    assert reading.percent() == 40.0


def test_time_whose_samples_the_buffer_lost_is_neither_busy_nor_covered():
    late = 1_000_000 + LONGEST_PERIOD_US + 1
    reading = Utilization(samples=((late, 100), (late + 500_000, 50)), since_us=1_000_000)
    assert reading.covered_seconds() == 0.5
    assert reading.percent() == 50.0


def test_a_timestamp_that_comes_again_counts_once():
    reading = Utilization(samples=((1_500_000, 80), (1_500_000, 80)), since_us=1_000_000)
    assert reading.covered_seconds() == 0.5
    assert reading.busy_seconds() == pytest.approx(0.4)


def test_without_samples_the_drivers_present_rate_is_the_value_but_covers_no_time():
    reading = Utilization(samples=(), since_us=1, current_percent=7)
    assert reading.percent() == 7.0
    assert reading.covered_seconds() == 0.0
    assert reading.busy_seconds() == 0.0


def test_without_samples_and_rate_the_value_is_absent():
    assert Utilization(samples=(), since_us=None).percent() is None
    assert Utilization(samples=((5, 50),), since_us=None).percent() is None


@pytest.mark.parametrize("percent", [-1, 101, 4_294_967_295])
def test_a_rate_that_is_no_percentage_makes_the_reading_inconsistent(percent):
    assert not Utilization(samples=((1, 5), (2, percent)), since_us=0).consistent()
    assert not Utilization(samples=(), since_us=0, current_percent=percent).consistent()


@given(st.integers(1, 2**49), st.data())
def test_used_memory_is_a_share_within_0_and_100(total, data):
    used = data.draw(st.integers(0, total))
    memory = Memory(total_bytes=total, free_bytes=total - used, used_bytes=used, reserved_bytes=0)
    assert memory.consistent()
    percent = CATALOG["gpu_memory_utilization"].value(memory)
    assert CATALOG["gpu_memory_utilization"].limits.hold(percent)
    assert percent == pytest.approx(100 * used / total)


@pytest.mark.parametrize(
    "fault",
    [
        {"total_bytes": 0, "free_bytes": 0, "used_bytes": 0},
        {"used_bytes": 101},
        {"free_bytes": 101},
        {"reserved_bytes": 101},
        {"free_bytes": -1},
        {"free_bytes": 71},
    ],
    ids=str,
)
def test_memory_whose_parts_do_not_fit_the_whole_is_inconsistent(fault):
    sound = {"total_bytes": 100, "free_bytes": 60, "used_bytes": 30, "reserved_bytes": 10}
    assert Memory(**sound).consistent()
    assert not Memory(**{**sound, **fault}).consistent()
