"""HTTP servers: start, stop, health endpoints. Handlers only serve what is ready."""

import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, as ``host:port``, ``[::1]:port`` or ``:port``.

    An empty host means every address of the machine, of IPv4 and IPv6: the kubelet probes a pod
    of an IPv6 cluster over IPv6 only.
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: object) -> "Address":
        """Return the address of a text; raise ``ValueError`` if it is not one."""
        parts = _ADDRESS.fullmatch(str(text).strip())
        if parts is None or int(parts["port"]) > 65_535:
            raise ValueError(f"{text!r} is not a valid address; write it like :9400 or [::1]:9400")
        return cls(parts["bracketed"] or parts["plain"] or "", int(parts["port"]))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


_ADDRESS = re.compile(
    r"(?:\[(?P<bracketed>[0-9A-Fa-f:.]+(?:%\w+)?)\]|(?P<plain>[^\[\]:\s]*)):(?P<port>[0-9]{1,5})"
)


@asynccontextmanager
async def serving(
    app: web.Application, address: Address, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Address]:
    """Serve ``app`` while the body runs; yield its address (port 0 picks a free one).

    Raises:
        OSError: the address is taken or belongs to another machine.
    """
    # Users with many groups and long selectors exceed aiohttp's defaults (128 headers, 8 kB
    # lines). Go clients keep an idle connection for 90 s: the server has to wait longer.
    runner = web.AppRunner(
        app,
        access_log=None,
        handle_signals=False,
        max_line_size=65_536,
        max_field_size=65_536,
        max_headers=4_096,
        keepalive_timeout=120.0,
        shutdown_timeout=2,
    )
    await runner.setup()
    try:
        await _site(runner, address, tls).start()
        yield Address(address.host, runner.addresses[0][1])
    finally:
        await runner.cleanup()


def _site(runner: web.AppRunner, address: Address, tls: ssl.SSLContext | None) -> web.BaseSite:
    if address.host == "" and socket.has_dualstack_ipv6():
        # One socket for both families: the loop would bind two, and port 0 would become two ports.
        listening = socket.create_server(
            ("", address.port), family=socket.AF_INET6, dualstack_ipv6=True
        )
        return web.SockSite(runner, listening, ssl_context=tls)
    return web.TCPSite(runner, address.host or None, address.port, ssl_context=tls)


Check = Callable[[], str | None]
"""Returns what is wrong, or None. Never waits."""


def add_health(app: web.Application, ready: Mapping[str, Check]) -> None:
    """Add ``/livez`` (the loop turns), ``/readyz`` and ``/readyz/<check>``."""

    async def livez(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(request: web.Request) -> web.Response:
        name = request.match_info.get("check")
        if name is not None and name not in ready:
            return web.Response(
                status=404, text=f"no check {name}; choose from {', '.join(ready)}\n"
            )
        chosen = ready if name is None else {name: ready[name]}
        faults = {key: fault for key, check in chosen.items() if (fault := check()) is not None}
        lines = [
            f"[{'-' if key in faults else '+'}]{key} {faults.get(key, 'ok')}" for key in chosen
        ]
        if not faults and "verbose" not in request.query:
            return web.Response(text="ok\n")
        return web.Response(status=500 if faults else 200, text="\n".join(lines) + "\n")

    app.router.add_get("/livez", livez)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/readyz/{check}", readyz)
