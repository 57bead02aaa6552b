"""The connections of one server: accepted, counted, and closed when they keep others out.

aiohttp takes every connection and waits two minutes for its first request; some hundred clients
that say nothing would use up all file descriptors. Here a connection has a place from the moment
it is accepted, before its TLS handshake, and one that waits makes room for one that comes. What one
may hold meanwhile is limited, too: of a request that does not end, and of an answer nobody takes.
"""

import asyncio
import contextlib
import resource
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from slicewatch.service import logs

FIRST_REQUEST_SECONDS = 10.0
# Go clients keep an idle connection for 90 s: the server has to wait longer.
NEXT_REQUEST_SECONDS = 120.0
# Scrapers give up after ten; a client that takes nothing keeps the whole answer in memory.
ANSWER_SECONDS = 30.0
MOST_CONNECTIONS = 512
# Between two words in the log about connections that had to go.
SILENCE_SECONDS = 60.0

# Users with many groups and long selectors exceed aiohttp's defaults (128 headers, 8 kB lines).
OPTIONS = {
    "access_log": None,
    "max_line_size": 65_536,
    "max_field_size": 65_536,
    "max_headers": 4_096,
    "keepalive_timeout": NEXT_REQUEST_SECONDS,
}

# The largest of all these would be 256 MB. Several thousand groups of a user fit into this.
MOST_HEAD_BYTES = 262_144
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n"

Tls = Callable[[], ssl.SSLContext | None]
"""Returns the context for the next connection; None for plain HTTP. Never waits."""

Failed = Callable[[Exception], None]
"""Told of every TLS handshake that failed, and why. Never waits."""

log = logs.logger(__name__)


