"""``docs/reference/dashboards.md``: every dashboard with its panels, for those who import them."""

from typing import Final

from cli.generate.tables import HEADER, table
from dashboards.index import DASHBOARDS
from dashboards.model import Dashboard

COLUMNS: Final = ("Row", "Panel", "How to read it")

INTRODUCTION: Final = """\
# Dashboards

Each is declared once, under `dashboards/`; this page and the JSON in `dashboards/json/` are generated from
there. How to import them is in [Dashboards](../guides/dashboards.md). The texts are those behind the (i) of
each panel.
"""


def dashboards_page() -> str:
    """Return the page."""
    sections = "".join(map(_section, DASHBOARDS))
    return HEADER.format(source="`dashboards/`") + "\n" + INTRODUCTION + sections


def _section(board: Dashboard) -> str:
    rows = [
        (row.title if number == 0 else "", panel.title, panel.reading)
        for row in board.rows
        for number, panel in enumerate(row.panels)
    ]
    title = board.title.removeprefix("Slicewatch / ")
    return (
        f"\n## {title}\n\n{board.intent} File: `dashboards/json/{board.name}.json`."
        f" Needs: {', '.join(board.needs)}.\n\n{table(COLUMNS, rows)}"
    )
