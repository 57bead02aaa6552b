"""Records of /dev/kmsg: what the kernel promises of them, and whatever else may come."""

from hypothesis import example, given
from hypothesis import strategies as st

from exporter.kernel_log.record import KERNEL, Record, records


def test_a_record_has_its_sequence_and_its_time_since_boot():
    chunk = b"4,5354,32624937477,-;NVRM: loading\n"
    assert list(records(chunk)) == [
        Record(facility=KERNEL, sequence=5354, at_seconds=32624.937477, text="NVRM: loading")
    ]


def test_what_another_than_the_kernel_wrote_has_another_facility():
    """Whoever may write to the file may write NVRM: Xid as well."""
    (record,) = records(b"12,7,1,-;NVRM: Xid (PCI:0000:01:00): 79\n")
    assert record.facility == 1


def test_properties_of_a_record_and_fields_of_later_kernels_are_left_out():
    chunk = b"6,1,2,-,caller=T17,more=x;one; two\n SUBSYSTEM=pci\n DEVICE=+pci:0000:01:00.0\n"
    assert [record.text for record in records(chunk)] == ["one; two"]


def test_a_pipe_may_hand_over_several_records_at_once():
    assert [r.sequence for r in records(b"6,1,2,-;a\n K=v\n6,2,3,c;b\n6,3,4,+;c")] == [1, 2, 3]


def test_bytes_that_are_no_text_come_as_text():
    (record,) = records(b"6,1,2,-;\xff\xfe \xc3\xa4")
    assert record.text == "\\xff\\xfe ä"


@given(st.binary(max_size=200))
@example(b"6,1,2")
@example(b"6,1;x")
@example(b"6,-1,2,-;x")
@example(b"\xb2,1,2,-;x")
@example(b"6,1,999999999999999999999999,-;x")
@example(b",,,;")
def test_whatever_comes_nothing_raises(chunk):
    for record in records(chunk):
        assert "\n" not in record.text
        assert record.at_seconds >= 0


@given(
    priority=st.integers(0, 200),
    sequence=st.integers(0, 2**64 - 1),
    microseconds=st.integers(0, 2**63),
    text=st.text(st.characters(codec="ascii", exclude_characters="\n")),
)
def test_what_the_kernel_writes_is_read(priority, sequence, microseconds, text):
    chunk = f"{priority},{sequence},{microseconds},-;{text}\n".encode()
    (record,) = records(chunk)
    assert (record.facility, record.sequence, record.text) == (priority >> 3, sequence, text)
    assert record.at_seconds == microseconds / 1e6
