"""``FakeKube`` behind HTTP in Kubernetes' wire format, so that whole processes run without a cluster.

Speaks what our own client needs; it authenticates nobody.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

import msgspec
from aiohttp import web

from slicewatch.kube import errors
from slicewatch.kube.client import STRATEGIC_PATCH
from slicewatch.kube.daemon_sets import DAEMON_SET
from slicewatch.kube.events import EVENT
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.nodes import WHOLE_NODE
from slicewatch.kube.objects import (
    API_SERVICE,
    CONFIG_MAP,
    ENDPOINT_SLICE,
    POD,
    SECRET,
    Kind,
    Selection,
)
from slicewatch.kube.protocol import Change, Event

KINDS: Final[tuple[Kind[Any], ...]] = (
    POD,
    CONFIG_MAP,
    ENDPOINT_SLICE,
    SECRET,
    API_SERVICE,
    WHOLE_NODE,
    EVENT,
    DAEMON_SET,
)
_STATUS: Final = {
    errors.NotFoundError: HTTPStatus.NOT_FOUND,
    errors.ForbiddenError: HTTPStatus.FORBIDDEN,
    errors.ConflictError: HTTPStatus.CONFLICT,
    errors.GoneError: HTTPStatus.GONE,
    errors.UnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
}
_UNLIMITED: Final = 1 << 30

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def app(kube: FakeKube) -> web.Application:
    """Return an application that serves the objects of ``kube``."""
    served = web.Application(client_max_size=1 << 24)
    for kind in KINDS:
        routes = _Routes(kube, kind)
        for path in (kind.path(), kind.path("{namespace}")):
            served.router.add_get(path, _answering(routes.collection))
            served.router.add_post(path, _answering(routes.create))
        for one in (kind.path("{namespace}", "{name}"), kind.path(name="{name}")):
            served.router.add_get(one, _answering(routes.get))
            served.router.add_patch(one, _answering(routes.patch))
            served.router.add_patch(f"{one}/{{subresource}}", _answering(routes.patch))
            served.router.add_delete(one, _answering(routes.delete))
    return served


def _answering(handler: Handler) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except errors.KubeError as error:
            code = _STATUS.get(type(error), HTTPStatus.BAD_REQUEST)
            return web.json_response(_status(error, code), status=code)

    return answer


def _status(error: errors.KubeError, code: HTTPStatus) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": str(error),
        "code": int(code),
    }


class _Routes:
    """The verbs for one kind. Objects are sent with the fields that our structs declare."""

    def __init__(self, kube: FakeKube, kind: Kind[Any]) -> None:
        self._kube = kube
        self._kind = kind

    async def collection(self, request: web.Request) -> web.StreamResponse:
        """List, or watch if the query says so."""
        chosen = _selection(request)
        query = request.query
        if query.get("watch") in {"1", "true"}:
            return await self._watch(request, chosen)
        limit = int(query.get("limit", "0")) or _UNLIMITED
        page = await self._kube.list(
            self._kind, chosen, limit=limit, more=query.get("continue", "")
        )
        body = {
            "kind": f"{self._kind.name}List",
            "apiVersion": self._kind.api_version,
            "metadata": {"resourceVersion": page.version, "continue": page.more},
            "items": page.objects,
        }
        return _json(body)

    async def _watch(self, request: web.Request, chosen: Selection) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        version = request.query.get("resourceVersion", "0")
        try:
            await answer.prepare(request)
            async for event in self._kube.watch(self._kind, chosen, version=version):
                await answer.write(_line(event.change, event.object or self._bookmark(event)))
        except errors.KubeError as error:
            code = _STATUS.get(type(error), HTTPStatus.INTERNAL_SERVER_ERROR)
            await answer.write(_line("ERROR", _status(error, code)))
        except ConnectionError:
            pass  # The watcher has gone, as watchers do.
        return answer

    def _bookmark(self, event: Event[Any]) -> dict[str, Any]:
        head = {"kind": self._kind.name, "apiVersion": self._kind.api_version}
        return head | {"metadata": {"resourceVersion": event.version}}

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Return one object."""
        return _json(await self._kube.get(self._kind, **_named(request)))

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Create an object."""
        body = msgspec.json.decode(await request.read(), type=dict[str, Any])
        namespace = request.match_info.get("namespace", "")
        made = await self._kube.create(self._kind, body, namespace)
        return _json(made, HTTPStatus.CREATED)

    async def patch(self, request: web.Request) -> web.StreamResponse:
        """Apply a merge patch, or a strategic one."""
        body = msgspec.json.decode(await request.read(), type=dict[str, Any])
        changed = await self._kube.patch(
            self._kind,
            patch=body,
            subresource=request.match_info.get("subresource", ""),
            strategic=request.content_type == STRATEGIC_PATCH,
            **_named(request),
        )
        return _json(changed)

    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Remove an object at once."""
        self._kube.delete(self._kind, **_named(request))
        return _json({"kind": "Status", "apiVersion": "v1", "status": "Success"})


def _named(request: web.Request) -> dict[str, str]:
    found = request.match_info
    return {"name": found["name"], "namespace": found.get("namespace", "")}


def _selection(request: web.Request) -> Selection:
    pairs = [p.partition("=") for p in request.query.get("labelSelector", "").split(",") if p]
    name = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
    return Selection(
        namespace=request.match_info.get("namespace", ""),
        name=name,
        labels={key: value for key, _, value in pairs},
    )


def _json(body: object, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(body), status=status, content_type="application/json"
    )


def _line(change: Change | str, body: object) -> bytes:
    return msgspec.json.encode({"type": str(change), "object": body}) + b"\n"
