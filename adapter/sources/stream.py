"""One exporter's stream: opened, read line by line, opened again. ``follow`` is one life of it."""

import asyncio
import time
from http import HTTPStatus
from typing import Final

import aiohttp
import structlog
from aiohttp.http_exceptions import HttpProcessingError

from adapter.sources.assembly import Assembly, UnknownLayoutError
from adapter.sources.board import Board
from adapter.sources.protocol import Target
from slicewatch.kube.backoff import Backoff
from slicewatch.wire.snapshot import WireError, decode

log = structlog.get_logger(__name__)

PATH: Final = "/snapshot?watch=true"
CONNECT_SECONDS: Final = 5.0
# An exporter sends a line each second or two; one that says nothing for so long is gone.
SILENCE_SECONDS: Final = 15.0
# aiohttp refuses lines of more than twice this. A node of 16 GPUs, each in 7 parts with tenants,
# is some 100 kB.
BUFFER_BYTES: Final = 1 << 20

# A line that is too long is an error of HTTP to aiohttp, but none of its client's errors.
_FAILURES: Final = (aiohttp.ClientError, HttpProcessingError, TimeoutError, OSError, ValueError)


class StreamError(Exception):
    """The stream of an exporter ended or never began; says why."""


def session() -> aiohttp.ClientSession:
    """Return a client for any number of streams, each on a connection of its own."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS
        ),
        read_bufsize=BUFFER_BYTES,
        headers={
            "Accept": "application/x-ndjson, application/json",
            "Accept-Encoding": "identity",
        },
    )


class ExporterStream:
    """Publishes what one exporter sends, for as long as it is wanted."""

    def __init__(
        self,
        target: Target,
        board: Board,
        client: aiohttp.ClientSession,
        backoff: Backoff | None = None,
    ) -> None:
        self.target = target
        self._board = board
        self._client = client
        self._waits = backoff or Backoff(first_seconds=0.25, most_seconds=15.0)
        self._state = board.want(target)
        self._told: set[str] = set()

    async def run(self) -> None:
        """Follow the stream until cancelled, through every fault of the exporter."""
        while True:
            try:
                await self.follow()
            except StreamError as error:
                self._lost(str(error))
            await asyncio.sleep(self._waits.next_seconds())

    async def follow(self) -> None:
        """Open the stream and publish its readings until it ends.

        Raises:
            StreamError: it ended, for whatever reason.
        """
        try:
            async with self._client.get(self.target + PATH) as answer:
                if answer.status != HTTPStatus.OK:
                    raise StreamError(f"GET {self.target}{PATH}: {answer.status} {answer.reason}")
                await self._read(answer.content)
        except _FAILURES as error:
            reason = str(error) or f"no line for {SILENCE_SECONDS:g} s"
            raise StreamError(f"{self.target}: {reason}") from error
        except UnknownLayoutError as error:
            raise StreamError(f"{self.target}: {error}") from error
        raise StreamError(f"{self.target}: the exporter ended the stream")

    async def _read(self, lines: aiohttp.StreamReader) -> None:
        assembly = Assembly()
        number = 0
        async for line in lines:
            number += 1
            try:
                reading = assembly.take(decode(line), time.monotonic())
            except WireError as error:
                self._reject(number, error)
                continue
            if not self._state.connected:
                self._opened()
            self._board.publish(self.target, reading)

    def _opened(self) -> None:
        self._state.connected, self._state.tried, self._state.fault = True, True, ""
        self._state.changed_at = time.monotonic()
        self._waits.reset()
        log.info("exporter connected", exporter=self.target)

    def _lost(self, fault: str) -> None:
        if self._state.connected or not self._state.tried:
            log.warning("exporter lost", exporter=self.target, error=fault)
            self._state.changed_at = time.monotonic()
        self._state.connected, self._state.tried, self._state.fault = False, True, fault

    def _reject(self, line: int, error: WireError) -> None:
        """Count a bad line; say each kind of badness once, since it comes back every tick."""
        self._state.rejected += 1
        if str(error) not in self._told and len(self._told) < 20:
            self._told.add(str(error))
            log.warning("bad frame", exporter=self.target, line=line, error=str(error))
