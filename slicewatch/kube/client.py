"""The real API server over HTTPS: ``kubernetes.aio`` moves the bytes, our structs decode them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

import aiohttp
import msgspec
from aiohttp.http_exceptions import HttpProcessingError
from kubernetes.aio.client import ApiClient

from slicewatch.kube import errors
from slicewatch.kube.configuration import ConfigurationError
from slicewatch.kube.objects import Kind, O, Selection
from slicewatch.kube.protocol import Change, Event, Json, Page
from slicewatch.service.lines import lines

REQUEST_TIMEOUT: Final = aiohttp.ClientTimeout(total=30)
# The server ends a watch after this; bookmarks arrive every minute, so silence means a dead peer.
WATCH_SECONDS: Final = 540
WATCH_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=150)
# Several times what an object of Kubernetes can have.
LONGEST_LINE_BYTES: Final = 4 << 20
# aiohttp reports malformed answers as HTTP errors that are not among its client errors.
_FAILURES: Final = (aiohttp.ClientError, HttpProcessingError, TimeoutError, OSError, ValueError)
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"


class _ListMetadata(msgspec.Struct, frozen=True, rename={"more": "continue"}):
    resourceVersion: str = ""  # noqa: N815 - the wire's name
    more: str = ""


class _List(msgspec.Struct, Generic[O], frozen=True):
    metadata: _ListMetadata
    items: tuple[O, ...] | None = None


class _Objects(msgspec.Struct, frozen=True):
    """A list whose objects are still to be read, one by one."""

    metadata: _ListMetadata
    items: tuple[msgspec.Raw, ...] | None = None


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

_UNREADABLE: Final = (msgspec.DecodeError, RecursionError)

_objects = msgspec.json.Decoder(_Objects)
_watch_line = msgspec.json.Decoder(_WatchLine)
_versioned = msgspec.json.Decoder(_Versioned)
_any = msgspec.json.Decoder()
_status = msgspec.json.Decoder(_Status)


@lru_cache
def _made(kind: Any) -> msgspec.json.Decoder[Any]:  # noqa: ANN401 - a type expression
    return msgspec.json.Decoder(kind)


def _list_decoder(kind: type[O]) -> msgspec.json.Decoder[_List[O]]:
    return _made(_List[kind])  # type: ignore[valid-type]


Connect = Callable[[], Awaitable[ApiClient]]


class ApiServer:
    """``Kube`` on a real API server. Close it when done.

    Credentials may expire (exec plugins, OIDC): a request that is rejected with 401 fails, and
    the next one reads them again through ``reconnect``.
    """

    def __init__(self, client: ApiClient, reconnect: Connect | None = None) -> None:
        self._client = client
        self._reconnect = reconnect
        self._reconnecting = asyncio.Lock()
        self._rejected = False

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def get(self, kind: Kind[O], name: str, namespace: str = "") -> O:
        """Return one object."""
        path = kind.path(namespace, name)
        return _object(kind, await self._exchange("GET", path), path)

    async def read(self, path: str, form: type[D]) -> D:
        """Return the answer to a path with its query, decoded: discovery, metrics, subresources.

        Raises:
            KubeError: as of the five verbs.
        """
        return _whole(form, await self._exchange("GET", path), path)

    async def list(
        self, kind: Kind[O], selection: Selection, *, limit: int, more: str = ""
    ) -> Page[O]:
        """Return one page."""
        query = selection.query() | {"limit": str(limit)} | ({"continue": more} if more else {})
        path = f"{kind.path(selection.namespace)}?{urlencode(query)}"
        return _page(kind, await self._exchange("GET", path), path)

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
            async for line in lines(answer.content, LONGEST_LINE_BYTES):
                yield _event(kind, line, path)

    async def create(self, kind: Kind[O], body: Json, namespace: str = "") -> O:
        """Create an object."""
        path = kind.path(namespace)
        whole = {**body, "apiVersion": kind.api_version, "kind": kind.name}
        return _object(kind, await self._exchange("POST", path, whole), path)

    async def patch(
        self,
        kind: Kind[O],
        name: str,
        patch: Json,
        *,
        namespace: str = "",
        subresource: str = "",
        strategic: bool = False,
    ) -> O:
        """Apply a merge patch."""
        path = kind.path(namespace, name) + (f"/{subresource}" if subresource else "")
        form = STRATEGIC_PATCH if strategic else MERGE_PATCH
        return _object(kind, await self._exchange("PATCH", path, patch, form), path)

    async def _exchange(
        self, method: str, path: str, body: Json | None = None, form: str = ""
    ) -> bytes:
        async with self._answer(method, path, body, form=form) as answer:
            return await answer.read()

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        timeout: aiohttp.ClientTimeout = REQUEST_TIMEOUT,  # noqa: ASYNC109 - aiohttp's, which times connect and read
        form: str = "",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; turn every failure, up to the end of the body, into a ``KubeError``."""
        what = f"{method} {path}"
        client = await self._connected(what)
        try:
            raw = await client.call_api(
                method,
                client.configuration.host + path,
                header_params=await _headers(client, method, form),
                body=body,
                _request_timeout=timeout,
            )
            answer: aiohttp.ClientResponse = raw.response
            async with answer:
                if answer.status == HTTPStatus.UNAUTHORIZED and client is self._client:
                    self._rejected = True
                if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
                    raise _refusal(what, answer.status, await answer.read())
                yield answer
        except _FAILURES as error:
            reason = str(error) or type(error).__name__
            raise errors.UnavailableError(f"{what}: {reason}") from error

    async def _connected(self, what: str) -> ApiClient:
        """Return the client, or a new one once the API server has rejected its credentials."""
        async with self._reconnecting:
            if self._rejected and self._reconnect is not None:
                old = self._client
                try:
                    self._client = await self._reconnect()
                except ConfigurationError as error:
                    raise errors.ForbiddenError(
                        f"{what}: cannot renew credentials: {error}"
                    ) from error
                self._rejected = False
                await old.close()
            return self._client


