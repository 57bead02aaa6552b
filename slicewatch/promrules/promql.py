"""PromQL, read as far as rules and their checks need it: words, aggregations, ranges.

This is no parser of PromQL: what a backend makes of a query, only the backend can tell.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from slicewatch.service.settings import duration

AGGREGATORS: Final = frozenset(
    {"avg", "bottomk", "count", "count_values", "group", "limit_ratio", "limitk", "max", "min",
     "quantile", "stddev", "stdvar", "sum", "topk"}
)  # fmt: skip
_TOKEN: Final = re.compile(
    r"""
      (?P<space> \s+ | \#[^\n]* )
    | (?P<text> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | `[^`]*` )
    | (?P<word> [A-Za-z_:][\w:]* )
    | (?P<number> (?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)(?:[a-z]+(?:\d+[a-z]+)*)? )
    | (?P<sign> =~ | !~ | != | == | >= | <= | . )
    """,
    re.VERBOSE | re.ASCII,
)
_LABEL: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
NAME_LABEL: Final = "__name__"


@dataclass(frozen=True, slots=True)
class Token:
    """A word, text, number or sign of a query."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """An aggregation in a query.

    Attributes:
        labels: of its ``by`` or ``without``; None if it has neither.
        without: whether it names the labels that go.
        body: the positions of its parenthesis among the tokens, first and last.
    """

    operator: str
    labels: tuple[str, ...] | None
    without: bool
    body: tuple[int, int]

    def keeps(self, label: str) -> bool:
        """Tell whether its result still has a label."""
        return (label in (self.labels or ())) != self.without if self.labels is not None else False


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A function over a range of time, such as ``rate`` over ``[2m]``."""

    function: str
    seconds: float


def tokens(query: str) -> tuple[Token, ...]:
    """Return the words and signs of a query."""
    found = _TOKEN.finditer(query)
    return tuple(
        Token(str(each.lastgroup), each[0]) for each in found if each.lastgroup != "space"
    )


def aggregations(query: Sequence[Token]) -> list[Aggregation]:
    """Return every aggregation, outer ones first."""
    made = (_aggregation(query, at) for at, token in enumerate(query) if _aggregates(token))
    return [aggregation for aggregation in made if aggregation is not None]


def _aggregates(token: Token) -> bool:
    return token.kind == "word" and token.text.lower() in AGGREGATORS


def _aggregation(query: Sequence[Token], at: int) -> Aggregation | None:
    clause, after = _clause(query, at + 1)
    close = closing(query, after)
    if close is None:
        return None  # a metric or a label of that name
    if clause is None:
        clause, _ = _clause(query, close + 1)
    word, labels = clause or ("by", None)
    return Aggregation(
        operator=query[at].text.lower(),
        labels=labels,
        without=word == "without",
        body=(after, close),
    )


def _clause(query: Sequence[Token], at: int) -> tuple[tuple[str, tuple[str, ...]] | None, int]:
    """Return a ``by`` or ``without`` that begins at a token, and where it ends."""
    word = query[at].text.lower() if at < len(query) else ""
    close = closing(query, at + 1) if word in {"by", "without"} else None
    if close is None:
        return None, at
    inside = query[at + 2 : close]
    labels = tuple(token.text.strip("\"'") for token in inside if token.kind in {"word", "text"})
    return (word, labels), close + 1


def closing(query: Sequence[Token], at: int) -> int | None:
    """Return the position of what closes the parenthesis at a position; None if none is there."""
    if at >= len(query) or query[at].text != "(":
        return None
    depth = 0
    for position in range(at, len(query)):
        depth += {"(": 1, ")": -1}.get(query[position].text, 0)
        if depth == 0:
            return position
    return None


def windows(query: Sequence[Token]) -> Iterator[Window]:
    """Yield each function that is applied to a range, with the length of the range."""
    for at, token in enumerate(query):
        if token.text != "[" or at + 1 >= len(query):
            continue
        try:
            seconds = duration(query[at + 1].text)
        except ValueError:
            continue  # a day, a week or nonsense; longer than what anybody asks about, or refused
        yield Window(function=_function_around(query, at), seconds=seconds)


def _function_around(query: Sequence[Token], at: int) -> str:
    depth = 0
    for position in range(at - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(query[position].text, 0)
        if depth < 0:
            return query[position - 1].text if position else ""
    return ""


def unquoted(text: str) -> str:
    """Return what a text of PromQL stands for; words stand for themselves."""
    if text[:1] not in {'"', "'", "`"}:
        return text
    inner = text[1:-1]
    return inner if text[0] == "`" else re.sub(r"\\(.)", _unescaped, inner)


def _unescaped(found: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "r": "\r"}.get(found[1], found[1])


def is_label(text: str) -> bool:
    """Tell whether a text is a label's name that needs no quotes."""
    return _LABEL.fullmatch(text) is not None
