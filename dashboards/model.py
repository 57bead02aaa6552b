"""What a dashboard is, apart from how Grafana writes it down.

A panel says what it shows and how to read it; ``drawing`` makes Grafana's JSON of it, and tests run
its queries on real servers.
"""

from dataclasses import dataclass
from enum import StrEnum

from dashboards.variables import Variable


class Form(StrEnum):
    """How a panel shows its series."""

    LINES = "lines"
    AREAS = "areas"
    """Lines on top of one another, for parts of a whole."""
    NUMBER = "number"
    BARS = "bars"
    TABLE = "table"
    STATES = "states"
    """A band per series over time, for what is one of few states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query, and what its series are called.

    Attributes:
        legend: with labels in double braces; in a table, the heading of its values.
    """

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """From this value on a panel changes its colour; the number comes from ``alerts.thresholds``."""

    value: float
    colour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Where a click on a value of a table leads: a dashboard, opened for the label's value."""

    label: str
    dashboard: str
    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A panel.

    Attributes:
        reading: how to read it, what is normal, and what to do when it is not.
        unit: Grafana's name of it, from ``dashboards.units``.
        empty: what is said where there is nothing, which is no zero.
        width, height: of 24 columns, in rows of 30 pixels.
        links: of a table.
    """

    title: str
    reading: str
    queries: tuple[Query, ...]
    unit: str
    form: Form = Form.LINES
    width: int = 12
    height: int = 8
    limits: tuple[Limit, ...] = ()
    least: float | None = None
    most: float | None = None
    empty: str = "No data: nothing of the kind, or not known"
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An idea of a dashboard, under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """A dashboard.

    Attributes:
        name: of its module, of its file, and the end of its uid.
        intent: one sentence: which questions it answers.
        needs: what has to be scraped for it.
    """

    name: str
    title: str
    intent: str
    needs: tuple[str, ...]
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]

    @property
    def uid(self) -> str:
        """Grafana's identity of it, by which others link to it."""
        return f"slicewatch-{self.name}"

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All panels in order."""
        return tuple(panel for row in self.rows for panel in row.panels)
