"""Server-sent events: a browser is told the newest state, again whenever there is a newer one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from slicewatch.pages.static import HEADERS

State = Callable[[], bytes]
"""Returns the newest state as JSON without line breaks; empty while there is none. Never waits."""
Changed = Callable[[], Awaitable[None]]
"""Returns when there may be a newer state."""

# People, not programs: a hundred open tabs are more than a cluster has operators.
MOST_READERS: Final = 100
# A reader that took nothing for so long is gone, or as good as gone.
PATIENCE_SECONDS: Final = 30.0
# When it has lost us, a browser tries again after so long.
RETRY_MILLISECONDS: Final = 2000


class EventStreams:
    """The open event streams of one server.

    A slow reader misses states; nobody waits for it.
    """

    def __init__(self, *, most: int = MOST_READERS) -> None:
        self._most = most
        self._open: set[asyncio.Task[object]] = set()

    def add(self, app: web.Application) -> None:
        """End all streams with the application: they have no end of their own."""
        app.on_shutdown.append(self._end)

    async def answer(
        self, request: web.Request, state: State, changed: Changed
    ) -> web.StreamResponse:
        """Tell states to one reader until it leaves; 503 where there are too many readers."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("an event stream runs in the task of its request")
        if len(self._open) >= self._most:
            text = f"{self._most} pages are open already; close one\n"
            return web.Response(status=503, text=text, headers={"Retry-After": "10"})
        response = web.StreamResponse(headers=HEADERS | {"Content-Type": "text/event-stream"})
        self._open.add(task)
        try:
            await response.prepare(request)
            if request.method != "HEAD":
                await _tell(response, state, changed)
        except ConnectionError:
            pass  # The reader left.
        except TimeoutError:
            # Closing in good order would wait for the reader once more.
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._open.discard(task)
        return response

    async def _end(self, _: web.Application) -> None:
        for task in self._open:
            task.cancel()


async def _tell(response: web.StreamResponse, state: State, changed: Changed) -> None:
    told = b""
    await response.write(b"retry: %d\n\n" % RETRY_MILLISECONDS)
    while True:
        newest = state()
        # A comment keeps proxies from closing a stream in which nothing happens.
        line = b"data: " + newest + b"\n\n" if newest != told else b": \n\n"
        told = newest
        async with asyncio.timeout(PATIENCE_SECONDS):
            await response.write(line)
        await changed()
