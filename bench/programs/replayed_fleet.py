"""The streams of thousands of exporters from one process: prepared bytes, and the present moment.

Lines are whole ones, of the size of a real node's, all values new with each; only the moment is
written into them as they are sent: as the sender's clock, and as the value of one metric, by which
a reader of the metrics API sees how old what it gets is. Nodes tick once a second, each at its own
moment of it. Every node has a loopback address of its own, by which it is known.
"""

import asyncio
import random
import socket
import sys
import time
from collections.abc import Collection
from http import HTTPStatus
from typing import Final, cast
from urllib.parse import parse_qs, urlsplit

import msgspec
import uvloop

from bench import grid
from bench.programs.exporter_fleet import layout_of, snapshot
from slicewatch.service.tasks import background
from slicewatch.wire.snapshot import Frame, encode, narrowed

VARIANTS: Final = 16
PAUSE_SECONDS: Final = 0.002
# A connection that holds more than this has not been read for ticks: it gets no further ones.
MOST_WAITING_BYTES: Final = 1 << 16
BACKLOG: Final = 4096
# Stands for the moment; the same number as a float of Python and in JSON.
_MARK: Final = 4242424242.25
_HEAD: Final = (
    f"HTTP/1.1 {HTTPStatus.OK} OK\r\nContent-Type: application/x-ndjson\r\n"
    "Transfer-Encoding: chunked\r\n\r\n"
).encode()


class Lines:
    """The lines of all nodes, in parts between which the moment belongs.

    Args:
        families: those that the reader asks for.
    """

    def __init__(self, nodes: int, families: Collection[str]) -> None:
        dice = random.Random(0)  # noqa: S311 - values of a benchmark, the same in every run
        self._nodes = nodes
        made = [narrowed(snapshot(number, dice), families) for number in range(VARIANTS)]
        self._snapshots = [
            msgspec.structs.replace(
                one, clock=_MARK,
                values=one.values | {grid.STAMPED: [_MARK] * len(one.up)},
                means={k: column for k, column in one.means.items() if k != grid.STAMPED},
            )
            for one in made
        ]  # fmt: skip
        self._parts = [_parts(Frame(snapshot=one)) for one in self._snapshots]

    def first(self, node: int) -> bytes:
        """Return the line with which a node's stream begins."""
        layout = layout_of(node, grid.pods_on(node, self._nodes))
        return _chunk(_parts(Frame(layout=layout, snapshot=self._snapshots[0])))

    def next(self, number: int) -> bytes:
        """Return a further line."""
        return _chunk(self._parts[number % VARIANTS])


def _parts(frame: Frame) -> list[bytes]:
    return encode(frame).split(str(_MARK).encode())


def _chunk(parts: list[bytes]) -> bytes:
    line = (b"%.6f" % time.monotonic()).join(parts)
    return b"%x\r\n%b\r\n" % (len(line), line)


class Connection(asyncio.Protocol):
    """One reader of one node: a request, then a stream without an end."""

    def __init__(self, fleet: "Fleet") -> None:
        self._fleet = fleet
        self._asked = b""
        self._node = -1
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note whose address it was that the reader came to."""
        self._transport = cast("asyncio.Transport", transport)
        host, _ = transport.get_extra_info("sockname")
        self._node = grid.node_at(host)

    def data_received(self, data: bytes) -> None:
        """Begin the stream once the request is complete."""
        self._asked += data
        if self._asked.endswith(b"\r\n\r\n") and self._transport is not None:
            lines = self._fleet.asked_for(self._asked)
            self._transport.write(_HEAD + lines.first(self._node))
            self._fleet.readers[self._node] = self._transport

    def connection_lost(self, _: Exception | None) -> None:
        """Send no more."""
        if self._fleet.readers.get(self._node) is self._transport:
            del self._fleet.readers[self._node]


class Fleet:
    """All nodes, and whoever reads each."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self._lines: Lines | None = None
        self.readers: dict[int, asyncio.Transport] = {}

    def asked_for(self, request: bytes) -> Lines:
        """Return the lines that a request is for; all readers ask for the same families."""
        if self._lines is None:
            query = parse_qs(urlsplit(request.split(b" ")[1].decode()).query)
            self._lines = Lines(self.nodes, query["families"][0].split(","))
        return self._lines

    async def run(self) -> None:
        """Send each node's line at its moment of each second, until cancelled."""
        began, sent = time.monotonic(), 0
        while True:
            due = int((time.monotonic() - began) * self.nodes)
            for number in range(sent, due):
                self._send(number)
            sent = due
            await asyncio.sleep(PAUSE_SECONDS)

    def _send(self, number: int) -> None:
        reader = self.readers.get(number % self.nodes)
        if self._lines is None or reader is None:
            return
        if reader.get_write_buffer_size() < MOST_WAITING_BYTES:
            reader.write(self._lines.next(number))


def listening(port: int) -> socket.socket:
    """Return a socket for all of loopback's addresses, and for no other network."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    opened.bind(("0.0.0.0", port))
    opened.listen(BACKLOG)
    return opened


async def serve(port: int, nodes: int) -> None:
    """Serve until standard input ends, which it does with whoever started this."""
    fleet = Fleet(nodes)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(fleet), sock=listening(port), backlog=BACKLOG
    )
    try:
        async with background(("ticks", fleet.run())):
            await asyncio.to_thread(sys.stdin.buffer.read)
    finally:
        server.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1]), int(sys.argv[2])))
