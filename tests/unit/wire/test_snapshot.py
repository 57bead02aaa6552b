"""The frame format: what is written can be read, anything else is refused with a reason."""

import math
import string

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.wire import snapshot as wire
from slicewatch.wire.layout import Device, Layout, Tenant
from slicewatch.wire.snapshot import LONGEST_SECONDS, Frame, Snapshot, WireError

words = st.text(string.ascii_lowercase, min_size=1, max_size=8)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
durations = st.none() | st.floats(0, LONGEST_SECONDS)


def columns(rows):
    return st.dictionaries(words, st.lists(numbers, min_size=rows, max_size=rows), max_size=3)


@st.composite
def frames(draw):
    devices = tuple(
        draw(
            st.lists(
                st.builds(
                    Device,
                    uuid=texts,
                    gpu=st.integers(0, 15),
                    model=texts,
                    parent=texts,
                    gpu_instance=st.none() | st.integers(0, 13),
                    profile=texts,
                ),
                max_size=4,
            )
        )
    )
    tenants = tuple(
        draw(
            st.lists(
                st.builds(Tenant, device=texts, namespace=texts, pod=texts, container=texts),
                max_size=3,
            )
        )
    )
    rows = len(devices)
    layout = Layout(
        run=draw(words),
        number=draw(st.integers(0, 2**31)),
        node=draw(texts),
        window_seconds=draw(st.floats(1, 3600)),
        labels=draw(st.dictionaries(words, texts, max_size=2)),
        devices=devices,
        tenants=tenants,
        tenants_known=draw(st.booleans()),
        support=draw(st.dictionaries(words, st.tuples(*[st.none() | texts] * rows), max_size=2)),
    )
    snapshot = Snapshot(
        run=layout.run,
        layout=layout.number,
        clock=draw(durations),
        sequence=draw(st.integers(0, 2**53)),
        up=draw(st.lists(st.booleans(), min_size=rows, max_size=rows)),
        ages=draw(st.lists(durations, min_size=rows, max_size=rows)),
        values=draw(columns(rows)),
        means=draw(columns(rows)),
        tenant_values=draw(columns(len(tenants))),
        tenants_age=draw(durations),
    )
    return Frame(layout=draw(st.sampled_from([layout, None])), snapshot=snapshot)


LAYOUT = Layout(
    run="one",
    number=3,
    node="n1",
    window_seconds=30.0,
    devices=(Device(uuid="GPU-a", gpu=0, model="H100"), Device(uuid="GPU-b", gpu=1, model="H100")),
    tenants=(Tenant(device="GPU-a", namespace="ml", pod="p", container="c"),),
)
SNAPSHOT = Snapshot(run="one", layout=3, sequence=9, up=[True, False], ages=[0.1, None], values={})
FRAME = Frame(layout=LAYOUT, snapshot=SNAPSHOT)


def changed(struct, **fields):
    return msgspec.structs.replace(struct, **fields)


@given(frames())
def test_a_frame_survives_the_wire(frame):
    assert wire.decode(wire.encode(frame)) == frame


@given(frames())
def test_a_frame_is_one_line(frame):
    line = wire.encode(frame)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1


def test_whole_numbers_arrive_as_the_same_numbers():
    frame = changed(FRAME, snapshot=changed(SNAPSHOT, values={"m": [2**53, 0]}))
    assert wire.decode(wire.encode(frame)).snapshot.values == {"m": [float(2**53), 0.0]}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_arrives_as_absent(value):
    frame = changed(FRAME, snapshot=changed(SNAPSHOT, values={"m": [value, 1.0]}))
    assert wire.decode(wire.encode(frame)).snapshot.values == {"m": [None, 1.0]}


def test_the_version_travels_in_every_frame():
    """A field that equals its default may be left out; a reader would assume its own version."""
    assert msgspec.json.decode(wire.encode(FRAME))["version"] == wire.WIRE_VERSION


