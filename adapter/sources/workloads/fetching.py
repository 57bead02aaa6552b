"""Pages fetched from pods, each in a short time and of a bounded size.

A pod belongs to whoever deployed it. It may hang, send without end, or send the adapter somewhere
else; nothing of that costs more than one page that could not be read.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

MOST_BYTES: Final = 1 << 20
MOST_LINES: Final = 50_000
MOST_SAID: Final = 300
TIMEOUT_SECONDS: Final = 2.0

_ACCEPT: Final = (
    "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.8,*/*;q=0.1"
)
# aiohttp reports malformed answers as HTTP errors that are not among its client errors.
_FAILURES: Final = (aiohttp.ClientError, HttpProcessingError, OSError, ValueError)


class Reason(StrEnum):
    """The ways in which a page cannot be fetched, as they are counted."""

    TIMEOUT = "timeout"
    CONNECTION = "connection"
    TLS = "tls"
    STATUS = "status"
    REDIRECT = "redirect"
    ENCODING = "encoding"
    TOO_LARGE = "too_large"
    INTERNAL = "internal"


class FetchError(Exception):
    """A page cannot be fetched; says why."""

    def __init__(self, reason: Reason, message: str) -> None:
        self.reason = reason
        # A pod may say much in a header.
        super().__init__(message[:MOST_SAID])


Fetch = Callable[[URL, bool], Awaitable[bytes]]
"""Returns a page, with the certificate verified unless that is not wanted; or ``FetchError``."""


@asynccontextmanager
async def fetching(
    *,
    most_bytes: int = MOST_BYTES,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> AsyncIterator[Fetch]:
    """Yield what fetches pages. It is for its callers not to fetch too many at once."""
    session = aiohttp.ClientSession(
        # Each page on a connection of its own: kept ones would be as many as there are pods.
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        # One pod's cookies are not for another that gets its address.
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
        headers={
            "Accept": _ACCEPT,
            "Accept-Encoding": "identity",
            "User-Agent": "slicewatch-adapter",
        },
    )

    async def fetch(url: URL, verify: bool) -> bytes:
        try:
            async with asyncio.timeout(timeout_seconds):
                return await _fetched(session, url, verify, most_bytes)
        except TimeoutError as error:
            message = f"no complete answer in {timeout_seconds:g} s"
            raise FetchError(Reason.TIMEOUT, message) from error
        except _FAILURES as error:
            raise _failure(error) from error

    async with session:
        yield fetch


async def _fetched(
    session: aiohttp.ClientSession, url: URL, verify: bool, most_bytes: int
) -> bytes:
    # The path is sent as it is annotated.
    async with session.get(url, allow_redirects=False, ssl=verify) as answer:
        _check(answer)
        page = bytearray()
        async for chunk in answer.content.iter_any():
            page += chunk
            if len(page) > most_bytes:
                raise FetchError(Reason.TOO_LARGE, f"larger than {most_bytes} bytes")
    if page.count(b"\n") > MOST_LINES:
        raise FetchError(Reason.TOO_LARGE, f"more than {MOST_LINES} lines")
    return bytes(page)


def _check(answer: aiohttp.ClientResponse) -> None:
    status = f"the answer is {answer.status} {answer.reason or ''}".rstrip()
    if answer.status // 100 == HTTPStatus.MULTIPLE_CHOICES // 100:
        raise FetchError(Reason.REDIRECT, f"{status}; redirects are not followed")
    if answer.status != HTTPStatus.OK:
        raise FetchError(Reason.STATUS, status)
    coding = answer.headers.get("Content-Encoding", "identity")
    if coding != "identity":
        raise FetchError(Reason.ENCODING, f"the answer is encoded as {coding}, unasked")


def _failure(error: Exception) -> FetchError:
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        hint = "; if nothing can be done, set workloadMetrics.insecureSkipVerify"
        return FetchError(Reason.TLS, f"{error}{hint}")
    return FetchError(Reason.CONNECTION, str(error) or type(error).__name__)
