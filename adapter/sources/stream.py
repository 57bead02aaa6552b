"""One exporter's stream: opened, read line by line, reopened. ``follow`` is a single pass."""

import asyncio
import time
from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from adapter.sources.assembly import Assembly, UnknownLayoutError
from adapter.sources.lag import Lag
from adapter.sources.source import Reading, SnapshotSource, Target, WrongNodeError
from slicewatch.service import logs
from slicewatch.service.backoff import Backoff
from slicewatch.wire.snapshot import WireError, decode

log = logs.logger(__name__)

PATH: Final = "/snapshot?watch=true"
CONNECT_SECONDS: Final = 5.0
# An exporter sends a line every second or two; one that is silent for this long is gone.
SILENCE_SECONDS: Final = 15.0
# aiohttp rejects lines longer than twice this. A node of 16 GPUs, each split into 7 MIG devices
# with tenants, takes about 100 kB.
BUFFER_BYTES: Final = 1 << 20
MOST_BAD_LINES: Final = 5
MOST_LOGGED: Final = 20

# aiohttp reports an overlong line as an HTTP error that is not one of its client errors.
_FAILURES: Final = (aiohttp.ClientError, HttpProcessingError, TimeoutError, OSError, ValueError)


class StreamError(Exception):
    """The stream of an exporter ended or could not be opened; says why."""


def session() -> aiohttp.ClientSession:
    """Return a client for any number of streams, each on its own connection."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS
        ),
        auto_decompress=False,
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
        source: SnapshotSource,
        client: aiohttp.ClientSession,
        backoff: Backoff | None = None,
    ) -> None:
        self.target = target
        self._source = source
        self._client = client
        self._waits = backoff or Backoff(first_seconds=0.25, most_seconds=15.0)
        self._state = source.want(target)
        self._logged: set[str] = set()

    async def run(self) -> None:
        """Follow the stream until cancelled, whatever goes wrong at the exporter."""
        while True:
            try:
                await self.follow()
            except StreamError as error:
                self._lost(str(error))
            await asyncio.sleep(self._waits.next_seconds())

    async def follow(self) -> None:
        """Open the stream and publish its readings until it ends.

        Raises:
            StreamError: it ended or could not be opened, for whatever reason.
        """
        try:
            async with self._client.get(self.target + PATH, allow_redirects=False) as answer:
                self._check(answer)
                await self._read(answer.content)
        except _FAILURES as error:
            reason = str(error) or f"no line for {SILENCE_SECONDS:g} s"
            raise StreamError(f"{self.target}: {reason}") from error
        except UnknownLayoutError as error:
            raise StreamError(f"{self.target}: {error}") from error
        raise StreamError(f"{self.target}: the exporter ended the stream")

    async def _read(self, lines: aiohttp.StreamReader) -> None:
        assembly, lag = Assembly(), Lag()
        number = bad = 0
        async for line in lines:
            await asyncio.sleep(0)  # Lines that are here already would be read without a pause.
            number += 1
            try:
                frame = decode(line)
                received_at = lag.undelayed(frame.snapshot.clock, time.monotonic())
                reading = assembly.take(frame, received_at)
            except WireError as error:
                self._reject(number, error)
                bad += 1
                if bad == MOST_BAD_LINES:
                    raise StreamError(f"{self.target}: {bad} bad lines in a row") from error
                continue
            bad = 0
            self._publish(reading)

    def _check(self, answer: aiohttp.ClientResponse) -> None:
        """Refuse an answer that is no stream, or that is larger than what is sent for it."""
        coding = answer.headers.get("Content-Encoding", "identity")
        fault = f"{answer.status} {answer.reason}" if answer.status != HTTPStatus.OK else ""
        if not fault and coding != "identity":
            fault = f"the answer is encoded as {coding}"
        if fault:
            raise StreamError(f"GET {self.target}{PATH}: {fault}")

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
        self._waits.reset()
        log.info("exporter connected", exporter=self.target)

    def _lost(self, fault: str) -> None:
        if self._state.connected or not self._state.tried:
            log.warning("exporter lost", exporter=self.target, error=fault)
        self._state.connected, self._state.tried, self._state.fault = False, True, fault

    def _reject(self, line: int, error: WireError) -> None:
        self._state.rejected += 1
        self._say("bad frame", str(error), line=line)

    def _say(self, event: str, fault: str, **about: object) -> None:
        """Log a fault once, since it recurs with every tick, and no endless number of them."""
        if fault not in self._logged and len(self._logged) < MOST_LOGGED:
            self._logged.add(fault)
            log.warning(event, exporter=self.target, error=fault, **about)
