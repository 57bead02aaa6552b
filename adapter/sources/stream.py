"""One exporter's stream: opened, read line by line, reopened. ``follow`` is a single pass."""

import asyncio
import math
import ssl
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from adapter.sources.assembly import Assembly, UnknownLayoutError
from adapter.sources.credentials import Credentials
from adapter.sources.entry import Entry
from adapter.sources.request import PATH, RESOURCE
from adapter.sources.source import (
    Reading,
    SnapshotSource,
    StreamFault,
    Target,
    WrongNodeError,
)
from slicewatch.service import logs
from slicewatch.service.backoff import Backoff
from slicewatch.service.lines import batches
from slicewatch.wire.snapshot import WireError, only_values

log = logs.logger(__name__)

CONNECT_SECONDS: Final = 5.0
# From the connection to the first byte of the answer, which an exporter sends at once.
OPEN_SECONDS: Final = 10.0
# An exporter sends a line every second or two; one that is silent for this long is gone.
SILENCE_SECONDS: Final = 15.0
# A node of 16 GPUs, each split into 7 MIG devices with tenants, takes about 100 kB.
LONGEST_LINE_BYTES: Final = 2 << 20
# A stream that ends sooner is no sign of an exporter that works: it is opened less and less often.
STEADY_SECONDS: Final = 15.0
MOST_BAD_LINES: Final = 5
MOST_LOGGED: Final = 20
MOST_SAID: Final = 200

# aiohttp reports malformed answers as HTTP errors that are not among its client errors.
_FAILURES: Final = (aiohttp.ClientError, HttpProcessingError, TimeoutError, OSError, ValueError)


class StreamError(Exception):
    """The stream of an exporter ended or could not be opened; says why."""

    def __init__(self, message: str, fault: StreamFault) -> None:
        super().__init__(message)
        self.fault = fault


