"""One suite on every ``SnapshotSource``: the fake, and streams over HTTP from a small server."""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Protocol

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from adapter.sources import discovery
from adapter.sources.exporters import Exporters
from adapter.sources.fake import FakeSource
from adapter.sources.request import PATH
from adapter.sources.source import SnapshotSource, Target
from slicewatch.service.server import Address, serving
from slicewatch.wire.layout import Layout
from slicewatch.wire.snapshot import Frame, encode
from testbed import fleet

SECONDS = 15.0


class Sender(Protocol):
    """The far end of a source: exporters that say what they are told to."""

    source: SnapshotSource

    async def add(self, name: str, node: str = "") -> Target: ...
    async def remove(self, target: Target) -> None: ...
    async def send(self, target: Target, line: bytes) -> None: ...
    async def hang_up(self, target: Target) -> None: ...


class FakeSender:
    def __init__(self) -> None:
        self.fake = FakeSource()
        self.source: SnapshotSource = self.fake

    async def add(self, name: str, node: str = "") -> Target:
        target = Target(f"http://{name}:9400")
        self.fake.want(target, node)
        return target

    async def remove(self, target: Target) -> None:
        self.fake.remove(target)

    async def send(self, target: Target, line: bytes) -> None:
        self.fake.receive(target, line)

    async def hang_up(self, target: Target) -> None:
        self.fake.disconnect(target, "hung up")


