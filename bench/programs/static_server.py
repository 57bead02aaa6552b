"""A peer for our servers: answers that are ready, given out by aiohttp on uvloop.

It is what our servers would be if they had nothing to do: the same bytes, headers and TLS.
"""

import asyncio
import ssl
import sys
from pathlib import Path

import msgspec
import uvloop
from aiohttp import web


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that can be given again: its bytes, and the headers that describe them."""

    body: bytes
    headers: dict[str, str]


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Files for TLS that both sides must prove: ours, and the authority of the clients."""

    certificate: str
    key: str
    authority: str


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What is served: a page for each path and query, over TLS if there is an identity."""

    port: int
    pages: dict[str, Page]
    identity: Identity | None = None


def application(site: Site) -> web.Application:
    """Return the application of a site."""

    async def handle(request: web.Request) -> web.Response:
        page = site.pages.get(request.raw_path)
        if page is None:
            return web.Response(status=404, text=f"no page {request.raw_path}\n")
        return web.Response(body=page.body, headers=page.headers)

    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    return app


def mutual_tls(identity: Identity) -> ssl.SSLContext:
    """Return a context that lets in clients of one authority, with the adapter's options."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.load_cert_chain(identity.certificate, identity.key)
    context.load_verify_locations(identity.authority)
    return context


async def serve(site: Site) -> None:
    """Serve until standard input ends, which it does with whoever started this."""
    runner = web.AppRunner(application(site), access_log=None)
    await runner.setup()
    tls = None if site.identity is None else mutual_tls(site.identity)
    await web.TCPSite(runner, "127.0.0.1", site.port, ssl_context=tls).start()
    try:
        await asyncio.to_thread(sys.stdin.buffer.read)
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    site_file = Path(sys.argv[1]).read_bytes()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        loop.run(serve(msgspec.json.decode(site_file, type=Site)))
