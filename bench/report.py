"""Rows with their goals, and the table that they make. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

HEADER: Final = ("figure", "value", "peer", "ratio (range)", "goal", "")
NOTHING: Final = "–"


class Unit(StrEnum):
    """Unit of a value; the text follows the number."""

    MILLISECONDS = "ms"
    SECONDS = "s"
    MEGABYTES = "MB"
    PER_SECOND = "/s"
    PERCENT = "%"
    CALLS = "calls"
    QUERIES = "queries"


class Of(StrEnum):
    """What a goal limits."""

    VALUE = "value"
    RATIO = "ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A limit that a row is held against: an upper one, or a lower one."""

    limit: float
    of: Of
    least: bool = False

    def met(self, row: "Row") -> bool:
        """Tell whether the row keeps the limit."""
        measured = row.value if self.of is Of.VALUE else row.ratio
        if measured is None:
            raise ValueError(f"{row.figure} has no {self.of} to hold its goal against")
        return measured >= self.limit if self.least else measured <= self.limit

    def text(self, unit: Unit) -> str:
        """Return the limit in words of the table."""
        sign = "≥" if self.least else "≤"
        shown = f"{self.limit:g} × peer" if self.of is Of.RATIO else f"{self.limit:g} {unit}"
        return f"{sign} {shown}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure.

    Attributes:
        value, peer: medians over the rounds, in ``unit``.
        ratio: median of the rounds' ratios, ours to the peer's.
        spread: smallest and largest of these ratios; without a peer, of the values.
        goal: None for a figure that only informs.
    """

    figure: str
    value: float
    unit: Unit
    peer: float | None = None
    ratio: float | None = None
    spread: tuple[float, float] | None = None
    goal: Goal | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the row's texts in the order of ``HEADER``."""
        goal = self.goal
        verdict = NOTHING if goal is None else ("met" if goal.met(self) else "MISSED")
        return (
            self.figure,
            f"{number(self.value)} {self.unit}",
            NOTHING if self.peer is None else f"{number(self.peer)} {self.unit}",
            self._ratio(),
            NOTHING if goal is None else goal.text(self.unit),
            verdict,
        )

    def _ratio(self) -> str:
        spread = "" if self.spread is None else "({}–{})".format(*map(number, self.spread))
        ratio = NOTHING if self.ratio is None else number(self.ratio)
        return f"{ratio} {spread}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """A part that has no figures, and why.

    Attributes:
        broken: something failed; otherwise this machine lacks what the part needs.
    """

    part: str
    reason: str
    broken: bool

    def __str__(self) -> str:
        return f"{self.part}: not measured: {self.reason}"


def number(value: float) -> str:
    """Return a number with three significant digits, and no exponent."""
    if value == 0:
        return "0"
    size = abs(value)
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2 if size >= 0.1 else 3
    return f"{value:,.{digits}f}"


def table(rows: Sequence[Row]) -> str:
    """Return the rows as aligned columns; the first is flush left, the others right."""
    lines = [HEADER, *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_aligned(line, widths) for line in lines)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.ljust(width) if index == 0 else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((first, *others)).rstrip()
