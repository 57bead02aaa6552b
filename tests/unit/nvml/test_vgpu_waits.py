"""What two reads of a scheduler's log, of which most was lost in between, say of waiting."""

from hypothesis import given
from hypothesis import strategies as st

from exporter.nvml.vgpu_waits import LONGEST_SILENCE_NS, SLACK_NS, LogEntry, WaitCursor
from slicewatch.catalog.readings.vgpu import VgpuTime

SECOND = 1_000_000_000
BEGAN = 1_800_000_000 * SECOND
WORD = 2**64
RUNNING = {7: "vgpu-a", 8: "vgpu-b"}


def entry(runlist=7, at=0.0, run=0.0, wait=0.0):
    return LogEntry(runlist, BEGAN + round(at * SECOND), round(run * SECOND), round(wait * SECOND))


def taken(*reads, running=RUNNING):
    cursor = WaitCursor()
    for entries in reads:
        reading = cursor.take(entries, running)
    return reading


def test_a_read_adds_what_the_totals_of_each_run_list_grew_by():
    reading = taken(
        [entry(at=1, run=10, wait=100), entry(8, 1, 50, 5)],
        [entry(at=2, run=10.25, wait=100.5), entry(8, 2, 50.5, 5)],
    )
    assert (reading.run_nanoseconds, reading.wait_nanoseconds) == (SECOND * 3 // 4, SECOND // 2)
    assert reading.totals == (
        VgpuTime("vgpu-a", SECOND // 4, SECOND // 2), VgpuTime("vgpu-b", SECOND // 2, 0),
    )  # fmt: skip
    assert reading.ratio() == 0.4


def test_only_the_newest_entry_of_a_run_list_counts_in_whichever_order_they_come():
    entries = [entry(at=n / 10, run=n / 20, wait=n / 20) for n in range(11)]
    forward, backward = taken([entries[0]], entries), taken([entries[0]], entries[::-1])
    assert forward == backward
    assert forward.run_nanoseconds == SECOND // 2


def test_the_same_log_twice_adds_nothing():
    log = [entry(at=1, run=0.5, wait=0.25)]
    reading = taken([entry()], log, log)
    assert (reading.run_nanoseconds, reading.ratio(), reading.rejected) == (0, None, 0)
    assert reading.totals == (VgpuTime("vgpu-a", SECOND // 2, SECOND // 4),)


def test_who_waited_long_without_running_tells_it_with_the_next_entry():
    reading = taken([entry()], [entry(8, 5)], [], [entry(at=10, run=0.1, wait=9.9)])
    assert reading.wait_nanoseconds == round(9.9 * SECOND)


def test_a_machine_that_starts_anew_hides_neither_its_later_time_nor_the_others():
    reading = taken(
        [entry(at=1, run=10, wait=10), entry(8, 1)],
        [entry(at=2, run=0.1, wait=0.1), entry(8, 2, 0.5, 0.5)],
    )
    assert (reading.accepted, reading.rejected, reading.consistent()) == (1, 1, True)
    assert reading.totals[0] == VgpuTime("vgpu-a", 0, 0)
    again = taken(
        [entry(at=1, run=10, wait=10)], [entry(at=2, run=0.1, wait=0.1)],
        [entry(at=3, run=0.6, wait=0.2)],
    )  # fmt: skip
    assert (again.run_nanoseconds, again.rejected) == (SECOND // 2, 0)


def test_a_log_whose_clock_begins_anew_is_followed_from_there():
    reading = taken(
        [entry(at=1000, run=10, wait=10)], [entry(at=1, run=1, wait=1)],
        [entry(at=2, run=1.5, wait=1.25)],
    )  # fmt: skip
    assert (reading.run_nanoseconds, reading.wait_nanoseconds) == (SECOND // 2, SECOND // 4)
    far = taken(
        [entry(at=1e6, run=10)], [entry(at=1, run=1)], [entry(at=2, run=1.5)]
    )  # fmt: skip
    assert far.run_nanoseconds == SECOND // 2


def test_counters_below_zero_are_read_as_the_driver_keeps_them():
    """The driver's own interface has the run total as a signed number, relative to others."""
    below = LogEntry(7, BEGAN, WORD - SECOND // 4, 0)
    reading = taken([below], [entry(at=1, run=0.25)])
    assert reading.run_nanoseconds == SECOND // 2


@given(
    run=st.integers(0, WORD - 1),
    wait=st.integers(0, WORD - 1),
    passed=st.integers(1, 100 * SECOND),
)
def test_no_read_adds_more_time_than_passed(run, wait, passed):
    """DCGM #83: a blank taken for a number would be five hundred years of waiting."""
    reading = taken([entry()], [LogEntry(7, BEGAN + passed, run, wait)])
    added = reading.run_nanoseconds + reading.wait_nanoseconds
    assert 0 <= added <= passed + SLACK_NS
    assert reading.ratio() is None or 0 <= reading.ratio() <= 1
    assert reading.consistent() == (reading.rejected == 0)


def test_counters_that_outrun_time_are_no_reading_at_all():
    microseconds_taken_for_less = [entry(at=1, run=500, wait=300)]
    assert not taken([entry()], microseconds_taken_for_less).consistent()


def test_run_lists_of_nobody_known_have_one_total_without_a_name():
    reading = taken(
        [entry(1), entry(2)], [entry(1, 1, 0.25, 0.5), entry(2, 1, 0.5, 0.25)], running={}
    )
    assert reading.totals == (VgpuTime("", SECOND * 3 // 4, SECOND * 3 // 4),)


def test_what_the_log_still_says_of_a_machine_that_ended_is_nobody_elses():
    cursor = WaitCursor()
    cursor.take([entry()], RUNNING)
    cursor.take([entry(at=1, run=0.5)], RUNNING)
    for _ in range(3):
        reading = cursor.take([entry(at=1.5, run=0.9)], {8: "vgpu-b"})
        assert reading.totals == ()


def test_a_machine_that_comes_back_counts_from_nothing():
    cursor = WaitCursor()
    cursor.take([entry()], RUNNING)
    cursor.take([entry(at=1, run=0.5)], RUNNING)
    cursor.take([], {})
    reading = cursor.take([entry(at=2, run=0.6)], RUNNING)
    assert reading.totals[0].run_nanoseconds == SECOND // 10


def test_who_was_silent_for_long_is_forgotten():
    silence = LONGEST_SILENCE_NS / SECOND
    cursor = WaitCursor()
    cursor.take([entry()], RUNNING)
    cursor.take([entry(8, silence + 1)], RUNNING)
    reading = cursor.take([entry(at=silence + 2, run=1)], RUNNING)
    assert (reading.run_nanoseconds, reading.accepted, reading.rejected) == (0, 0, 0)


shares = st.tuples(st.floats(0, 1), st.floats(0, 1)).filter(lambda pair: sum(pair) <= 1)


@given(st.lists(st.tuples(shares, st.integers(1, 20)), min_size=1, max_size=20))
def test_however_often_the_log_is_read_the_totals_are_the_same(stretches):
    """One entry per stretch; some are read one by one, all else in one go."""
    entries, at, run, wait = [entry()], 0.0, 0.0, 0.0
    for (running, waiting), seconds in stretches:
        at, run, wait = at + seconds, run + running * seconds, wait + waiting * seconds
        entries.append(entry(at=at, run=run, wait=wait))
    one_by_one = taken(*([one] for one in entries))
    in_one_go = taken([entries[0]], entries)
    assert one_by_one.totals == in_one_go.totals
