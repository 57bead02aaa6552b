"""A Prometheus API that says what a test tells it to, and remembers what it was asked.

For faults and for what is sent; what PromQL means, only a real server knows (``prometheus.py``).
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request."""

    method: str
    path: str
    fields: Mapping[str, str]
    headers: Mapping[str, str]

    @property
    def query(self) -> str:
        """Return the PromQL text."""
        return self.fields.get("query", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One answer."""

    body: bytes
    status: int = HTTPStatus.OK
    headers: Mapping[str, str] | None = None


def vector(*samples: tuple[Mapping[str, str], object], warnings: tuple[str, ...] = ()) -> Said:
    """Return an instant vector; values are written as they are."""
    result = [{"metric": dict(labels), "value": [0, str(value)]} for labels, value in samples]
    return success({"resultType": "vector", "result": result}, warnings=warnings)


def success(data: object, **more: object) -> Said:
    """Return an answer with this data."""
    return Said(body=msgspec.json.encode({"status": "success", "data": data} | more))


def failure(status: int, kind: str, text: str) -> Said:
    """Return a refusal in the API's form."""
    body = {"status": "error", "errorType": kind, "error": text}
    return Said(body=msgspec.json.encode(body), status=status)


class ScriptedPrometheus:
    """The server. ``say`` gets each request; by default every query makes an empty vector.

    Attributes:
        url: of the API, below a path prefix.
        asked: all requests so far.
        arrived: set once one has come.
        gate: requests wait until it is set, as it is at first.
        ahead_seconds: of its clock, before that of whoever asks.
    """

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.arrived = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.ahead_seconds = 0.0
        self.say: Callable[[Asked], Said] = lambda _: vector()

    @property
    def queries(self) -> list[str]:
        """Return the queries for values, without those for the times of samples."""
        return [one.query for one in self.asked if one.query and not dates(one)]

    def values(self, *samples: tuple[Mapping[str, str], object], at: float | None = None) -> None:
        """Answer every query for values with a vector, and those for times with one time."""
        times = [] if at is None else [(labels, at) for labels, _ in samples]
        if at is not None:
            times.append(({}, at))
        self.say = lambda one: vector(*times) if dates(one) else vector(*samples)

    @asynccontextmanager
    async def serving(
        self, tls: ssl.SSLContext | None = None, port: int = 0
    ) -> AsyncIterator["ScriptedPrometheus"]:
        """Serve on a loopback port, by default a free one."""
        application = web.Application()
        application.router.add_route("*", "/prefix/{path:.*}", self._answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
        await site.start()
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}/prefix"
        try:
            yield self
        finally:
            self.gate.set()
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        fields = {**request.query, **{k: str(v) for k, v in (await request.post()).items()}}
        one = Asked(
            method=request.method,
            path=request.match_info["path"],
            fields=fields,
            headers=dict(request.headers),
        )
        self.asked.append(one)
        self.arrived.set()
        await self.gate.wait()
        said = self.say(one)
        return web.Response(
            body=said.body,
            status=said.status,
            headers={
                "Content-Type": "application/json",
                "Date": formatdate(_time(fields) + self.ahead_seconds, usegmt=True),
                **(said.headers or {}),
            },
        )


def _time(fields: Mapping[str, str]) -> float:
    """Return the time at which a request was sent, by the clock of who sent it."""
    return float(fields.get("time") or fields.get("end") or 0.0)


def dates(one: Asked) -> bool:
    """Tell a query for the times of samples."""
    return "timestamp(" in one.query