def session() -> aiohttp.ClientSession:
    """Return a client for any number of streams, each on its own connection."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS
        ),
        auto_decompress=False,
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
        source: SnapshotSource,
        client: aiohttp.ClientSession,
        credentials: Credentials,
        entry: Entry,
    ) -> None:
        self.target = target
        self._source = source
        self._client = client
        self._credentials = credentials
        self._entry = entry
        # All streams may have ended at one moment: the first wait is spread over half a second.
        self._waits = Backoff(first_seconds=1.0, most_seconds=15.0)
        self._failing = False
        self._opened_at = math.inf
        self._state = source.want(target)
        self._logged: set[str] = set()

    async def run(self) -> None:
        """Follow the stream until cancelled, whatever goes wrong at the exporter."""
        while True:
            try:
                await self.follow()
            except StreamError as error:
                self._lost(error)
            await asyncio.sleep(self._waits.next_seconds())

    async def follow(self) -> None:
        """Open the stream and publish its readings until it ends.

        Raises:
            StreamError: it ended or could not be opened, for whatever reason.
        """
        try:
            async with await self._open() as answer:
                await self._check(answer)
                await self._read(answer.content)
        except _FAILURES as error:
            silent = isinstance(error, TimeoutError)
            reason = f"no line for {SILENCE_SECONDS:g} s" if silent else str(error)
            raise StreamError(f"{self.target}: {reason}", _fault(error)) from error
        except UnknownLayoutError as error:
            raise StreamError(f"{self.target}: {error}", StreamFault.LAYOUT) from error
        raise StreamError(f"{self.target}: the exporter ended the stream", StreamFault.ENDED)

    async def _open(self) -> aiohttp.ClientResponse:
        url, options = self.target + PATH, self._credentials.options
        async with self._entry.lane(failing=self._failing):
            try:
                async with asyncio.timeout(OPEN_SECONDS):
                    return await self._client.get(url, allow_redirects=False, **options)
            except TimeoutError as error:
                reason = str(error) or f"no answer within {OPEN_SECONDS:g} s"
                raise StreamError(f"{self.target}: {reason}", StreamFault.CONNECT) from error

    async def _read(self, content: aiohttp.StreamReader) -> None:
        """Publish line after line. One that takes too long ends the stream, byte by byte or not."""
        now = asyncio.get_running_loop().time
        async with asyncio.timeout(SILENCE_SECONDS) as silence:
            await self._take(content, lambda: silence.reschedule(now() + SILENCE_SECONDS))

    async def _take(self, content: aiohttp.StreamReader, heard: Callable[[], None]) -> None:
        assembly = Assembly()
        number = bad = 0
        async for batch in batches(content, LONGEST_LINE_BYTES):
            heard()
            for line in _current(batch):
                await asyncio.sleep(0)  # Lines that are here already would be taken at one go.
                number += 1
                try:
                    reading = assembly.take(line, time.monotonic())
                except WireError as error:
                    self._reject(number, error)
                    bad += 1
                    if bad == MOST_BAD_LINES:
                        raise StreamError(
                            f"{self.target}: {bad} bad lines in a row", StreamFault.GARBAGE
                        ) from error
                    continue
                bad = 0
                self._publish(reading)

    async def _check(self, answer: aiohttp.ClientResponse) -> None:
        """Refuse an answer that is no stream, or that is larger than what is sent for it."""
        coding = answer.headers.get("Content-Encoding", "identity")
        what = f"GET {self.target}{RESOURCE}"
        if answer.status != HTTPStatus.OK:
            # An exporter says there what it expects to be shown.
            said = (await answer.content.read(MOST_SAID)).decode(errors="replace").strip()
            text = f"{what}: {answer.status} {answer.reason}" + (f": {said}" if said else "")
            forbidden = answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
            raise StreamError(text, StreamFault.UNAUTHORIZED if forbidden else StreamFault.REFUSED)
        if coding != "identity":
            raise StreamError(f"{what}: the answer is encoded as {coding}", StreamFault.REFUSED)

    def _publish(self, reading: Reading) -> None:
        try:
            self._source.publish(self.target, reading)
        except WrongNodeError as error:
            self._say("exporter refused", str(error))
            self._state.tried, self._state.fault = True, str(error)
            return
        if not self._state.connected:
            self._opened()
        self._state.fault = ""

    def _opened(self) -> None:
        self._state.connected, self._state.tried, self._state.fault = True, True, ""
        self._opened_at = time.monotonic()
        self._failing = False
        log.info("exporter connected", exporter=self.target)

    def _lost(self, error: StreamError) -> None:
        self._source.faults[error.fault] += 1
        if self._state.connected or not self._state.tried:
            log.warning("exporter lost", exporter=self.target, error=str(error))
        self._failing = not self._state.connected
        if self._state.connected and time.monotonic() - self._opened_at >= STEADY_SECONDS:
            self._waits.reset()
        self._state.connected, self._state.tried, self._state.fault = False, True, str(error)

    def _reject(self, line: int, error: WireError) -> None:
        self._state.rejected += 1
        self._say("bad frame", str(error), line=line)

    def _say(self, event: str, fault: str, **about: object) -> None:
        """Log a fault once, since it recurs with every tick, and no endless number of them."""
        if fault not in self._logged and len(self._logged) < MOST_LOGGED:
            self._logged.add(fault)
            log.warning(event, exporter=self.target, error=fault, **about)


def _current(batch: list[bytes]) -> Iterator[bytes]:
    """Yield what a batch says that is not out of date: all of it, unless we are behind.

    When a fleet sends more than this process can take in, each line waits for the one before, and
    values would grow older and older; so what the batch itself replaces is left out.
    """
    last = len(batch) - 1
    for number, line in enumerate(batch):
        if number == last or not only_values(line):
            yield line


def _fault(error: Exception) -> StreamFault:
    """Return what kind of failure it is; those within others come first."""
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError) or isinstance(
        error.__cause__, ssl.SSLError
    ):
        return StreamFault.TLS
    if isinstance(error, aiohttp.ClientConnectorError):
        return StreamFault.CONNECT
    if isinstance(error, TimeoutError):
        return StreamFault.SILENT
    if isinstance(error, HttpProcessingError | ValueError):
        return StreamFault.GARBAGE
    return StreamFault.ENDED
