"""The cursor over the driver's buffered utilization samples."""

from hypothesis import given
from hypothesis import strategies as st

from exporter.nvml.samples import AHEAD_US, SampleCursor, VgpuCursor

NOW_US = 1_800_000_000_000_000

stamps = st.integers(min_value=NOW_US - 10**8, max_value=NOW_US)
samples = st.lists(st.tuples(stamps, st.integers(0, 100)), max_size=20)


def started_at(at_us: int) -> SampleCursor:
    cursor = SampleCursor()
    cursor.take([(at_us, 0)], NOW_US)
    return cursor


def test_a_new_cursor_asks_for_whatever_there_is():
    assert SampleCursor().since_us(NOW_US) == 0


def test_the_first_take_keeps_the_newest_sample_without_a_beginning():
    reading = SampleCursor().take([(NOW_US - 2, 10), (NOW_US - 1, 90)], NOW_US)
    assert reading.samples == ((NOW_US - 1, 90),)
    assert reading.since_us is None


def test_a_take_continues_where_the_last_one_ended():
    cursor = started_at(NOW_US - 10)
    reading = cursor.take([(NOW_US - 5, 40), (NOW_US, 60)], NOW_US)
    assert reading.since_us == NOW_US - 10
    assert reading.samples == ((NOW_US - 5, 40), (NOW_US, 60))
    assert cursor.since_us(NOW_US) == NOW_US


def test_samples_without_a_timestamp_are_dropped():
    assert started_at(NOW_US - 10).take([(0, 100), (0, 50)], NOW_US).samples == ()


def test_a_sample_from_far_ahead_neither_counts_nor_hides_the_next_ones():
    cursor = started_at(NOW_US - 10)
    assert cursor.take([(NOW_US + AHEAD_US + 1, 100)], NOW_US).samples == ()
    assert cursor.take([(NOW_US - 5, 7)], NOW_US).samples == ((NOW_US - 5, 7),)


def test_after_the_clock_was_set_back_the_cursor_begins_anew():
    cursor = started_at(NOW_US)
    an_hour_before = NOW_US - 3_600_000_000
    assert cursor.since_us(an_hour_before) == 0
    reading = cursor.take([(an_hour_before, 30)], an_hour_before)
    assert reading.samples == ((an_hour_before, 30),)
    assert reading.since_us is None


def test_a_take_that_finds_nothing_keeps_its_place():
    cursor = started_at(NOW_US - 10)
    assert cursor.take([], NOW_US).since_us == NOW_US - 10
    assert cursor.since_us(NOW_US) == NOW_US - 10


def test_percentages_are_passed_on_as_they_are():
    assert started_at(NOW_US - 9).take([(NOW_US, 37_100)], NOW_US).samples[0][1] == 37_100


@given(st.lists(samples, max_size=8))
def test_each_take_begins_where_the_one_before_ended(batches):
    cursor = SampleCursor()
    newest = None
    for batch in batches:
        reading = cursor.take(batch, NOW_US)
        assert reading.since_us == newest
        assert list(reading.samples) == sorted(reading.samples)
        if reading.samples:
            assert newest is None or reading.samples[0][0] > newest
            newest = reading.samples[-1][0]


@given(samples, samples)
def test_what_was_taken_is_never_taken_again(first, second):
    cursor = started_at(NOW_US - 10**9)
    cursor.take(first, NOW_US)
    seen = cursor.since_us(NOW_US)
    again = cursor.take(first + second, NOW_US)
    assert all(at > seen for at, _ in again.samples)


VGPUS = {7: "vgpu-a"}


def vgpu_row(at_us, *, number=7, sm=40):
    return (number, at_us, sm, 20, 10, 5)


def test_rates_of_vgpus_are_those_behind_the_last_read():
    cursor = VgpuCursor()
    assert cursor.since_us(NOW_US) == 0
    (rate,) = cursor.take([vgpu_row(NOW_US - 5)], VGPUS, NOW_US).rates
    assert (rate.uuid, rate.sm_percent, rate.decoder_percent) == ("vgpu-a", 40, 5)
    assert cursor.since_us(NOW_US) == NOW_US - 5
    assert cursor.take([vgpu_row(NOW_US - 5)], VGPUS, NOW_US).rates == ()


def test_rates_without_a_time_of_tomorrow_or_of_nobody_are_left_out():
    """nvtop #110: drivers hand out rows that nobody filled."""
    cursor = VgpuCursor()
    rows = [vgpu_row(0), vgpu_row(NOW_US + 10 * AHEAD_US), vgpu_row(NOW_US, number=0)]
    assert cursor.take(rows, VGPUS, NOW_US).rates == ()
    assert cursor.since_us(NOW_US) == NOW_US


def test_a_clock_that_was_set_back_hides_no_rates():
    cursor = VgpuCursor()
    cursor.take([vgpu_row(NOW_US)], VGPUS, NOW_US)
    back_us = NOW_US - 10 * AHEAD_US
    assert cursor.since_us(back_us) == 0
    assert cursor.take([vgpu_row(back_us)], VGPUS, back_us).rates