async def _headers(client: ApiClient, method: str, form: str) -> dict[str, str]:
    headers = {"Accept": "application/json", "User-Agent": "slicewatch"}
    if form:
        headers["Content-Type"] = form
    await client.update_params_for_auth(headers, [], ["BearerToken"], "", method, None)
    return headers


def _refusal(what: str, code: int, body: bytes) -> errors.KubeError:
    try:
        message = _status.decode(body).message
    except _UNREADABLE:
        message = body[:200].decode(errors="replace")
    return errors.of_status(code, f"{what}: {code} {message}", message)


def _decode(decoder: msgspec.json.Decoder[D], body: bytes | msgspec.Raw, path: str) -> D:
    try:
        return decoder.decode(body)
    except _UNREADABLE as error:
        raise errors.MalformedError(
            f"{path}: the answer is not the requested object: {error}"
        ) from error


def _page(kind: Kind[O], body: bytes, path: str) -> Page[O]:
    """Return a page of a list; an object that cannot be read costs no other."""
    skipped = 0
    try:
        whole = _list_decoder(kind.type).decode(body)
        metadata, objects = whole.metadata, whole.items or ()
    except _UNREADABLE:
        listed = _decode(_objects, body, path)
        read = [_readable(kind, raw) for raw in listed.items or ()]
        metadata, objects = listed.metadata, tuple(o for o in read if o is not None)
        skipped = len(read) - len(objects)
    return Page(
        objects=objects, version=metadata.resourceVersion, more=metadata.more, skipped=skipped
    )


def _readable(kind: Kind[O], raw: msgspec.Raw) -> O | None:
    try:
        return _object(kind, raw, kind.name)
    except errors.MalformedError:
        return None


def _object(kind: Kind[O], body: bytes | msgspec.Raw, path: str) -> O:
    return _whole(kind.type, body, path)


def _whole(form: type[D], body: bytes | msgspec.Raw, path: str) -> D:
    """Return what a body holds. A null is the same as no field, whatever our structs say."""
    decoder: msgspec.json.Decoder[D] = _made(form)  # type: ignore[arg-type]
    with suppress(*_UNREADABLE):
        return decoder.decode(body)
    try:
        return msgspec.convert(_without_nulls(_any.decode(body)), form)
    except _UNREADABLE as error:
        raise errors.MalformedError(
            f"{path}: the answer is not the requested object: {error}"
        ) from error


def _without_nulls(json: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(json, dict):
        return {key: _without_nulls(value) for key, value in json.items() if value is not None}
    return [_without_nulls(value) for value in json] if isinstance(json, list) else json


def _event(kind: Kind[O], line: bytes, path: str) -> Event[O]:
    received = _decode(_watch_line, line, path)
    if received.type == "ERROR":
        status = _decode(_status, received.object, path)
        raise errors.of_status(status.code, f"watch {path}: {status.code} {status.message}")
    if received.type == Change.BOOKMARK:
        # A bookmark is an almost empty object: it need not decode as a whole one.
        bookmark = _decode(_versioned, received.object, path)
        return Event(
            change=Change.BOOKMARK, version=str(bookmark.metadata.get("resourceVersion", ""))
        )
    found = _object(kind, received.object, path)
    version = found.metadata.resource_version
    try:
        change = Change(received.type)
    except ValueError as error:
        raise errors.MalformedError(f"watch {path}: {error}") from error
    return Event(change=change, version=version, object=found)