@pytest.mark.parametrize(
    "line",
    [
        wire.encode(changed(FRAME, version=wire.WIRE_VERSION + 1)),
        b'{"version":2,"devices":[]}',
        b'{"version":2,"snapshot":"a text in that version"}',
    ],
    ids=["same fields", "other fields", "other type"],
)
def test_a_frame_of_another_version_is_refused_as_such(line):
    with pytest.raises(WireError, match="frame of version 2; this side reads version 1"):
        wire.decode(line)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"<html>",
        b"[]",
        b"null",
        b"{}",
        b'{"snapshot":{}}',
        b'"\xff"',
        b'{"snapshot":' + b"[" * 100_000,
        wire.encode(FRAME).replace(b"[true,false]", b'["yes",0]'),
    ],
    ids=["empty", "blank", "html", "list", "null", "object", "fields", "utf-8", "deep", "types"],
)
def test_what_is_no_frame_is_refused(line):
    with pytest.raises(WireError, match="not a snapshot frame"):
        wire.decode(line)


@given(st.integers(1, len(wire.encode(FRAME)) - 2))
def test_a_truncated_line_is_refused(length):
    with pytest.raises(WireError):
        wire.decode(wire.encode(FRAME)[:length])


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_our_error(line):
    with pytest.raises(WireError):
        wire.decode(line)


MISFITS = {
    "up": changed(SNAPSHOT, up=[True]),
    "ages": changed(SNAPSHOT, ages=[0.1, 0.1, 0.1]),
    "a value": changed(SNAPSHOT, values={"gpu_up": [1.0]}),
    "a mean": changed(SNAPSHOT, means={"gpu_up": []}),
    "a value beside a sound mean": changed(
        SNAPSHOT, values={"gpu_up": [1.0]}, means={"gpu_up": [1.0, 1.0]}
    ),
    "a tenant value": changed(SNAPSHOT, tenant_values={"gpu_tenant_busy_ratio": [0.5, 0.5]}),
}


@pytest.mark.parametrize("snapshot", MISFITS.values(), ids=MISFITS)
def test_a_column_that_does_not_fit_the_rows_is_refused(snapshot):
    with pytest.raises(WireError, match="rows"):
        wire.decode(wire.encode(changed(FRAME, snapshot=snapshot)))


@pytest.mark.parametrize("seconds", [-1e9, -0.1, 1e10, 1.7e308], ids=str)
@pytest.mark.parametrize("field", ["ages", "tenants_age", "window_seconds"])
def test_a_duration_that_cannot_be_is_refused(field, seconds):
    layout, snapshot = LAYOUT, SNAPSHOT
    if field == "window_seconds":
        layout = changed(LAYOUT, window_seconds=seconds)
    else:
        snapshot = changed(SNAPSHOT, **{field: [seconds, None] if field == "ages" else seconds})
    with pytest.raises(WireError, match=f"{field}: .* is not between 0 and 1e"):
        wire.decode(wire.encode(Frame(layout=layout, snapshot=snapshot)))


def test_a_number_too_large_for_a_float_is_refused():
    line = wire.encode(FRAME).replace(b"[0.1,null]", b"[1e999,null]")
    with pytest.raises(WireError):
        wire.decode(line)


def test_reasons_that_do_not_fit_the_devices_are_refused():
    layout = changed(LAYOUT, support={"gpu_utilization": ("no samples under MIG",)})
    with pytest.raises(WireError, match="column gpu_utilization has 1 rows for 2 devices"):
        wire.decode(wire.encode(changed(FRAME, layout=layout)))


@pytest.mark.parametrize("other", [{"run": "two"}, {"layout": 4}], ids=str)
def test_a_snapshot_of_another_layout_is_refused(other):
    with pytest.raises(WireError, match="layout"):
        wire.decode(wire.encode(changed(FRAME, snapshot=changed(SNAPSHOT, **other))))


def test_columns_can_be_checked_against_a_layout_that_came_before():
    wire.check_shape(LAYOUT, SNAPSHOT)
    with pytest.raises(WireError, match="column up has 1 rows for 2 devices"):
        wire.check_shape(LAYOUT, changed(SNAPSHOT, up=[True]))


def test_fields_of_a_later_minor_change_are_passed_over():
    line = wire.encode(FRAME).replace(b'"sequence":9', b'"sequence":9,"mood":"good"')
    assert wire.decode(line) == FRAME


def test_a_mig_device_is_told_from_a_gpu_by_its_parent():
    assert not Device(uuid="GPU-a", gpu=0, model="H100").is_mig
    assert Device(uuid="MIG-a", gpu=0, model="H100", parent="GPU-a").is_mig


def test_the_same_uuid_in_another_place_is_another_device():
    device = Device(
        uuid="MIG-a", gpu=0, model="H100", parent="GPU-a", placement_start=0, placement_size=4
    )
    assert device != changed(device, placement_start=4)
