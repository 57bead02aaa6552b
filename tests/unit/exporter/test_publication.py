"""What is published: made once, when asked for; never older than it looks."""

import asyncio
import gzip

import pytest

from exporter.publication import Publication
from slicewatch.catalog import CATALOG
from slicewatch.service.exposition import Format
from slicewatch.wire.layout import Device, Layout
from slicewatch.wire.snapshot import Snapshot, decode

LAYOUT = Layout(
    run="r", number=1, node="n", window_seconds=15,
    devices=(Device(uuid="GPU-0", gpu=0, model="m"),),
)  # fmt: skip


def snapshot(sequence, layout=1, power=300.0):
    return Snapshot(
        run="r", layout=layout, sequence=sequence, up=[True], ages=[0.5],
        values={"gpu_power_usage_watts": [power]},
    )  # fmt: skip


class Counted:
    """Stands for the metrics about ourselves, and counts how often it is rendered."""

    def __init__(self):
        self.calls = []

    def __call__(self, form):
        self.calls.append(form)
        return b"own 1\n"


@pytest.fixture
def own():
    return Counted()


@pytest.fixture
def publication(own, hand):
    return Publication(CATALOG.metrics, own, clock=hand)


def test_before_the_first_snapshot_only_we_speak_of_ourselves(publication):
    assert publication.exposition(Format.TEXT, compressed=False) == b"own 1\n"
    assert publication.frame_now() == b""
    assert publication.line(with_layout=True) == b""


def test_each_format_and_encoding_is_rendered_once_for_a_snapshot(publication, own):
    publication.publish(LAYOUT, snapshot(1))
    first = {
        (form, compressed): publication.exposition(form, compressed=compressed)
        for form in Format
        for compressed in (True, False)
    }
    assert own.calls == list(Format)
    for (form, compressed), body in first.items():
        assert publication.exposition(form, compressed=compressed) is body
    assert own.calls == list(Format)
    publication.publish(LAYOUT, snapshot(2, power=301.0))
    assert b" 301.0\n" in publication.exposition(Format.TEXT, compressed=False)
    assert own.calls == [*Format, Format.TEXT]


def test_nothing_is_rendered_that_nobody_asks_for(publication, own):
    for sequence in range(1, 20):
        publication.publish(LAYOUT, snapshot(sequence))
    assert own.calls == []


@pytest.mark.parametrize("form", Format, ids=lambda form: form.name)
def test_the_compressed_page_is_the_plain_one(publication, form):
    publication.publish(LAYOUT, snapshot(1))
    compressed = publication.exposition(form, compressed=True)
    assert gzip.decompress(compressed) == publication.exposition(form, compressed=False)


def test_when_snapshots_stop_the_page_is_made_anew_so_that_its_age_is_true(publication, own, hand):
    publication.publish(LAYOUT, snapshot(1))
    publication.exposition(Format.TEXT, compressed=False)
    hand.now += 0.9
    publication.exposition(Format.TEXT, compressed=False)
    assert len(own.calls) == 1
    hand.now += 0.2
    publication.exposition(Format.TEXT, compressed=False)
    assert len(own.calls) == 2
    assert publication.age_seconds() == pytest.approx(1.1)


def test_a_new_layout_gets_a_new_page(publication):
    publication.publish(LAYOUT, snapshot(1))
    publication.exposition(Format.TEXT, compressed=False)
    other = Layout(
        run="r", number=2, node="n", window_seconds=15,
        devices=(Device(uuid="GPU-9", gpu=0, model="m"),),
    )  # fmt: skip
    publication.publish(other, snapshot(2, layout=2))
    page = publication.exposition(Format.TEXT, compressed=False)
    assert b'uuid="GPU-9"' in page
    assert b'uuid="GPU-0"' not in page


def test_a_frame_has_its_layout_and_the_ages_of_this_moment(publication, hand):
    publication.publish(LAYOUT, snapshot(1))
    hand.now += 2
    frame = decode(publication.frame_now())
    assert frame.layout == LAYOUT
    assert frame.snapshot.ages == [2.5]


def test_a_line_is_encoded_once_for_all_readers_and_has_its_layout_on_demand(publication):
    publication.publish(LAYOUT, snapshot(1))
    line = publication.line(with_layout=False)
    assert publication.line(with_layout=False) is line
    assert decode(line).layout is None
    assert decode(publication.line(with_layout=True)).layout == LAYOUT
    publication.publish(LAYOUT, snapshot(2))
    assert decode(publication.line(with_layout=False)).snapshot.sequence == 2


async def test_everyone_who_waits_is_woken_by_the_next_snapshot(publication):
    woken = []

    async def reader(number):
        await publication.wait()
        woken.append((number, publication.snapshot.sequence))

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(reader(number))
        await asyncio.sleep(0)
        publication.publish(LAYOUT, snapshot(1))
    assert sorted(woken) == [(0, 1), (1, 1), (2, 1)]
