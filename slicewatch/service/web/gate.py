"""Applies the web configuration to requests: client names, rate limit, passwords, headers.

TLS itself happens before a request is there; the gate only gives out the present context.
"""

import asyncio
import base64
import binascii
import ssl
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler

from slicewatch.service.server import is_health
from slicewatch.service.tls import client_names
from slicewatch.service.web.config import RateLimit, WebConfig
from slicewatch.service.web.passwords import Passwords


class Gate:
    """Lets requests through as the web configuration of the moment says.

    Health endpoints need no password and are not limited: the kubelet has none to show, and ends
    the pod where it gets no answer.

    Args:
        without_password: which other requests need none although users are configured.
    """

    def __init__(self, without_password: Callable[[web.Request], bool] = lambda _: False) -> None:
        self._without_password = without_password
        self.apply(WebConfig())

    def apply(self, config: WebConfig) -> None:
        """Serve as ``config`` says from the next connection, and the next request, on.

        Raises:
            TlsError: its certificates cannot be used; all stays as it was.
        """
        context = config.tls.context() if config.tls else None
        self._context = context
        self._config = config
        self._passwords = Passwords(config.users)
        self._bucket = Bucket(config.rate_limit) if config.rate_limit else None

    def tls(self) -> ssl.SSLContext | None:
        """Return the context for the next connection; None for plain HTTP."""
        return self._context

    def guard(self, app: web.Application) -> None:
        """Make every request and response of an application pass the gate."""
        app.middlewares.append(self._pass)
        app.on_response_prepare.append(self._add_headers)

    @web.middleware
    async def _pass(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        allowed = self._config.allowed_sans
        if allowed is not None and allowed.isdisjoint(_alternative_names(request)):
            return _wrong_name()
        if not is_health(request):
            if self._bucket is not None and not self._bucket.take(_now()):
                return web.Response(status=429, text="more requests than rate_limit allows\n")
            if not await self._knows(request):
                return _password_please()
        return await handler(request)

    async def _knows(self, request: web.Request) -> bool:
        if not self._config.users or self._without_password(request):
            return True
        shown = _basic(request.headers.get("Authorization", ""))
        return shown is not None and await self._passwords.accepts(*shown)

    async def _add_headers(self, _: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(self._config.headers)


class Bucket:
    """A token bucket: full at first, one token more per interval."""

    def __init__(self, limit: RateLimit) -> None:
        self._limit = limit
        self._tokens = float(limit.burst)
        self._at: float | None = None

    def take(self, now: float) -> bool:
        """Take a token; False where none is left."""
        passed = 0.0 if self._at is None else now - self._at
        self._at = now
        grown = self._tokens + passed / self._limit.interval_seconds
        self._tokens = min(grown, float(self._limit.burst))
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def peer_certificate(request: web.Request) -> dict[str, object] | None:
    """Return the verified certificate of the client, as the ssl module reads it, or None."""
    if request.transport is None:
        return None
    found: dict[str, object] | None = request.transport.get_extra_info("peercert")
    return found


def _alternative_names(request: web.Request) -> frozenset[str]:
    return client_names(peer_certificate(request))[1]


def _now() -> float:
    return asyncio.get_running_loop().time()


def _basic(authorization: str) -> tuple[str, bytes] | None:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return None
    return (user.decode(errors="replace"), password) if colon else None


def _wrong_name() -> web.Response:
    # Python's TLS cannot end the handshake for that: the connection ends with its first request.
    text = "no alternative name of the client certificate is in client_allowed_sans\n"
    refusal = web.Response(status=403, text=text)
    refusal.force_close()
    return refusal


def _password_please() -> web.Response:
    return web.Response(
        status=401,
        headers={"WWW-Authenticate": 'Basic realm="slicewatch"'},
        text="send user and password of basic_auth_users by HTTP basic authentication\n",
    )
