"""A real Chromium that looks at our pages, and complains of what a person would not see.

Of each page it notes requests to anywhere but its own origin, errors of scripts, messages on the
console, and what the content security policy has forbidden.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from testbed import debian

WIDE: Final = {"width": 1400, "height": 1000}
NARROW: Final = {"width": 390, "height": 844}
# The narrowest that WCAG asks for: 1280 pixels at 400 %.
NARROWEST: Final = {"width": 320, "height": 640}
_WATCH: Final = """
  document.addEventListener("securitypolicyviolation", (event) =>
    console.error("forbidden by the policy: " + event.violatedDirective + " " + event.blockedURI));
"""
# Of axe's rules those that a court or a user would hold us to, and its own good practice.
RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@dataclass(slots=True)
class Watched:
    """A page, and what was wrong with it so far."""

    page: Page
    origin: str
    faults: list[str] = field(default_factory=list)

    async def accessibility(self) -> list[str]:
        """Return what axe-core holds against the page as it is now."""
        found = await Axe().run(self.page, options={"runOnly": {"type": "tag", "values": RULES}})
        return [
            f"{fault['id']}: {fault['help']}: {node['html'][:120]}"
            for fault in found.response["violations"]
            for node in fault["nodes"]
        ]

    async def is_too_wide(self) -> bool:
        """Tell whether one has to scroll sideways."""
        script = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return bool(await self.page.evaluate(script))


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Run Debian's Chromium, without a screen.

    Raises:
        Unavailable: it is not installed and cannot be.
    """
    path = debian.program("chromium", package="chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def looking(
    browser: Browser,
    url: str,
    *,
    audited: bool = False,
    **options: Any,  # noqa: ANN401 - those of playwright
) -> AsyncIterator[Watched]:
    """Open a page in a profile of its own.

    Args:
        browser: that opens it.
        url: of the page.
        audited: lets axe-core's script in, which the page's own policy forbids.
        options: of the profile, such as ``viewport`` and ``color_scheme``.
    """
    profile: BrowserContext = await browser.new_context(bypass_csp=audited, **options)
    page = await profile.new_page()
    watched = Watched(page, origin="{0.scheme}://{0.netloc}".format(urlsplit(url)))
    page.on("console", lambda said: watched.faults.append(said.text) if _bad(said.type) else None)
    page.on("pageerror", lambda error: watched.faults.append(str(error)))
    page.on("request", lambda asked: _note(watched, asked.url))
    await page.add_init_script(_WATCH)
    try:
        await page.goto(url, wait_until="domcontentloaded")
        yield watched
    finally:
        await profile.close()


def _bad(kind: str) -> bool:
    return kind in {"error", "warning"}


def _note(watched: Watched, url: str) -> None:
    if not url.startswith((watched.origin, "data:")):
        watched.faults.append(f"asked {url}")
