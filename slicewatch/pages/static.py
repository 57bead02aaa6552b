"""The static part of a page: HTML, style and scripts out of this package, and nothing else.

No asset comes from elsewhere, and the browser is told to refuse any that would.
"""

import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import Final, Literal

from aiohttp import web

Page = Literal["node", "fleet"]

# What a page may do: load our own scripts, styles and events. No inline script, no inline style,
# no other host, no frame around it, no form.
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # After an upgrade the script must fit the events; the tag makes asking again cheap.
    "Cache-Control": "no-cache",
}
TYPES: Final = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is served."""

    body: bytes
    content_type: str
    tag: str

    @classmethod
    def of(cls, name: str, body: bytes) -> "Asset":
        """Return the asset of a file's name and content."""
        suffix = name[name.rindex(".") :]
        return cls(body, TYPES[suffix], hashlib.sha256(body).hexdigest()[:16])

    def answer(self, request: web.Request) -> web.Response:
        """Give it out, unless the browser has it already."""
        headers = HEADERS | {"ETag": f'"{self.tag}"'}
        if any(tag.value == self.tag for tag in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        return web.Response(
            body=self.body, content_type=self.content_type, charset="utf-8", headers=headers
        )


class Site:
    """One page and the assets that all pages share.

    Args:
        page: whose HTML is served at ``/``; the others are not served at all.
    """

    def __init__(self, page: Page) -> None:
        files = {
            entry.name: Asset.of(entry.name, entry.read_bytes())
            for entry in resources.files("slicewatch.pages").joinpath("assets").iterdir()
            if any(entry.name.endswith(suffix) for suffix in TYPES)
        }
        self._page = files[f"{page}.html"]
        self._assets = {name: a for name, a in files.items() if not name.endswith(".html")}

    def add(self, app: web.Application) -> None:
        """Add ``/`` and ``/assets/``."""
        app.router.add_get("/", self._give_page)
        app.router.add_get("/assets/{name}", self._give_asset)

    async def _give_page(self, request: web.Request) -> web.Response:
        return self._page.answer(request)

    async def _give_asset(self, request: web.Request) -> web.Response:
        asset = self._assets.get(request.match_info["name"])
        if asset is None:
            return web.Response(status=404, text="no such asset\n")
        return asset.answer(request)
