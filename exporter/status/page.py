"""``/`` and ``/status``: the state of the node, live. Nothing is computed while nobody looks.

Only the sparklines are kept all the time, so that whoever opens the page sees the last minutes.
"""

import asyncio
import time
from typing import Final

from aiohttp import web

from exporter.publication import Publication
from slicewatch.pages import message
from slicewatch.pages.events import EventStreams
from slicewatch.pages.history import History
from slicewatch.pages.node import node_state, tracked
from slicewatch.pages.static import HEADERS, Site

# People read no faster than that.
SHORTEST_SECONDS: Final = 1.0
OFF: Final = "the status page is switched off (setting status_page)\n"


class StatusPage:
    """The page of one exporter."""

    def __init__(self, publication: Publication) -> None:
        self._publication = publication
        self._history = History()
        self._streams = EventStreams()
        self._made: tuple[object, bytes] = (None, b"")

    async def run(self) -> None:
        """Keep the last minutes, until cancelled."""
        while True:
            await self._publication.wait()
            self._remember()

    def add(self, app: web.Application) -> None:
        """Add the page, its assets, its events and its state."""
        Site("node").add(app)
        app.router.add_get("/status", self.give)
        app.router.add_get("/status/events", self.tell)
        self._streams.add(app)

    async def give(self, _: web.Request) -> web.Response:
        """Give out the state once, as JSON."""
        body = self.state()
        if not body:
            return web.Response(status=503, text="no snapshot yet: the first tick is not over\n")
        return web.Response(body=body, content_type="application/json", headers=HEADERS)

    async def tell(self, request: web.Request) -> web.StreamResponse:
        """Tell each new state, as events."""
        return await self._streams.answer(request, self.state, _a_moment)

    def state(self) -> bytes:
        """Return the state as JSON, made once per snapshot; empty before the first."""
        layout, snapshot = self._publication.layout, self._publication.snapshot
        if layout is None or snapshot is None:
            return b""
        if self._made[0] is not snapshot:
            state = node_state(
                layout,
                snapshot,
                lines=self._history.lines,
                wall_seconds=time.time(),
                passed_seconds=self._publication.age_seconds(),
                step_seconds=self._history.step_seconds,
            )
            self._made = (snapshot, message.encode(state))
        return self._made[1]

    def _remember(self) -> None:
        layout, snapshot = self._publication.layout, self._publication.snapshot
        if layout is not None and snapshot is not None:
            self._history.take(time.monotonic(), tracked(layout, snapshot))


async def _a_moment() -> None:
    await asyncio.sleep(SHORTEST_SECONDS)


def add_off(app: web.Application) -> None:
    """Say, where the page would be, that it is switched off."""

    async def off(_: web.Request) -> web.Response:
        return web.Response(status=404, text=OFF)

    for path in ("/status", "/status/events", "/assets/{name}"):
        app.router.add_get(path, off)
