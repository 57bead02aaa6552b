"""Lines that pile up: what a later one replaces is left out, and nothing else is."""

import asyncio

from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol

from adapter.cluster.pods import Pods
from adapter.sources.fake import FakeSource
from adapter.sources.source import Target
from adapter.sources.stream import _current
from adapter.view import View
from slicewatch.service.lines import batches
from slicewatch.wire.snapshot import Frame, encode
from testbed import fleet

LAYOUT = fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", "a")])


def line(sequence: int, *, layout: bool = False) -> bytes:
    shot = fleet.snapshot(LAYOUT, {"gpu_utilization": [50.0]}, sequence=sequence)
    return encode(Frame(layout=LAYOUT if layout else None, snapshot=shot)).strip()


def test_of_lines_that_came_together_only_the_latest_values_are_taken() -> None:
    assert list(_current([line(1), line(2), line(3)])) == [line(3)]


def test_layouts_and_whatever_is_not_understood_are_never_left_out() -> None:
    batch = [line(1, layout=True), line(2), b"nonsense", b'{"version":2}', line(3)]
    assert list(_current(batch)) == [batch[0], *batch[2:]]


async def test_lines_that_are_complete_together_come_as_one_batch_however_they_are_cut() -> None:
    content = StreamReader(BaseProtocol(asyncio.get_running_loop()), 1 << 16)
    pieces = [b"fir", b"st\nsecond\nth", b"ird\n", b"rest"]
    found = []
    reader = batches(content, 100)
    for piece in pieces:
        content.feed_data(piece)
        if b"\n" in piece:
            found.append(await anext(reader))
    assert found == [[b"first", b"second"], [b"third"]]


def test_a_view_lets_go_of_a_reading_that_has_been_replaced_and_keeps_who_holds_what() -> None:
    source = FakeSource()
    view = View(Pods(), source, max_age_seconds=15)
    target = Target("http://n1")
    source.receive(target, line(1, layout=True))
    before = view.node("n1")
    source.receive(target, line(2))
    assert view._views == {}
    after = view.node("n1")
    assert before is not None
    assert after is not None
    assert after.join.snapshot.sequence == 2
    assert after.join.allocation is before.join.allocation
