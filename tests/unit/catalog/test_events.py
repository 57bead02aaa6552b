"""How events add up: by number, within bounds, never down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.catalog import CATALOG
from slicewatch.catalog.readings.events import MOST_NUMBERS, DeviceEvents

ALL = CATALOG["gpu_xid_events_total"]
BY_NUMBER = CATALOG["gpu_xid_errors_total"]
LAST_SEEN = CATALOG["gpu_xid_last_seen_timestamp_seconds"]
ECC = CATALOG["gpu_ecc_events_total"]


def counted(*xids, at=0.0):
    events = DeviceEvents(xids={})
    for number in xids:
        events = events.with_xid(number, at)
    return events


def test_before_anything_happened_the_total_is_0_and_no_number_has_a_series():
    assert ALL.value(counted()) == 0
    assert BY_NUMBER.value(counted()) == {}


def test_what_is_not_listened_to_is_absent():
    assert ALL.value(DeviceEvents()) is None
    assert ECC.value(DeviceEvents()) is None


def test_each_number_counts_for_itself_and_has_the_time_it_was_last_seen():
    events = counted(62, 45, at=10.0).with_xid(45, 20.0)
    assert BY_NUMBER.value(events) == {"62": 1, "45": 2}
    assert LAST_SEEN.value(events) == {"62": 10.0, "45": 20.0}
    assert ALL.value(events) == 3


@pytest.mark.parametrize("data", [0, 999, 1000, 2**32 - 1, 2**64 - 1])
def test_what_is_no_xid_is_counted_as_unknown(data):
    assert BY_NUMBER.value(counted(data)) == {"unknown": 1}


def test_after_so_many_numbers_what_comes_is_counted_together():
    events = counted(*range(1, 101))
    by_number = BY_NUMBER.value(events)
    assert len(by_number) == MOST_NUMBERS + 1
    assert by_number["other"] == 100 - MOST_NUMBERS
    assert BY_NUMBER.value(events.with_xid(1, 0.0))["1"] == 2


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_every_xid_is_counted_exactly_once(xids):
    events = counted(*xids)
    assert ALL.value(events) == len(xids) == sum(BY_NUMBER.value(events).values())


def test_events_of_memory_errors_count_by_kind():
    events = DeviceEvents(ecc={"corrected": 0, "uncorrected": 0})
    assert ECC.value(events.with_ecc("uncorrected")) == {
        "corrected": 0, "uncorrected": 1,
    }  # fmt: skip