class _Exporter:
    """Holds the lines of one exporter until a stream takes them."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.opened = 0

    async def stream(self, request: web.Request) -> web.StreamResponse:
        assert request.path_qs.endswith(PATH)
        self.opened += 1
        answer = web.StreamResponse()
        await answer.prepare(request)
        while (line := await self.lines.get()) is not None:
            await answer.write(line)
        return answer


class HttpSender:
    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._exporters: dict[Target, _Exporter] = {}
        self._nodes: dict[Target, str] = {}
        self.streams = Exporters(lambda: dict(self._nodes))
        self.source: SnapshotSource = self.streams

    async def add(self, name: str, node: str = "") -> Target:  # noqa: ARG002 - its address is its name here
        exporter, app = _Exporter(), web.Application()
        app.router.add_get("/snapshot", exporter.stream)
        address = await self._stack.enter_async_context(serving(app, Address("127.0.0.1", 0)))
        target = discovery.target(str(address))
        self._exporters[target], self._nodes[target] = exporter, node
        self._stack.callback(exporter.lines.put_nowait, None)
        self.streams.wake()
        return target

    async def remove(self, target: Target) -> None:
        del self._nodes[target]
        self._exporters.pop(target).lines.put_nowait(None)
        self.streams.wake()

    async def send(self, target: Target, line: bytes) -> None:
        self._exporters[target].lines.put_nowait(line)

    async def hang_up(self, target: Target) -> None:
        self._exporters[target].lines.put_nowait(None)


@pytest.fixture(params=["fake", "http"])
async def sender(request: pytest.FixtureRequest) -> AsyncIterator[Sender]:
    if request.param == "fake":
        yield FakeSender()
        return
    async with AsyncExitStack() as stack:
        made = HttpSender(stack)
        task = asyncio.ensure_future(made.streams.run())
        try:
            yield made
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def eventually(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(SECONDS):
            while not condition():  # noqa: ASYNC110 - polls what has no event, with a deadline
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"timed out waiting for {what}")


def fault_of(sender: Sender, target: Target) -> str:
    stream = sender.source.streams.get(target)
    return "" if stream is None else stream.fault


def rows(number: int = 1, *, run: str = "run-1", node: str = "n1") -> Layout:
    return fleet.layout([fleet.gpu(0, node=node)], number=number, run=run, node=node)


def line(layout: Layout, sequence: int, *, whole: bool = False) -> bytes:
    shot = fleet.snapshot(layout, sequence=sequence)
    return encode(Frame(layout=layout if whole else None, snapshot=shot))


def sequence_of(sender: Sender, target: Target) -> Callable[[int], Callable[[], bool]]:
    def is_at(sequence: int) -> Callable[[], bool]:
        def check() -> bool:
            reading = sender.source.readings.get(target)
            return reading is not None and reading.snapshot.sequence == sequence

        return check

    return is_at


async def test_the_latest_snapshot_is_kept_with_the_layout_of_the_stream(sender: Sender) -> None:
    target = await sender.add("a")
    is_at = sequence_of(sender, target)
    before = time.monotonic()
    await sender.send(target, line(rows(), 1, whole=True))
    await sender.send(target, line(rows(), 2))
    await eventually(is_at(2), "the second snapshot")
    reading = sender.source.readings[target]
    assert reading.layout == rows()
    assert before <= reading.received_at <= time.monotonic()
    assert sender.source.streams[target].connected


async def test_a_new_layout_replaces_the_old_one(sender: Sender) -> None:
    target = await sender.add("a")
    await sender.send(target, line(rows(), 1, whole=True))
    await sender.send(target, line(rows(2), 2, whole=True))
    await sender.send(target, line(rows(2), 3))
    await eventually(sequence_of(sender, target)(3), "the third snapshot")
    assert sender.source.readings[target].layout.number == 2


async def test_a_snapshot_of_an_unknown_layout_reopens_the_stream(sender: Sender) -> None:
    target = await sender.add("a")
    is_at = sequence_of(sender, target)
    await sender.send(target, line(rows(), 1, whole=True))
    await eventually(is_at(1), "the first snapshot")
    await sender.send(target, line(rows(7), 2))
    await eventually(lambda: not sender.source.streams[target].connected, "the end of the stream")
    assert "layout 7" in sender.source.streams[target].fault
    assert is_at(1)()
    await sender.hang_up(target)
    await sender.send(target, line(rows(7), 3, whole=True))
    await eventually(is_at(3), "the reopened stream")
    assert sender.source.streams[target].connected


async def test_numbers_of_two_runs_do_not_compare(sender: Sender) -> None:
    target = await sender.add("a")
    await sender.send(target, line(rows(), 1, whole=True))
    await sender.send(target, line(rows(run="run-2"), 1))
    await eventually(lambda: "run-2" in fault_of(sender, target), "the refusal of the other run")


@pytest.mark.parametrize(
    "bad",
    [
        b"not json\n",
        b'{"snapshot":{}}\n',
        encode(fleet.frame(rows())).replace(b'"version":', b'"was":').replace(b"{", b'{"version":9,', 1),
        encode(fleet.frame(rows())).replace(b'"up":[true]', b'"up":[true,true]'),
    ],
    ids=["no-json", "no-frame", "other-version", "wrong-rows"],
)  # fmt: skip
async def test_a_bad_line_is_counted_and_the_next_good_one_is_kept(
    sender: Sender, bad: bytes
) -> None:
    target = await sender.add("a")
    await sender.send(target, line(rows(), 1, whole=True))
    await sender.send(target, bad)
    await sender.send(target, line(rows(), 2))
    await eventually(sequence_of(sender, target)(2), "the line after the bad one")
    assert sender.source.streams[target].rejected == 1


async def test_a_reading_outlives_its_stream(sender: Sender) -> None:
    target = await sender.add("a")
    is_at = sequence_of(sender, target)
    await sender.send(target, line(rows(), 1, whole=True))
    await eventually(is_at(1), "the first snapshot")
    await sender.hang_up(target)
    await eventually(lambda: not sender.source.streams[target].connected, "the lost stream")
    assert is_at(1)()
    await sender.send(target, line(rows(), 5, whole=True))
    await eventually(is_at(5), "the next stream")


async def test_a_fault_of_one_exporter_affects_no_other(sender: Sender) -> None:
    broken, good = await sender.add("a"), await sender.add("b")
    await sender.send(broken, b"{\n")
    await sender.hang_up(broken)
    await sender.send(good, line(rows(node="n2"), 1, whole=True))
    await eventually(sequence_of(sender, good)(1), "the good exporter")
    assert broken not in sender.source.readings


async def test_an_exporter_that_is_not_wanted_any_more_is_forgotten(sender: Sender) -> None:
    told: list[Target] = []
    sender.source.listen(told.append)
    target = await sender.add("a")
    await sender.send(target, line(rows(), 1, whole=True))
    await eventually(sequence_of(sender, target)(1), "the first snapshot")
    await sender.remove(target)
    await eventually(lambda: target not in sender.source.streams, "the end of it")
    assert target not in sender.source.readings
    assert told == [target, target]


async def test_an_exporter_reports_only_for_the_node_that_it_is_on(sender: Sender) -> None:
    target = await sender.add("a", "n1")
    await sender.send(target, line(rows(node="n2"), 1, whole=True))
    await eventually(
        lambda: "reports for node n2, but runs on node n1" in fault_of(sender, target),
        "the refusal",
    )
    assert target not in sender.source.readings
    assert not sender.source.streams[target].connected
    await sender.send(target, line(rows(2), 2, whole=True))
    await eventually(sequence_of(sender, target)(2), "the frame of its own node")
    assert fault_of(sender, target) == ""


async def test_an_exporter_that_claims_anothers_node_again_and_again_is_logged_once() -> None:
    async with AsyncExitStack() as stack:
        sender = HttpSender(stack)
        task = asyncio.ensure_future(sender.streams.run())
        target = await sender.add("a", "n1")
        with capture_logs() as logged:
            for number in range(10):
                await sender.send(target, line(rows(node="n2"), number, whole=True))
                await sender.send(target, line(rows(), number, whole=True))
            await eventually(sequence_of(sender, target)(9), "the last frame of its own node")
        assert [e["event"] for e in logged] == ["exporter refused", "exporter connected"]
        await sender.hang_up(target)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_the_first_exporter_of_a_node_speaks_for_it_until_its_stream_ends(
    sender: Sender,
) -> None:
    first, second = await sender.add("a"), await sender.add("b")
    await sender.send(first, line(rows(run="a"), 1, whole=True))
    await eventually(sequence_of(sender, first)(1), "the first exporter")
    with capture_logs() as logged:
        for number in (1, 2, 3):
            await sender.send(second, line(rows(run="b"), number, whole=True))
        fault = f"{second} reports for node n1, for which {first} speaks already"
        await eventually(lambda: fault_of(sender, second) == fault, "the refusal")
        assert second not in sender.source.readings
        await sender.hang_up(first)
        await eventually(lambda: not sender.source.streams[first].connected, "the lost stream")
        await sender.send(second, line(rows(run="b"), 4, whole=True))
        await eventually(sequence_of(sender, second)(4), "the second exporter")
    assert sender.source.speakers == {"n1": second}
    refused = [entry for entry in logged if entry["event"] == "exporter refused"]
    assert [entry["error"] for entry in refused] in ([], [fault])


@asynccontextmanager
async def followed(stream: Callable[..., Any]) -> AsyncIterator[tuple[Exporters, Target]]:
    """Yield a source that follows one exporter, which answers with ``stream``."""
    app = web.Application()
    app.router.add_get("/snapshot", stream)
    async with serving(app, Address("127.0.0.1", 0)) as address:
        target = discovery.target(str(address))
        source = Exporters(lambda: {target: ""})
        task = asyncio.ensure_future(source.run())
        try:
            yield source, target
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_a_flood_of_bad_lines_ends_the_stream_and_holds_nobody_up() -> None:
    opened = 0

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal opened
        opened += 1
        answer = web.StreamResponse()
        await answer.prepare(request)
        for _ in range(20):
            await answer.write(b"\n" * 500_000)
        return answer

    async with followed(flood) as (source, target):
        await eventually(lambda: opened >= 2, "a second stream")
        state = source.streams[target]
        assert state.fault == f"{target}: 5 bad lines in a row"
        # The stream that is open now may be in the midst of its five.
        assert 5 * (opened - 1) <= state.rejected <= 5 * opened


async def test_an_answer_that_is_compressed_is_not_unpacked() -> None:
    async def bomb(_: web.Request) -> web.Response:
        packed = gzip.compress(b" " * 50_000_000)
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    async with followed(bomb) as (source, target):
        await eventually(
            lambda: (
                (state := source.streams.get(target)) is not None
                and "encoded as gzip" in state.fault
            ),
            "the refusal",
        )


async def test_a_redirect_is_not_followed() -> None:
    async def elsewhere(request: web.Request) -> web.StreamResponse:
        if "there" not in request.query:
            raise web.HTTPTemporaryRedirect("/snapshot?there=1")
        return web.Response(body=line(rows(), 1, whole=True))

    async with followed(elsewhere) as (source, target):
        await eventually(
            lambda: (state := source.streams.get(target)) is not None and "307" in state.fault,
            "the refusal",
        )
        assert not source.readings


async def test_an_endless_line_is_given_up() -> None:
    async with AsyncExitStack() as stack:
        sender = HttpSender(stack)
        task = asyncio.ensure_future(sender.streams.run())
        target = await sender.add("a")
        for _ in range(40):
            await sender.send(target, b"x" * 100_000)
        await eventually(
            lambda: (
                sender.source.streams.get(target) is not None
                and "more than" in sender.source.streams[target].fault
            ),
            "the refusal of a line of 4 MB",
        )
        await sender.hang_up(target)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
