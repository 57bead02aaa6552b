"""One Prometheus-compatible API: asked for instant values and for names, at an explicit time.

It knows nothing of rules or of Kubernetes, and keeps nothing but its connections.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final, TypeVar

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from adapter.sources.prometheus import query_result
from adapter.sources.prometheus.credentials import Access, Credentials, CredentialsError
from adapter.sources.prometheus.fault import BackendError, FaultClass
from adapter.sources.prometheus.query_result import Result

# An autoscaler's request hangs for as long as a query does, and blocks others meanwhile.
LONGEST_TIMEOUT_SECONDS: Final = 5.0
TIMEOUT_SECONDS: Final = 4.0
# Some 20,000 series with a dozen labels each; a query that makes more is not meant for us.
MOST_BYTES: Final = 8 << 20
MOST_CONNECTIONS: Final = 20
# The backend's own limit is a little shorter, so that it says why before we give up.
_MARGIN: Final = 0.9
# Queries are for our time: by a clock that is behind, old samples would look new.
MOST_SKEW_SECONDS: Final = 60.0
# aiohttp reports an overlong header as an HTTP error that is not one of its client errors.
_FAILURES: Final = (aiohttp.ClientError, HttpProcessingError, OSError, ValueError)
_DENIED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})

# What the API answers to a query that it cannot parse, or cannot evaluate.
_OF_THE_QUERY: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})

T = TypeVar("T")
NO_ACCESS: Final = Access()
Fields = Sequence[tuple[str, str]]


class Verb(StrEnum):
    """How queries are sent. Long ones do not fit into the URL of a GET."""

    POST = "POST"
    GET = "GET"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendConfig:
    """Where a backend is and how it is asked. Equal ones are asked in the same way.

    Attributes:
        name: what rules and messages call it.
        url: base of the API, perhaps with a path, without credentials.
        headers: sent with each request, such as ``X-Scope-OrgID``.
    """

    name: str
    url: str
    verb: Verb = Verb.POST
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float = TIMEOUT_SECONDS
    access: Access = NO_ACCESS


class Backend:
    """A client of one backend. Close it when done."""

    def __init__(self, config: BackendConfig) -> None:
        self.config = config
        self._credentials = Credentials(config.access)
        self._client: aiohttp.ClientSession | None = None

    @property
    def name(self) -> str:
        """Return its name in the configuration."""
        return self.config.name

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    async def query(self, text: str, at: float) -> Result:
        """Return what a query makes of the samples at a time, in seconds since the epoch.

        Raises:
            BackendError: there is no result, for whatever reason.
        """
        limit = f"{self.config.timeout_seconds * _MARGIN * 1000:.0f}ms"
        body = await self._ask(
            "/api/v1/query", [("query", text), ("time", f"{at:.3f}"), ("timeout", limit)], at
        )
        return self._read(query_result.result, body)

    async def series_names(self, match: str, at: float) -> tuple[str, ...]:
        """Return the names of the series that a selector matches at a time.

        Counted by the query engine, which knows the end of a series at once; the API for names
        goes on naming it until the backend tidies up, hours later.

        Raises:
            BackendError: as of ``query``.
        """
        result = await self.query(f"count by (__name__) ({match})", at)
        return tuple(sorted(sample.labels.get("__name__", "") for sample in result.samples))

    async def label_names(self, match: str, start: float, end: float) -> tuple[str, ...]:
        """Return the labels of the series that a selector matches between two times.

        Raises:
            BackendError: as of ``query``.
        """
        # Some backends read a missing end, or one that is 0, as the year 1970.
        fields = [("match[]", match), ("start", f"{start:.3f}"), ("end", f"{end:.3f}")]
        return self._read(query_result.names, await self._ask("/api/v1/labels", fields, end))

    async def _ask(self, path: str, fields: Fields, now: float) -> bytes:
        """Return the body of an answer that may be read, or raise what is wrong."""
        try:
            async with asyncio.timeout(self.config.timeout_seconds):
                status, date, body = await self._exchange(path, fields)
        except TimeoutError as error:
            limit = f"no answer within {self.config.timeout_seconds:g} s"
            raise self._error(FaultClass.TIMEOUT, limit) from error
        except _FAILURES as error:
            raise self._error(*_unreached(error)) from error
        if status != HTTPStatus.OK:
            raise self._refused(status, body)
        skew = _seconds(date, now) - now
        if abs(skew) > MOST_SKEW_SECONDS:
            raise self._error(
                FaultClass.CLOCK, f"it is {skew:+.0f} s from ours; set the clocks of both"
            )
        return body

    async def _exchange(self, path: str, fields: Fields) -> tuple[int, str, bytes]:
        """Return the status, the time by the other side's clock, and the body."""
        verb = self.config.verb
        form: dict[str, Any] = {"params": fields} if verb is Verb.GET else {"data": dict(fields)}
        async with self._session().request(
            str(verb),
            self.config.url + path,
            headers={**self.config.headers, **self._shown()},
            ssl=self._tls(),
            server_hostname=self.config.access.server_name or None,
            # Credentials must not follow to wherever an answer points.
            allow_redirects=False,
            **form,
        ) as answer:
            return answer.status, answer.headers.get("Date", ""), await self._body(answer)

    def _session(self) -> aiohttp.ClientSession:
        if self._client is None:
            self._client = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=MOST_CONNECTIONS),
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Accept": "application/json", "User-Agent": "slicewatch-adapter"},
            )
        return self._client

    def _shown(self) -> Mapping[str, str]:
        try:
            return self._credentials.headers()
        except CredentialsError as error:
            raise self._error(FaultClass.CREDENTIALS, str(error)) from error

    def _tls(self) -> ssl.SSLContext | bool:
        if not self.config.url.startswith("https:"):
            return True
        try:
            return self._credentials.context()
        except CredentialsError as error:
            raise self._error(FaultClass.CREDENTIALS, str(error)) from error

    async def _body(self, answer: aiohttp.ClientResponse) -> bytes:
        """Read an answer up to the limit, which is on what it is once it is decompressed."""
        parts, size = [], 0
        async for part in answer.content.iter_any():
            size += len(part)
            if size > MOST_BYTES:
                answer.close()
                raise self._too_large(f"more than {MOST_BYTES >> 20} MiB")
            parts.append(part)
        return b"".join(parts)

    def _read(self, read: Callable[[bytes], T], body: bytes) -> T:
        try:
            return read(body)
        except query_result.QueryRefusedError as error:
            raise self._error(FaultClass.REFUSED, str(error)) from error
        except query_result.TooLargeResultError as error:
            raise self._too_large(str(error)) from error
        except query_result.MalformedResultError as error:
            raise self._error(FaultClass.MALFORMED, str(error)) from error

    def _refused(self, status: int, body: bytes) -> BackendError:
        """Return what a status means; a timeout of its own is one as well."""
        said = query_result.refusal(body)
        detail = f"{status} {_phrase(status)}" + (f" ({said})" if said else "")
        if status in _DENIED:
            return self._error(FaultClass.DENIED, detail)
        if said.startswith(("timeout", "canceled")) or status == HTTPStatus.GATEWAY_TIMEOUT:
            return self._error(FaultClass.TIMEOUT, detail)
        if said and status in _OF_THE_QUERY:
            return self._error(FaultClass.REFUSED, detail)
        return self._error(FaultClass.FAILED, detail)

    def _too_large(self, size: str) -> BackendError:
        return self._error(FaultClass.TOO_LARGE, f"{size}; aggregate with by (<<.GroupBy>>)")

    def _error(self, fault: FaultClass, detail: str) -> BackendError:
        return BackendError(self.name, fault, detail)


def _unreached(error: Exception) -> tuple[FaultClass, str]:
    """Return why there is no answer, without the address: clients are told."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        found = error.certificate_error
        return FaultClass.DISTRUSTED, getattr(found, "verify_message", "") or _text(found)
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return FaultClass.UNREACHABLE, f"no TLS there ({error.os_error.reason})"
    if isinstance(error, aiohttp.ClientConnectorError):
        return FaultClass.UNREACHABLE, error.strerror or _text(error.os_error)
    return FaultClass.UNREACHABLE, _text(error)


def _seconds(date: str, unknown: float) -> float:
    """Return the time of a ``Date`` header, in seconds since the epoch, or ``unknown``."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return unknown


def _text(error: Exception) -> str:
    return (str(error) or type(error).__name__)[: query_result.LONGEST_SAYING]


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "is no known status"
