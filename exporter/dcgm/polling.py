"""Asks the node's dcgm-exporter for its page, again and again.

Whatever it answers, and whether it answers at all, the exporter runs on: a failure costs the
values that only DCGM has.
"""

import asyncio
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import SplitResult, urlsplit

import aiohttp

from exporter.dcgm.page import read
from exporter.dcgm.source import DEADLINE_SECONDS, DcgmSource, Reason
from slicewatch.service import logs
from slicewatch.service.backoff import Backoff

log = logs.logger(__name__)

LONGEST_PAUSE_SECONDS: Final = 60.0
# 16 GPUs of 7 instances with pod labels and all fields that are switched on take about 4 MB.
MOST_BYTES: Final = 16 << 20


class DcgmError(Exception):
    """No usable page came; says why, also in one word."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def page_url(value: object) -> str:
    """Return the URL of a dcgm-exporter's page; ``/metrics`` where it has no path, empty for none.

    Raises:
        ValueError: it is no URL that can be asked.
    """
    text = str(value).strip()
    if not text:
        return ""
    url = _split(text)
    if url is None:
        raise ValueError(
            f"{text!r} is not a valid URL; write it like http://10.0.0.7:9400/metrics"
        )
    if "@" in url.netloc:
        raise ValueError("a URL with a user name or password cannot be used")
    return url._replace(path=url.path if url.path.strip("/") else "/metrics", fragment="").geturl()


def _split(text: str) -> SplitResult | None:
    try:
        url = urlsplit(text)
        usable = url.scheme in {"http", "https"} and url.hostname and url.port != 0
    except ValueError:
        return None
    return url if usable else None


def session() -> aiohttp.ClientSession:
    """Return a client whose requests end in time."""
    return aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=DEADLINE_SECONDS),
        auto_decompress=False,
        headers={"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "identity"},
    )


async def follow(source: DcgmSource, url: str, waits: Backoff | None = None) -> None:
    """Keep ``source`` up to date until cancelled, once per its interval; failures are retried.

    Args:
        source: remembers the pages.
        url: as ``page_url`` returns it.
        waits: pauses after failures, by default from one interval to a minute.
    """
    interval = source.interval_seconds
    if waits is None:
        waits = Backoff(first_seconds=interval, most_seconds=LONGEST_PAUSE_SECONDS)
    async with session() as client:
        while True:
            if await refresh(source, client, url, time.monotonic):
                waits.reset()
                await asyncio.sleep(interval)
            else:
                await asyncio.sleep(waits.next_seconds())


async def refresh(
    source: DcgmSource, client: aiohttp.ClientSession, url: str, clock: Callable[[], float]
) -> bool:
    """Ask once and pass the answer, or what was wrong, to ``source``; return whether a page came.

    A new state is logged as such, a repetition at debug.
    """
    before = source.fault
    try:
        body = await _fetch(client, url)
        at = clock()
        # A large page takes 50 ms to parse: as long as many ticks.
        page = await asyncio.to_thread(read, body.decode(errors="replace"))
    except DcgmError as error:
        source.fail(error.reason)
        _tell(source, before, url, error=str(error))
        return False
    source.take(page, at)
    _tell(source, before, url, broken_lines=page.broken)
    return True


def _tell(source: DcgmSource, before: Reason | None, url: str, **about: object) -> None:
    if source.fault is before:
        log.debug("asked DCGM", url=url, reason=source.fault, **about)
    elif source.fault:
        log.warning("no values from DCGM", url=url, reason=source.fault.value, **about)
    else:
        log.info("values come from DCGM", url=url, **about)


async def _fetch(client: aiohttp.ClientSession, url: str) -> bytes:
    """Return the body of the page.

    Raises:
        DcgmError: there is none, for whatever reason.
    """
    try:
        async with client.get(url, allow_redirects=False) as answer:
            coding = answer.headers.get("Content-Encoding", "identity")
            if answer.status != HTTPStatus.OK or coding != "identity":
                raise DcgmError(Reason.BAD_ANSWER, f"{answer.status} {answer.reason}, {coding}")
            return await _bounded(answer.content)
    except TimeoutError as error:
        raise DcgmError(Reason.TOO_SLOW, f"no page within {DEADLINE_SECONDS:g} s") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise DcgmError(Reason.UNREACHABLE, str(error) or type(error).__name__) from error


async def _bounded(content: aiohttp.StreamReader) -> bytes:
    body = bytearray()
    async for chunk in content.iter_any():
        body += chunk
        if len(body) > MOST_BYTES:
            raise DcgmError(Reason.TOO_LARGE, f"the page is longer than {MOST_BYTES} bytes")
    return bytes(body)
