"""Pictures of the dashboards for the docs, from a real Prometheus.

Grafana itself cannot be had where this runs. Lines are drawn by uPlot, which is what Grafana draws
them with; layout, titles, legends, units and limits come from the generated JSON. What a panel
looks like in Grafana to the pixel is not promised.
"""

import json
import subprocess
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp

from dashboards.drawing import text_of
from dashboards.index import DASHBOARDS, filled
from dashboards.model import Dashboard, Form, Panel
from testbed import binaries
from testbed.browser import chromium

UPLOT: Final = "uplot@1.6.32"
PAST_SECONDS: Final = 90
WIDTH: Final = 1600
_PAGE: Final = Path(__file__).parent / "preview.html"


async def draw(server: str, folder: Path, *, uuid: str, node: str) -> None:
    """Draw every dashboard from what a server has of the last minutes.

    Args:
        server: URL of its API.
        folder: that is there, where the pictures go.
        uuid: of the GPU that is looked at in depth.
        node: that is looked at by itself.
    """
    library, now = _uplot(), time.time()
    async with aiohttp.ClientSession() as client, chromium() as browser:
        for board in DASHBOARDS:
            singles = {v.name for v in board.variables if v.single}
            choices = {n: c for n, c in (("uuid", uuid), ("node", node)) if n in singles}
            ask = _Asker(client, server, now, choices)
            shown = [await _shown(ask, panel) for panel in board.panels]
            page = await browser.new_page(viewport={"width": WIDTH, "height": 900})
            await page.goto(_PAGE.as_uri())
            await page.add_style_tag(path=library / "uPlot.min.css")
            await page.add_script_tag(path=library / "uPlot.iife.min.js")
            await page.evaluate("([board, panels]) => show(board, panels)", [_board(board), shown])
            await page.screenshot(path=folder / f"{board.name}.png", full_page=True)
            await page.close()


def _uplot() -> Path:
    """Return the folder with uPlot's files, fetched once into the user's cache."""
    place = binaries.cache() / UPLOT.replace("@", "-")
    if not place.exists():
        place.mkdir(parents=True)
        subprocess.run(["npm", "pack", UPLOT], cwd=place, check=True, capture_output=True)
        archive = next(place.glob("*.tgz"))
        subprocess.run(["tar", "xzf", archive.name], cwd=place, check=True)
    return place / "package" / "dist"


def _board(board: Dashboard) -> dict[str, Any]:
    written = json.loads(text_of(board))
    return {
        "title": board.title,
        "rows": [
            {"title": panel["title"], **panel["gridPos"]}
            for panel in written["panels"]
            if panel["type"] == "row"
        ],
        "places": [panel["gridPos"] for panel in written["panels"] if panel["type"] != "row"],
    }


async def _shown(ask: "_Asker", panel: Panel) -> dict[str, Any]:
    series = [
        {"legend": query.legend, "labels": one["metric"], "values": one["values"]}
        for query in panel.queries
        for one in await ask.series(query.expr)
    ]
    return {
        "title": panel.title,
        "form": str(panel.form),
        "unit": panel.unit,
        "series": series,
        "least": panel.least,
        "most": panel.most,
        "empty": panel.empty,
        "limits": [limit.value for limit in panel.limits],
        "headings": [query.legend for query in panel.queries] if panel.form is Form.TABLE else [],
    }


@dataclass(frozen=True, slots=True)
class _Asker:
    """Asks a server for the same moments each time: else lines of one panel would not meet."""

    client: aiohttp.ClientSession
    server: str
    now: float
    choices: Mapping[str, str]

    async def series(self, expr: str) -> list[dict[str, Any]]:
        asked = {
            "query": filled(expr, self.choices),
            "start": self.now - PAST_SECONDS,
            "end": self.now,
            "step": 2,
        }
        url = f"{self.server}/api/v1/query_range?{urllib.parse.urlencode(asked)}"
        async with self.client.get(url) as answer:
            found: list[dict[str, Any]] = json.loads(await answer.read())["data"]["result"]
            return found
