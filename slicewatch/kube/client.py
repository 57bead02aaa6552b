"""The real API server, over HTTPS: raw JSON of ``kubernetes.aio``'s client into our structs."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

import aiohttp
import msgspec
from aiohttp.http_exceptions import HttpProcessingError
from kubernetes.aio.client import ApiClient

from slicewatch.kube import errors
from slicewatch.kube.objects import Kind, O, Selection
from slicewatch.kube.protocol import Change, Event, Json, Page

REQUEST_TIMEOUT: Final = aiohttp.ClientTimeout(total=30)
# The server ends a watch after this; bookmarks come every minute, so silence means a dead peer.
WATCH_SECONDS: Final = 540
WATCH_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=150)
# A line that is too long is an error of HTTP to aiohttp, but none of its client's errors.
_FAILURES: Final = (aiohttp.ClientError, HttpProcessingError, TimeoutError, OSError, ValueError)
MERGE_PATCH: Final = "application/merge-patch+json"


class _ListMetadata(msgspec.Struct, frozen=True, rename={"more": "continue"}):
    resourceVersion: str = ""  # noqa: N815 - the wire's name
    more: str = ""


class _List(msgspec.Struct, Generic[O], frozen=True):
    metadata: _ListMetadata
    items: tuple[O, ...] | None = None


class _WatchLine(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Versioned(msgspec.Struct, frozen=True):
    metadata: dict[str, Any]


class _Status(msgspec.Struct, frozen=True):
    message: str = ""
    reason: str = ""
    code: int = 0


D = TypeVar("D")

_watch_line = msgspec.json.Decoder(_WatchLine)
_versioned = msgspec.json.Decoder(_Versioned)
_status = msgspec.json.Decoder(_Status)


@lru_cache
def _made(kind: Any) -> msgspec.json.Decoder[Any]:  # noqa: ANN401 - a type expression
    return msgspec.json.Decoder(kind)


def _decoder(kind: type[O]) -> msgspec.json.Decoder[O]:
    return _made(kind)


def _list_decoder(kind: type[O]) -> msgspec.json.Decoder[_List[O]]:
    return _made(_List[kind])  # type: ignore[valid-type]


class ApiServer:
    """``Kube`` of a real API server. Close it when done."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def get(self, kind: Kind[O], name: str, namespace: str = "") -> O:
        """Return one object."""
        path = kind.path(namespace, name)
        return _decode(_decoder(kind.type), await self._exchange("GET", path), path)

    async def list(
        self, kind: Kind[O], selection: Selection, *, limit: int, more: str = ""
    ) -> Page[O]:
        """Return one page."""
        query = selection.query() | {"limit": str(limit)} | ({"continue": more} if more else {})
        path = f"{kind.path(selection.namespace)}?{urlencode(query)}"
        found = _decode(_list_decoder(kind.type), await self._exchange("GET", path), path)
        return Page(
            objects=found.items or (),
            version=found.metadata.resourceVersion,
            more=found.metadata.more,
        )

    async def watch(
        self, kind: Kind[O], selection: Selection, *, version: str
    ) -> AsyncGenerator[Event[O], None]:
        """Yield events; see ``Kube.watch``."""
        query = selection.query() | {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        path = f"{kind.path(selection.namespace)}?{urlencode(query)}"
        async with self._answer("GET", path, timeout=WATCH_TIMEOUT) as answer:
            yield Event(change=Change.BOOKMARK, version=version)
            async for line in answer.content:
                yield _event(kind, line, path)

    async def create(self, kind: Kind[O], body: Json, namespace: str = "") -> O:
        """Create an object."""
        path = kind.path(namespace)
        whole = {**body, "apiVersion": kind.api_version, "kind": kind.name}
        return _decode(_decoder(kind.type), await self._exchange("POST", path, whole), path)

    async def patch(
        self,
        kind: Kind[O],
        name: str,
        patch: Json,
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> O:
        """Apply a merge patch."""
        path = kind.path(namespace, name) + (f"/{subresource}" if subresource else "")
        return _decode(_decoder(kind.type), await self._exchange("PATCH", path, patch), path)

    async def _exchange(self, method: str, path: str, body: Json | None = None) -> bytes:
        async with self._answer(method, path, body) as answer:
            return await answer.read()

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        timeout: aiohttp.ClientTimeout = REQUEST_TIMEOUT,  # noqa: ASYNC109 - HTTP's, of two kinds
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; turn every failure until the body's end into an error of ours."""
        what = f"{method} {path}"
        try:
            raw = await self._client.call_api(
                method,
                self._client.configuration.host + path,
                header_params=await self._headers(method),
                body=body,
                _request_timeout=timeout,
            )
            answer: aiohttp.ClientResponse = raw.response
            async with answer:
                if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
                    raise _refusal(what, answer.status, await answer.read())
                yield answer
        except _FAILURES as error:
            reason = str(error) or type(error).__name__
            raise errors.Unavailable(f"{what}: {reason}") from error

    async def _headers(self, method: str) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "slicewatch"}
        if method == "PATCH":
            headers["Content-Type"] = MERGE_PATCH
        await self._client.update_params_for_auth(headers, [], ["BearerToken"], "", method, None)
        return headers


def _refusal(what: str, code: int, body: bytes) -> errors.KubeError:
    try:
        message = _status.decode(body).message
    except msgspec.DecodeError:
        message = body[:200].decode(errors="replace")
    return errors.of_status(code, f"{what}: {code} {message}")


def _decode(decoder: msgspec.json.Decoder[D], body: bytes | msgspec.Raw, path: str) -> D:
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        raise errors.KubeError(f"{path}: not the object that was asked for: {error}") from error


def _event(kind: Kind[O], line: bytes, path: str) -> Event[O]:
    received = _decode(_watch_line, line, path)
    if received.type == "ERROR":
        status = _decode(_status, received.object, path)
        raise errors.of_status(status.code, f"watch {path}: {status.code} {status.message}")
    if received.type == Change.BOOKMARK:
        # A bookmark is an empty object of the kind: it need not decode as a whole one.
        bookmark = _decode(_versioned, received.object, path)
        return Event(
            change=Change.BOOKMARK, version=str(bookmark.metadata.get("resourceVersion", ""))
        )
    found = _decode(_decoder(kind.type), received.object, path)
    version = found.metadata.resource_version
    return Event(change=Change(received.type), version=version, object=found)
