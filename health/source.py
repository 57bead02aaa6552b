"""Where evidence comes from: the exporter of this node, or a fake of it.

The seam of the monitor towards the exporter. It asks and decodes; it judges nothing and remembers
nothing, so that whoever asks decides what was dealt with.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Final, Protocol

import aiohttp
import msgspec

from slicewatch.wire.evidence import Event, Evidence, EvidenceError, decode

# It answers from memory; one that does not is as good as gone until the next poll.
ANSWER_SECONDS: Final = 10.0
# Sixteen GPUs with everything that can be read and 4,096 events are a tenth of it.
LONGEST_ANSWER_BYTES: Final = 32 << 20
# An error message is quoted so far.
QUOTED_BYTES: Final = 300


class Silence(StrEnum):
    """Why there is no evidence; the value is a label."""

    NO_SOCKET = "no_socket"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    STATUS = "status"
    MALFORMED = "malformed"
    OTHER_NODE = "other_node"


class SilenceError(Exception):
    """The exporter gave no evidence; the message says what was asked of what, and what to do."""

    def __init__(self, why: Silence, message: str) -> None:
        super().__init__(message)
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Up to where events are known.

    Attributes:
        run: the life of the exporter that ``newest`` is a number of; empty before the first poll.
        newest: number of the last event that is known.
    """

    run: str = ""
    newest: int = 0

    @classmethod
    def after(cls, evidence: Evidence) -> "Cursor":
        """Return the one to ask with once ``evidence`` has been dealt with."""
        return cls(run=evidence.run, newest=evidence.newest)


class EvidenceSource(Protocol):
    """An exporter, as its node's health monitor sees it."""

    async def ask(self, cursor: Cursor) -> Evidence:
        """Return what is known now, with the events after ``cursor``.

        Of an exporter that has started anew since, all its events come. It answers within
        ``ANSWER_SECONDS`` or not at all.

        Raises:
            SilenceError: it does not answer, or not with evidence.
        """
        ...


class ExporterSocket:
    """The exporter behind a Unix socket."""

    def __init__(
        self, session: aiohttp.ClientSession, path: str, seconds: float = ANSWER_SECONDS
    ) -> None:
        self._session = session
        self._path = path
        self._seconds = seconds

    async def ask(self, cursor: Cursor) -> Evidence:
        """Return what is known now; see ``EvidenceSource.ask``."""
        return decoded(await self.raw(cursor), self._path)

    async def raw(self, cursor: Cursor) -> bytes:
        """Return the answer as it came.

        Raises:
            SilenceError: there is none.
        """
        query = {"after": str(cursor.newest)} | ({"run": cursor.run} if cursor.run else {})
        try:
            async with (
                asyncio.timeout(self._seconds),
                self._session.get("http://exporter/evidence", params=query) as response,
            ):
                body = await _body(response, self._path)
        except (OSError, aiohttp.ClientError) as error:
            raise _unreachable(self._path, error, self._seconds) from error
        if response.status != HTTPStatus.OK:
            said = body[:QUOTED_BYTES].decode(errors="replace").strip()
            raise SilenceError(
                Silence.STATUS,
                f"{self._path}: /evidence was answered with {response.status}: {said}",
            )
        return body


@contextlib.asynccontextmanager
async def exporter_socket(
    path: str, *, seconds: float = ANSWER_SECONDS
) -> AsyncIterator[ExporterSocket]:
    """Yield the exporter that listens on a Unix socket; it need not be there yet."""
    # Each poll connects anew: while the DaemonSet is updated, an open connection leads to the
    # exporter that ends and the path to the one that has begun.
    connector = aiohttp.UnixConnector(path, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield ExporterSocket(session, path, seconds)


def decoded(body: bytes, path: str) -> Evidence:
    """Return the evidence in an answer.

    Raises:
        SilenceError: it is none.
    """
    try:
        return decode(body)
    except EvidenceError as error:
        raise SilenceError(Silence.MALFORMED, f"{path}: {error}") from error


async def _body(response: aiohttp.ClientResponse, path: str) -> bytes:
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > LONGEST_ANSWER_BYTES:
            raise SilenceError(
                Silence.MALFORMED,
                f"{path}: the answer to /evidence has more than {LONGEST_ANSWER_BYTES} bytes",
            )
    return bytes(body)


def _unreachable(path: str, error: Exception, seconds: float) -> SilenceError:
    if isinstance(error, TimeoutError):
        return SilenceError(
            Silence.TIMEOUT, f"{path}: no answer to /evidence within {seconds:g} s"
        )
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, FileNotFoundError):
        return SilenceError(
            Silence.NO_SOCKET,
            f"{path}: there is no socket; the exporter is not running, its evidence_socket is"
            " another one, or the folder is not mounted",
        )
    return SilenceError(Silence.REFUSED, f"{path}: no connection for /evidence: {cause}")


class FakeExporter:
    """An exporter without a node: it answers what it was told, as the real one would.

    Inject silence with ``fail_next``, events with ``happen`` and a new life with ``restart``.
    """

    def __init__(self, state: Evidence, *, kept: int = 4096) -> None:
        self.state = state
        self._kept = kept
        self._events: list[Event] = []
        self._newest = 0
        self._silences: list[SilenceError] = []

    def fail_next(self, why: Silence, times: int = 1) -> None:
        """Give no answer to the next questions."""
        self._silences += [SilenceError(why, f"injected: {why}")] * times

    def happen(self, *events: Event) -> None:
        """Let events happen; they get their numbers here."""
        for event in events:
            self._newest += 1
            self._events.append(msgspec.structs.replace(event, number=self._newest))
        del self._events[: -self._kept]

    def restart(self, run: str) -> None:
        """Begin a new life, which knows of no events."""
        self.state = msgspec.structs.replace(self.state, run=run)
        self._events, self._newest = [], 0

    async def ask(self, cursor: Cursor) -> Evidence:
        """Return what it was told; see ``EvidenceSource.ask``."""
        await asyncio.sleep(0)
        if self._silences:
            raise self._silences.pop(0)
        return self.answer(cursor)

    def answer(self, cursor: Cursor) -> Evidence:
        """Return the evidence after a cursor."""
        after = cursor.newest if cursor.run == self.state.run else 0
        events = tuple(event for event in self._events if event.number > after)
        oldest = self._events[0].number if self._events else self._newest + 1
        return msgspec.structs.replace(
            self.state,
            events=events,
            newest=self._newest,
            missed=max(0, oldest - after - 1),
        )
