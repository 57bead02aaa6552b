"""The ring of events: no reader misses one without being told."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from exporter.nvml.event_log import EventLog
from exporter.nvml.protocol import Event, EventKind

GPU = "GPU-1"


def xid(number):
    return Event(kind=EventKind.XID, gpu=GPU, data=number)


def log(kept=4):
    return EventLog(kept=kept, wall=lambda: 1000.0, monotonic=lambda: 5.0)


def data(recent):
    return [happened.event.data for happened in recent.events]


def test_events_are_numbered_and_have_both_times():
    events = log()
    events.add((xid(62), xid(45)))
    recent = events.after(0)
    assert [(h.number, h.at_seconds, h.at_monotonic_seconds) for h in recent.events] == [
        (1, 1000.0, 5.0),
        (2, 1000.0, 5.0),
    ]
    assert (recent.missed, recent.newest) == (0, 2)


def test_a_reader_gets_what_came_since_the_number_that_it_was_given():
    events = log()
    events.add((xid(1), xid(2)))
    newest = events.after(0).newest
    assert events.after(newest).events == ()
    events.add((xid(3),))
    assert data(events.after(newest)) == [3]


def test_who_comes_too_late_is_told_how_much_is_no_longer_kept():
    events = log(kept=2)
    events.add(tuple(map(xid, range(1, 6))))
    recent = events.after(1)
    assert (data(recent), recent.missed, recent.newest) == ([4, 5], 2, 5)


def test_a_number_of_an_earlier_life_counts_for_the_beginning():
    events = log()
    events.add((xid(1),))
    for number in (77, -1):
        assert data(events.after(number)) == [1]


@given(st.lists(st.one_of(st.integers(1, 9), st.none()), max_size=60), st.integers(1, 8))
def test_however_writing_and_reading_alternate_each_event_is_read_or_missed(steps, kept):
    events = log(kept=kept)
    written, read, missed, number = 0, [], 0, 0
    for step in [*steps, None]:
        if step is not None:
            events.add(tuple(xid(written + i + 1) for i in range(step)))
            written += step
            continue
        recent = events.after(number)
        number = recent.newest
        missed += recent.missed
        read += [happened.number for happened in recent.events]
    assert read == sorted(set(read))
    assert len(read) + missed == written


def test_events_of_several_threads_are_all_kept_under_numbers_of_their_own():
    events = log(kept=4000)
    threads = [
        threading.Thread(target=lambda: [events.add((xid(1),)) for _ in range(500)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [h.number for h in events.after(0).events] == list(range(1, 2001))


def test_what_was_listened_to_stays_known_and_the_same_object_until_it_changes():
    events = log()
    events.listen({GPU: frozenset({EventKind.XID})})
    known = events.kinds
    events.listen({GPU: frozenset({EventKind.XID})})
    events.listen({})
    assert events.kinds is known
    events.listen({"GPU-2": frozenset({EventKind.XID}), GPU: frozenset()})
    assert dict(events.kinds) == dict.fromkeys((GPU, "GPU-2"), frozenset({EventKind.XID}))
