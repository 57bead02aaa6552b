"""``GET /evidence``, for the health monitor of the node.

On a socket of its own: that of ``exporter.control`` releases the driver, which is nothing for
whoever judges it to do. The answer waits for nobody.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from aiohttp import web

from exporter.evidence.account import Account
from slicewatch.wire import evidence as wire

PATH: Final = "/evidence"
_PARAMETERS: Final = ("after", "run")
# More than ever happens; a number of 64 bits fits.
_MOST_DIGITS: Final = 19


class EvidenceEndpoint:
    """The handler of the socket."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def application(self) -> web.Application:
        """Return the application with its one route."""
        app = web.Application()
        app.router.add_get(PATH, self.evidence)
        return app

    async def evidence(self, request: web.Request) -> web.Response:
        """Answer what is known, with the events after a number of this run; 400 for what is none."""
        try:
            after = self._after(request.query)
        except ValueError as error:
            body = msgspec.json.encode({"error": str(error)})
            return web.Response(status=400, body=body, content_type="application/json")
        # A line, so that answers that are appended to a file are a recording.
        body = wire.encode(self._account.given(after)) + b"\n"
        return web.Response(body=body, content_type="application/json")

    def _after(self, query: Mapping[str, str]) -> int:
        """Return after which event the caller wants them; raise ``ValueError`` for what is none."""
        for name in query:
            if name not in _PARAMETERS:
                raise ValueError(f"no parameter {name!r}; there are {' and '.join(_PARAMETERS)}")
        text = query.get("after", "0")
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
            raise ValueError(
                f"after: {text!r} is no number of an event; pass 'newest' of the last answer,"
                " or leave it out for all"
            )
        if int(text) and "run" not in query:
            raise ValueError(
                "run: missing; after counts within one run, pass 'run' of that answer"
            )
        # Numbers of another life of the exporter say nothing about this one's.
        return int(text) if query.get("run") == self._account.run else 0
