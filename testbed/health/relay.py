"""Stands between a monitor and its API server: counts its requests, and interrupts one of them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp import web

from slicewatch.service.server import Address, serving

# Of one hop only; the rest goes through.
_HOP: Final = frozenset(
    {"host", "content-length", "connection", "transfer-encoding", "accept-encoding"}
)


class Interruption(StrEnum):
    """What happens to one request.

    REFUSED: the API server is overloaded. UNANSWERED: it does what it was asked to do, and the
    connection breaks before it says so. FATAL: so does the one who asked.
    """

    REFUSED = "refused"
    UNANSWERED = "unanswered"
    FATAL = "fatal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, and with which status it was answered; 0 for not at all."""

    method: str
    path: str
    status: int

    @property
    def writes(self) -> bool:
        """Tell whether it changes something."""
        return self.method != "GET"


@dataclass(kw_only=True)
class Relay:
    """Requests that go through to an API server.

    Attributes:
        server: its address.
        trust: how to know it.
        interrupt: what to do to the request of a number that counts from 1; None for nothing.
        at: that number, among the writes.
        die: ends who asks.
        asked: all that was asked, in order.
    """

    server: str
    trust: ssl.SSLContext
    interrupt: Interruption | None = None
    at: int = 0
    die: Callable[[], object] = lambda: None
    asked: list[Asked] = field(default_factory=list)

    @property
    def writes(self) -> list[Asked]:
        """Return the requests that change something."""
        return [one for one in self.asked if one.writes]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Yield the address at which it takes requests."""
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{path:.*}", self._relay)
        connector = aiohttp.TCPConnector(ssl=self.trust)
        async with (
            aiohttp.ClientSession(self.server, connector=connector) as self._session,
            serving(app, Address("127.0.0.1", 0)) as address,
        ):
            yield f"http://{address}"

    async def _relay(self, request: web.Request) -> web.StreamResponse:
        due = request.method != "GET" and len(self.writes) + 1 == self.at
        if due and self.interrupt is Interruption.REFUSED:
            return self._answered(request, HTTPStatus.SERVICE_UNAVAILABLE, b"{}", {})
        status, body, headers = await self._pass_on(request)
        if not due or self.interrupt is None:
            return self._answered(request, status, body, headers)
        self.asked.append(Asked(method=request.method, path=request.path, status=0))
        if self.interrupt is Interruption.FATAL:
            self.die()
        if request.transport is not None:
            request.transport.abort()
        raise asyncio.CancelledError

    async def _pass_on(self, request: web.Request) -> tuple[int, bytes, dict[str, str]]:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP}
        async with self._session.request(
            request.method, request.rel_url, data=await request.read(), headers=headers
        ) as answer:
            kind = {"Content-Type": answer.headers.get("Content-Type", "application/json")}
            return answer.status, await answer.read(), kind

    def _answered(
        self, request: web.Request, status: int, body: bytes, headers: dict[str, str]
    ) -> web.Response:
        self.asked.append(Asked(method=request.method, path=request.path, status=status))
        return web.Response(status=status, body=body, headers=headers)
