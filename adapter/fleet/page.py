"""``/`` and ``/fleet`` on the plain port: pools first, then the nodes of one, then one node."""

import asyncio
from typing import Final

from aiohttp import web

from adapter.fleet.fleet import Fleet
from slicewatch.pages import message
from slicewatch.pages.events import EventStreams
from slicewatch.pages.static import HEADERS, Site

# Of one node; the fleet has a rhythm of its own.
NODE_SECONDS: Final = 1.0
OFF: Final = "the fleet page is switched off (setting fleet_page)\n"
PATHS: Final = (
    "/fleet", "/fleet/events", "/fleet/node/{name}", "/fleet/node/{name}/events",
)  # fmt: skip


class FleetPage:
    """The page of one adapter."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._streams = EventStreams()

    def add(self, app: web.Application) -> None:
        """Add the page, its assets, its events and its states."""
        Site("fleet").add(app)
        handlers = (self.give, self.tell, self.give_node, self.tell_node)
        for path, handler in zip(PATHS, handlers, strict=True):
            app.router.add_get(path, handler)
        self._streams.add(app)

    async def give(self, request: web.Request) -> web.Response:
        """Give out the state of the fleet once, as JSON."""
        await self._fleet.settled()
        return _json(self._state(request))

    async def tell(self, request: web.Request) -> web.StreamResponse:
        """Tell each new state of the fleet, as events."""
        self._fleet.look()
        return await self._streams.answer(
            request, lambda: self._state(request), self._fleet.changed
        )

    async def give_node(self, request: web.Request) -> web.Response:
        """Give out the state of a node once, as JSON; 404 if there is none of that name."""
        return self._missing(request) or _json(self._node(request))

    async def tell_node(self, request: web.Request) -> web.StreamResponse:
        """Tell each new state of a node, as events."""
        return self._missing(request) or await self._streams.answer(
            request, lambda: self._node(request), _a_moment
        )

    def _state(self, request: web.Request) -> bytes:
        pool, words = request.query.get("pool"), request.query.get("q", "")
        return message.encode(self._fleet.state(pool, words))

    def _node(self, request: web.Request) -> bytes:
        state = self._fleet.node(request.match_info["name"])
        # It has gone since it was first asked for.
        return b"" if state is None else message.encode(state)

    def _missing(self, request: web.Request) -> web.Response | None:
        name = request.match_info["name"]
        if name in self._fleet.names():
            return None
        return web.Response(status=404, text=f"no exporter runs on a node named {name!r}\n")


def add_off(app: web.Application) -> None:
    """Say, where the page would be, that it is switched off."""

    async def off(_: web.Request) -> web.Response:
        return web.Response(status=404, text=OFF)

    for path in ("/", "/assets/{name}", *PATHS):
        app.router.add_get(path, off)


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json", headers=HEADERS)


async def _a_moment() -> None:
    await asyncio.sleep(NODE_SECONDS)
