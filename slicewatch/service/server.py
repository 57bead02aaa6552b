"""HTTP servers: start, stop, health endpoints. Handlers only serve what is ready."""

import contextlib
import errno
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from slicewatch.service.connections import Connections, Failed, Tls, most_connections
from slicewatch.service.tasks import background

BACKLOG = 128


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
        if parts is None or int(parts["port"]) > 65_535 or not _is_host(parts["plain"] or ""):
            raise ValueError(f"{text!r} is not a valid address; write it like :9400 or [::1]:9400")
        return cls(parts["bracketed"] or parts["plain"] or "", int(parts["port"]))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


_ADDRESS = re.compile(
    r"(?:\[(?P<bracketed>[0-9A-Fa-f:.]+(?:%\w+)?)\]|(?P<plain>[^\[\]:\s]*)):(?P<port>[0-9]{1,5})"
)


def _is_host(name: str) -> bool:
    try:
        name.encode("idna")
    except UnicodeError:  # an empty part, as in a..b, or one of more than 63 bytes
        return False
    return True


@asynccontextmanager
async def serving(
    app: web.Application,
    address: Address,
    tls: ssl.SSLContext | Tls | None = None,
    *,
    most: int | None = None,
    failed: Failed | None = None,
) -> AsyncIterator[Address]:
    """Serve ``app`` while the body runs; yield its address (port 0 picks a free one).

    Args:
        app: what is served.
        address: where.
        tls: None for plain HTTP; a function is asked anew for each connection.
        most: how many connections there may be; by default half of the file descriptors.
        failed: told of TLS handshakes that fail; they are logged at debug level anyway.

    Raises:
        OSError: the address is taken or belongs to another machine.
    """
    runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=2)
    await runner.setup()
    with contextlib.ExitStack() as sockets:
        try:
            listening = [sockets.enter_context(one) for one in _listen(address)]
            for one in listening:
                one.setblocking(False)
            async with _accepting(runner, listening, tls, most or most_connections(), failed):
                yield Address(address.host, listening[0].getsockname()[1])
        finally:
            await runner.cleanup()


@asynccontextmanager
async def _accepting(
    runner: web.AppRunner,
    listening: Iterable[socket.socket],
    tls: ssl.SSLContext | Tls | None,
    most: int,
    failed: Failed | None,
) -> AsyncIterator[None]:
    if runner.server is None:
        raise RuntimeError("the runner is not set up")
    source = tls if callable(tls) else lambda: tls
    connections = Connections(runner.server, source, most, failed)
    try:
        async with background(*(("accept", connections.accept(one)) for one in listening)):
            yield
    except BaseExceptionGroup as group:
        # What the body raised is not to come out as a group because we have tasks.
        raise group.exceptions[0] if len(group.exceptions) == 1 else group from None


def _listen(address: Address) -> list[socket.socket]:
    """Return sockets that listen on every address of the host's name that this machine has."""
    if address.host == "" and socket.has_dualstack_ipv6():
        # One socket for both families: two would be two ports where port 0 asks for any.
        dual = socket.create_server(
            ("", address.port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG
        )
        return [dual]
    found = socket.getaddrinfo(
        address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    places = list(dict.fromkeys((family, place) for family, _, _, _, place in found))
    listening: list[socket.socket] = []
    with contextlib.ExitStack() as on_error:
        for number, (family, place) in enumerate(places, start=1):
            try:
                made = socket.create_server(place, family=family, backlog=BACKLOG)
            except OSError as error:
                last = number == len(places) and not listening
                if last or error.errno not in _NOT_OURS:
                    raise
                continue
            listening.append(on_error.enter_context(made))
        on_error.pop_all()
    return listening


# The name resolves to an address, or a family, that this machine lacks.
_NOT_OURS = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


Check = Callable[[], str | None]
"""Returns what is wrong, or None. Never waits."""


def is_health(request: web.Request) -> bool:
    """Tell whether a request is for an endpoint of ``add_health``, which the kubelet asks."""
    resource = request.match_info.route.resource
    return resource is not None and resource.canonical in HEALTH_PATHS


HEALTH_PATHS = ("/livez", "/readyz", "/readyz/{check}")


def add_health(
    app: web.Application, ready: Mapping[str, Check], *, alive: Check = lambda: None
) -> None:
    """Add ``/livez`` (the loop turns), ``/readyz`` and ``/readyz/<check>``.

    ``?verbose`` lists the checks; ``?exclude=<check>`` leaves one out, and may be repeated.

    Args:
        app: what they are added to.
        ready: what has to be well for ``/readyz``.
        alive: what only a new start of the process could heal.
    """

    async def livez(_: web.Request) -> web.Response:
        fault = alive()
        return web.Response(status=500 if fault else 200, text=f"{fault or 'ok'}\n")

    async def readyz(request: web.Request) -> web.Response:
        name = request.match_info.get("check")
        if name is not None and name not in ready:
            return web.Response(
                status=404, text=f"no check {name}; choose from {', '.join(ready)}\n"
            )
        excluded = request.query.getall("exclude", [])
        chosen = {key: ready[key] for key in ([name] if name else ready) if key not in excluded}
        faults = {key: fault for key, check in chosen.items() if (fault := check()) is not None}
        lines = [
            f"[{'-' if key in faults else '+'}]{key} {faults.get(key, 'ok')}" for key in chosen
        ]
        lines += [f"no check {key} to exclude" for key in excluded if key not in ready]
        if not faults and "verbose" not in request.query:
            return web.Response(text="ok\n")
        return web.Response(status=500 if faults else 200, text="\n".join(lines) + "\n")

    for path, handler in zip(HEALTH_PATHS, (livez, readyz, readyz), strict=True):
        app.router.add_get(path, handler)
