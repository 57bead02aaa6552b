"""The record on the node holds whatever may happen: in its size, and read back as it was."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from health.case import Since
from health.checks.model import Action, CheckId
from health.decision import Fault
from health.record import RECORD_BYTES, Kept, Record, RecordError, decode, encode

names = st.text(min_size=1, max_size=12)
times = st.integers(0, 2_000_000_000).map(float)
words = st.text(max_size=60)
places = st.tuples(names, st.integers(0, 15), words)


@st.composite
def kept(draw):
    uuid, index, bus_id = draw(places)
    is_node = draw(st.booleans())
    at_seconds = draw(times)
    action = draw(st.sampled_from([Action.WARN, Action.RESET, Action.CORDON]))
    earlier = draw(st.lists(times.filter(lambda at: at < at_seconds), max_size=3, unique=True))
    raised = (*sorted(earlier), at_seconds) if action is Action.CORDON else ()
    return Kept(
        fault=Fault(
            check=CheckId(draw(names)),
            reason=draw(words),
            message=draw(words),
            action=action,
            since=Since(boot_id=draw(names), driver_run=draw(names), at_seconds=at_seconds),
            gpu="" if is_node else uuid,
            index=None if is_node else index,
            pci_bus_id="" if is_node else bus_id,
            raises=max(1, len(raised)),
        ),
        ignored=draw(st.booleans()),
        raised=raised,
    )


keys = st.tuples(names.map(CheckId), st.sampled_from(["", "GPU-a", "GPU-b", "GPU-c"]))
records = st.builds(
    Record,
    boot_id=st.text(max_size=40),
    faults=st.lists(kept(), max_size=30).map(tuple),
    past=st.dictionaries(keys, st.lists(times, min_size=1, max_size=3).map(tuple), max_size=20),
    baselines=st.dictionaries(
        keys,
        st.dictionaries(names, st.floats(allow_nan=False, allow_infinity=False), min_size=1),
        max_size=20,
    ),
    forgotten=st.sampled_from([None, *Action]),
)


@given(records)
def test_it_is_never_larger_than_an_annotation_may_be(record):
    assert len(encode(record).encode()) <= RECORD_BYTES


@given(records)
def test_no_fault_is_lost_without_a_trace_of_its_strength(record):
    read = decode(encode(record))
    lost = [one.fault.action for one in record.faults[len(read.faults) :]]
    assert not lost or read.forgotten >= max(lost)
    assert record.forgotten is None or read.forgotten >= record.forgotten


@given(records)
def test_the_first_faults_are_those_that_are_kept(record):
    read = decode(encode(record))
    told = {_identity(one) for one in record.faults[: len(read.faults)]}
    assert {_identity(one) for one in read.faults} == told


@given(records)
def test_what_was_read_is_written_the_same(record):
    once = decode(encode(record))
    assert decode(encode(once)) == once


@given(st.text() | st.binary().map(lambda raw: raw.decode(errors="replace")))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(RecordError):
        decode(text)


@given(records, st.data())
def test_a_record_with_a_hand_on_it_is_read_or_refused(record, data):
    text = encode(record)
    at = data.draw(st.integers(0, len(text) - 1))
    with contextlib.suppress(RecordError):
        decode(text[:at] + data.draw(st.sampled_from('0123456789-,[]{}"')) + text[at + 1 :])


def _identity(one):
    fault = one.fault
    return fault.check, fault.gpu, fault.action, fault.since, fault.reason, one.ignored, one.raised
