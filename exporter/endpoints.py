"""HTTP endpoints. A handler gives out what was published; it waits for nobody but its reader."""

import asyncio
import html

from aiohttp import web

from exporter.access import SNAPSHOT_PATH, SnapshotAccess
from exporter.publication import Families, Publication
from exporter.status.page import StatusPage, add_off
from slicewatch import version
from slicewatch.service.exposition import negotiate
from slicewatch.service.server import Check, add_health
from slicewatch.service.web.gate import Gate

# A reader of the stream that took nothing for so long is gone, or as good as gone.
READER_PATIENCE_SECONDS = 30.0
# A scraper gives up after its own timeout, 10 s by default.
SCRAPER_PATIENCE_SECONDS = 10.0
MOST_SCRAPES = 40

LANDING = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Slicewatch exporter</title></head>
<body><h1>Slicewatch exporter {version}</h1><p>Node {node}</p><ul>
<li><a href="/metrics">/metrics</a> Prometheus text and OpenMetrics</li>
<li><a href="/snapshot">/snapshot</a> the current values as JSON; <a href="/snapshot?watch=true">
?watch=true</a> streams one line per tick</li>
<li><a href="/livez">/livez</a> and <a href="/readyz?verbose">/readyz</a></li>
</ul></body></html>
"""


class Endpoints:
    """The handlers of the exporter's one port.

    Args:
        gate: what every request has to pass; by default everything passes.
        snapshot_access: who may read ``/snapshot``; by default everybody.
        status: the page at ``/``; None for a plain list of links.
    """

    def __init__(
        self,
        publication: Publication,
        node: str,
        ready: dict[str, Check],
        *,
        gate: Gate | None = None,
        snapshot_access: SnapshotAccess | None = None,
        status: StatusPage | None = None,
    ) -> None:
        self._publication = publication
        self._node = node
        self._ready = ready
        self._gate = gate or Gate()
        self._snapshot_access = snapshot_access or SnapshotAccess()
        self._status = status
        self._scrapes = 0
        self._streams: set[asyncio.Task[object]] = set()

    def application(self) -> web.Application:
        """Return the application with all routes."""
        app = web.Application()
        self._gate.guard(app)
        if self._status is None:
            app.router.add_get("/", self.landing)
            add_off(app)
        else:
            self._status.add(app)
        app.router.add_get("/metrics", self.metrics)
        app.router.add_get(SNAPSHOT_PATH, self.snapshot)
        add_health(app, self._ready)
        app.on_shutdown.append(self._end_streams)
        return app

    async def landing(self, _: web.Request) -> web.Response:
        """Say where to go from here."""
        text = LANDING.format(version=version(), node=html.escape(self._node))
        return web.Response(text=text, content_type="text/html")

    async def metrics(self, request: web.Request) -> web.Response:
        """Give out the exposition in the format and encoding that the scraper asks for.

        503 where too many are being given out; a scraper that is too slow is cut off.
        """
        if self._scrapes >= MOST_SCRAPES:
            text = f"{MOST_SCRAPES} scrapes are being answered; try again\n"
            return web.Response(status=503, text=text, headers={"Retry-After": "1"})
        self._scrapes += 1
        try:
            response = self._exposition(request)
            await _deliver(request, response)
            return response
        finally:
            self._scrapes -= 1

    def _exposition(self, request: web.Request) -> web.Response:
        form = negotiate(request.headers.get("Accept", ""))
        compressed = takes_gzip(request.headers.get("Accept-Encoding", ""))
        headers = {"Content-Type": form.value, "Vary": "Accept, Accept-Encoding"}
        if compressed:
            headers["Content-Encoding"] = "gzip"
        body = self._publication.exposition(form, compressed=compressed)
        return web.Response(body=body, headers=headers)

    async def snapshot(self, request: web.Request) -> web.StreamResponse:
        """Give out one frame, or with ``watch=true`` one line per tick until the reader leaves.

        With ``families`` there is only what the reader names, separated by commas, of what it names
        and we do not have nothing: it may be of another release.
        """
        if refusal := self._snapshot_access.refusal(request):
            return refusal
        families = _families(request.query.get("families", ""))
        if request.query.get("watch") in {"1", "true"}:
            return await self._stream(request, families)
        frame = self._publication.frame_now(families)
        if not frame:
            return web.Response(status=503, text="no snapshot yet: the first tick is not over\n")
        return web.Response(body=frame, content_type="application/json")

    async def _stream(self, request: web.Request, families: Families) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        task = asyncio.current_task()
        if request.method == "HEAD" or task is None:
            return response
        self._streams.add(task)
        try:
            await self._write_lines(response, families)
        except ConnectionError:
            pass  # The reader left, as every reader does one day.
        except TimeoutError:
            # Closing in good order would wait for the reader once more.
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._streams.discard(task)
        return response

    async def _write_lines(self, response: web.StreamResponse, families: Families) -> None:
        """Write the latest frame each time; a slow reader misses frames, nobody waits for it."""
        sent_layout, sent_sequence = None, None
        while True:
            layout, snapshot = self._publication.layout, self._publication.snapshot
            if snapshot is None or snapshot.sequence == sent_sequence:
                await self._publication.wait()
                continue
            if sent_sequence is None:
                # A reader that comes between two ticks gets values that are older than a tick's.
                line = self._publication.frame_now(families)
            else:
                line = self._publication.line(families, with_layout=layout is not sent_layout)
            sent_layout, sent_sequence = layout, snapshot.sequence
            async with asyncio.timeout(READER_PATIENCE_SECONDS):
                await response.write(line)

    async def _end_streams(self, _: web.Application) -> None:
        """A stream has no end of its own, and a process that ends does not wait for one."""
        for task in self._streams:
            task.cancel()


def _families(names: str) -> Families:
    return frozenset(names.split(",")) if names else None


async def _deliver(request: web.Request, response: web.Response) -> None:
    try:
        async with asyncio.timeout(SCRAPER_PATIENCE_SECONDS):
            await response.prepare(request)
            await response.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    except ConnectionError:
        pass  # The scraper has gone.


def takes_gzip(accept_encoding: str) -> bool:
    """Tell whether a reader with this ``Accept-Encoding`` header takes gzip."""
    for part in accept_encoding.lower().split(","):
        coding, *parameters = (p.strip() for p in part.split(";"))
        if coding in {"gzip", "x-gzip"}:
            return not any(_is_zero(p) for p in parameters)
    return False


def _is_zero(parameter: str) -> bool:
    name, _, weight = parameter.partition("=")
    return name.strip() == "q" and not weight.strip().strip("0.")
