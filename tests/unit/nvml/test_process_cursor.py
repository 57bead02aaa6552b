"""The cursor over what the driver says that processes kept busy."""

from hypothesis import given
from hypothesis import strategies as st

from exporter.nvml.samples import AHEAD_US, CursorsByGpu, ProcessCursor
from slicewatch.catalog.readings.processes import LONGEST_SPAN_US, ProcessShare

NOW_US = 1_800_000_000_000_000
SECOND_US = 1_000_000
# What a driver leaves in entries that it did not write, and blanks of other libraries.
WORDS = st.sampled_from([0, 1, 100, 101, 37_100, 0x7FFFFFF0, 2**32 - 1])
STAMPS = st.one_of(
    st.sampled_from([0, 1, 2**63, 2**64 - 1]),
    st.integers(NOW_US - 10 * SECOND_US, NOW_US + 5 * SECOND_US),
)


def read_at(at_us):
    """Return a cursor that was read once."""
    cursor = ProcessCursor()
    cursor.take([], at_us)
    return cursor


def test_the_first_read_asks_for_nothing_of_the_time_before():
    cursor = ProcessCursor()
    assert cursor.since_us(NOW_US) == NOW_US
    assert cursor.take([], NOW_US).covered_us() == 0


def test_each_read_asks_from_where_the_one_before_ended():
    """nvtop PR #91: with 0 the driver hands out its whole buffer each time."""
    cursor = read_at(NOW_US)
    for second in range(1, 5):
        now_us = NOW_US + second * SECOND_US
        assert cursor.since_us(now_us) == now_us - SECOND_US
        reading = cursor.take([(7, now_us, 40)], now_us)
        assert reading.shares == (ProcessShare(7, now_us, 40),)
        assert (reading.since_us, reading.until_us) == (now_us - SECOND_US, now_us)


def test_entries_that_nobody_wrote_are_dropped_and_counted():
    """nvtop #110: a hundred entries, three of garbage and the rest of zeros."""
    garbage = [(0, 0, 37_100), (4711, 0, 30), (0, NOW_US + SECOND_US, 12)]
    reading = read_at(NOW_US).take([*garbage, *[(0, 0, 0)] * 97], NOW_US + SECOND_US)
    assert reading.shares == ()
    assert reading.rejected == 100
    assert reading.covered_us() == SECOND_US


def test_a_blank_is_no_percentage():
    """DCGM #83: 2147483632 is how another library says that it does not know."""
    reading = read_at(NOW_US).take([(7, NOW_US + 1, 2_147_483_632)], NOW_US + SECOND_US)
    assert (reading.shares, reading.rejected) == ((), 1)


def test_percentages_end_at_100():
    entries = [(pid, NOW_US + 1, percent) for pid, percent in ((1, 0), (2, 100), (3, 101))]
    reading = read_at(NOW_US).take(entries, NOW_US + SECOND_US)
    assert [share.pid for share in reading.shares] == [1, 2]


def test_samples_from_before_the_span_are_not_counted_again():
    """go-nvml #51: one answer had samples of up to nine seconds ago."""
    entries = [(1, NOW_US - 9 * SECOND_US, 80), (2, NOW_US, 70), (3, NOW_US + 1, 60)]
    reading = read_at(NOW_US).take(entries, NOW_US + SECOND_US)
    assert [share.pid for share in reading.shares] == [3]


def test_a_stamp_a_little_ahead_is_that_of_a_sample_and_one_far_ahead_is_not():
    entries = [(1, NOW_US + AHEAD_US, 10), (2, NOW_US + AHEAD_US + 1, 10)]
    reading = read_at(NOW_US - SECOND_US).take(entries, NOW_US)
    assert [share.pid for share in reading.shares] == [1]


def test_after_the_clock_was_set_back_a_new_span_begins():
    cursor = read_at(NOW_US)
    before = NOW_US - 3600 * SECOND_US
    assert cursor.since_us(before) == before
    assert cursor.take([], before).since_us is None
    assert cursor.take([], before + SECOND_US).covered_us() == SECOND_US


def test_a_span_that_the_drivers_ring_cannot_hold_covers_nothing():
    for span, covered in ((LONGEST_SPAN_US, LONGEST_SPAN_US), (LONGEST_SPAN_US + 1, 0)):
        assert read_at(NOW_US).take([], NOW_US + span).covered_us() == covered


def test_each_gpu_keeps_its_own_place():
    cursors = CursorsByGpu()
    cursors.of("a").processes.take([], NOW_US)
    assert cursors.of("a").processes.since_us(NOW_US + 1) == NOW_US
    assert cursors.of("b").processes.since_us(NOW_US + 1) == NOW_US + 1


@given(st.lists(st.tuples(WORDS, STAMPS, WORDS), max_size=40))
def test_whatever_the_driver_left_there_no_share_can_be_untrue(entries):
    reading = read_at(NOW_US - SECOND_US).take(entries, NOW_US)
    assert len(reading.shares) + reading.rejected == len(entries)
    for share in reading.shares:
        assert share.pid > 0
        assert 0 <= share.percent <= 100
        assert NOW_US - SECOND_US < share.at_us <= NOW_US + AHEAD_US