def most_connections() -> int:
    """Return how many connections leave half of the file descriptors to everything else."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, soft // 2)


@dataclass(eq=False, slots=True)
class _Place:
    """The place of one connection, from its acceptance to its end."""

    close: Callable[[], object]
    served: bool = False
    deadline: asyncio.TimerHandle | None = None

    def expect(self, seconds: float) -> None:
        """Close the connection unless a request comes before."""
        self.busy()
        self.deadline = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _expire(self) -> None:
        # The way to close it may have changed since: it may have had its handshake.
        self.close()

    def busy(self) -> None:
        """A request came, or the connection ended: there is nothing to wait for."""
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None


class _Connection(web.RequestHandler):
    """aiohttp's connection, which also limits a request's head, and says what has come to its end.

    Args:
        answered: told when an answer has been handed over, but for what a client takes at once.
        ended: told when the connection is gone.
    """

    def __init__(
        self,
        server: web.Server,
        *,
        answered: Callable[["_Connection"], None],
        ended: Callable[["_Connection"], None],
    ) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **OPTIONS)  # type: ignore[arg-type]
        self._answered = answered
        self._ended = ended
        self._head_bytes = 0

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:  # what comes belongs to a request, or follows one
            self._head_bytes = 0
        before = self._request_count
        super().data_received(data)
        if self._waiter is not None and self._request_count == before:
            self._head_bytes += len(data)
        if self._head_bytes > MOST_HEAD_BYTES and self.transport is not None:
            self.transport.write(_TOO_LARGE)
            self.force_close()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        finished = await super().finish_response(request, resp, start_time)
        self._answered(self)
        return finished

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._ended(self)

    def log_exception(self, *args: object, **about: object) -> None:
        fault = about.get("exc_info")
        if isinstance(fault, HttpProcessingError):
            # Whoever sends nonsense decides how often, and its text has what was sent: passwords.
            log.debug("malformed request", fault=type(fault).__name__)
        else:
            super().log_exception(*args, **about)


def _break_off(transport: asyncio.Transport) -> None:
    """Close at once; the system, too, forgets what a client has not taken."""
    if transport.get_write_buffer_size():
        taken = transport.get_extra_info("socket")
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class Connections:
    """Accepts for one aiohttp server.

    Args:
        server: of an ``AppRunner`` that is set up; its requests are watched.
        most: how many connections there may be, handshakes included.
        failed: told of handshakes that fail.
    """

    def __init__(
        self, server: web.Server, tls: Tls, most: int, failed: Failed | None = None
    ) -> None:
        self._server = server
        self._tls = tls
        self._most = most
        self._failed = failed
        self._places: dict[web.RequestHandler, _Place] = {}
        self._log_again_at = 0.0
        handle = server.request_handler

        async def watched(request: web.BaseRequest) -> web.StreamResponse:
            with self._serving(request):
                return await handle(request)

        server.request_handler = watched

    async def accept(self, listening: socket.socket) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as entering:
            while True:
                try:
                    taken, _ = await loop.sock_accept(listening)
                except OSError as error:  # most likely no file descriptor is left
                    self._make_room()
                    self._complain("cannot accept a connection", error=str(error))
                    await asyncio.sleep(0.1)
                    continue
                if self._make_room():
                    self._admit(taken, entering)
                else:
                    taken.close()
                # Accepting does not wait while more come, but others want to run, too.
                await asyncio.sleep(0)

    def _admit(self, taken: socket.socket, entering: asyncio.TaskGroup) -> None:
        connection = _Connection(self._server, answered=self._wait_for_next, ended=self._end)
        task = entering.create_task(self._enter(taken, connection), name="handshake")
        place = self._places[connection] = _Place(close=task.cancel)
        place.expect(FIRST_REQUEST_SECONDS)
        task.add_done_callback(lambda _: self._entered(connection, taken))

    async def _enter(self, taken: socket.socket, connection: _Connection) -> None:
        tls = self._tls()
        try:
            taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, taken, ssl=tls,
                ssl_handshake_timeout=FIRST_REQUEST_SECONDS if tls else None,
            )  # fmt: skip
        except (OSError, RuntimeError) as error:  # uvloop raises the latter for one that is gone
            log.debug("connection failed before its first request", error=str(error))
            if tls is not None and self._failed is not None:
                self._failed(error)
            return
        if connection in self._places:
            self._places[connection].close = partial(_break_off, transport)

    def _entered(self, connection: _Connection, taken: socket.socket) -> None:
        """Give the place of a connection back that never came to be one."""
        if connection.transport is None:
            taken.close()
            self._end(connection)

    def _end(self, connection: web.RequestHandler) -> None:
        place = self._places.pop(connection, None)
        if place is not None:
            place.busy()

    def _make_room(self) -> bool:
        """Close a waiting connection where all places are taken; tell whether one is free.

        Those that never asked for anything go first, then those that wait the longest.
        """
        if len(self._places) < self._most:
            return True
        waiting = [item for item in self._places.items() if item[1].deadline is not None]
        self._complain("too many connections", most=self._most, waiting=len(waiting))
        if not waiting:
            return False
        connection, place = min(waiting, key=lambda item: item[1].served)
        self._end(connection)
        place.close()
        return True

    @contextlib.contextmanager
    def _serving(self, request: web.BaseRequest) -> Iterator[None]:
        connection = request.protocol
        place = self._places.pop(connection, None)
        if place is None:  # it lost its place just now
            yield
            return
        # Put at the end: the order is by the last request.
        self._places[connection] = place
        place.busy()
        try:
            yield
        finally:
            if connection in self._places:
                place.served = True
                place.expect(ANSWER_SECONDS)

    def _wait_for_next(self, connection: web.RequestHandler) -> None:
        place = self._places.get(connection)
        if place is not None and place.served:
            # aiohttp closes an idle one in good order before.
            place.expect(NEXT_REQUEST_SECONDS + FIRST_REQUEST_SECONDS)

    def _complain(self, event: str, **fields: object) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._log_again_at:
            self._log_again_at = now + SILENCE_SECONDS
            log.warning(event, **fields)
