"""Label selectors: the grammar that kube-apiserver accepts, what they match, how they are echoed.

The text is cut into words first; ``in`` and ``notin`` are operators only where one may stand, so
that they can be keys and values too.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final


class SelectorError(ValueError):
    """A text is no label selector; says where it stops being one."""


class Operator(StrEnum):
    """How a requirement compares; the values are those of a LabelSelector object."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. ``equality`` remembers that it was written with ``=``."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    equality: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels fulfil it; what is not there is not in any list."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GREATER | Operator.LESS:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        number = None if value is None else _integer(value)
        bound = _integer(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator is Operator.GREATER else number < bound


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold, sorted by key; none match everything."""

    text: str
    requirements: tuple[Requirement, ...]

    @property
    def equalities(self) -> tuple[tuple[str, str], ...]:
        """Return the labels that every match carries."""
        return tuple(
            (r.key, r.values[0])
            for r in self.requirements
            if r.operator is Operator.IN and len(r.values) == 1
        )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels fulfil all requirements."""
        return all(r.matches(labels) for r in self.requirements)

    def echo(self) -> dict[str, object] | None:
        """Return it as the LabelSelector object of an answer; None for an empty one.

        Raises:
            SelectorError: it compares numbers, which a LabelSelector object cannot say.
        """
        if not self.requirements:
            return None
        labels = {r.key: r.values[0] for r in self.requirements if r.equality}
        expressions = [_expression(r) for r in self.requirements if not r.equality]
        parts = {"matchLabels": labels, "matchExpressions": expressions}
        return {name: part for name, part in parts.items() if part}


def _expression(requirement: Requirement) -> dict[str, object]:
    if requirement.operator in {Operator.GREATER, Operator.LESS}:
        raise SelectorError(f"{requirement.key}: > and < cannot select metrics; use = or in")
    values = {"values": list(requirement.values)} if requirement.values else {}
    return {"key": requirement.key, "operator": str(requirement.operator), **values}


_WORD = re.compile(r"[ \t\r\n]*(==|!=|[=!<>(),]|[^=!<>(), \t\r\n]+)")
_SYMBOLS: Final = frozenset({"==", "!=", "=", "!", "<", ">", "(", ")", ","})
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LONGEST_PREFIX: Final = 253


@lru_cache(maxsize=1024)
def parse(text: str) -> Selector:
    """Return the selector of a text.

    Raises:
        SelectorError: it is none.
    """
    words = _Words(text)
    if words.ahead is None:
        return Selector(text, ())
    requirements = [_requirement(words)]
    while words.ahead is not None:
        words.take(",")
        requirements.append(_requirement(words))
    return Selector(text, tuple(sorted(requirements, key=lambda r: r.key)))


class _Words:
    """The words of a selector, one of them looked ahead at."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._rest: Iterator[str] = iter([*self._cut(text), ""])
        self.ahead: str | None = next(self._rest) or None

    @staticmethod
    def _cut(text: str) -> list[str]:
        stripped = text.rstrip(" \t\r\n")
        return [match[1] for match in _WORD.finditer(stripped)]

    def next(self) -> str:
        """Return the next word."""
        word = self.ahead
        if word is None:
            raise self.error("a label or value", "its end")
        self.ahead = next(self._rest) or None
        return word

    def take(self, *wanted: str) -> str:
        """Return the next word, which must be one of these."""
        if self.ahead not in wanted:
            raise self.error(" or ".join(f"'{w}'" for w in wanted), f"'{self.ahead or ''}'")
        return self.next()

    def label(self) -> str:
        """Return the next word, which must not be a symbol."""
        if self.ahead is None or self.ahead in _SYMBOLS:
            raise self.error("a label or value", f"'{self.ahead or ''}'")
        return self.next()

    def error(self, expected: str, found: str) -> SelectorError:
        """Return the error of a wrong word."""
        return SelectorError(
            f"unable to parse the label selector {self._text!r}: found {found}, expected {expected}"
        )


def _requirement(words: _Words) -> Requirement:
    if words.ahead == "!":
        words.next()
        return Requirement(_key(words), Operator.DOES_NOT_EXIST)
    key = _key(words)
    if words.ahead in {None, ","}:
        return Requirement(key, Operator.EXISTS)
    sign = words.take("=", "==", "!=", "in", "notin", "<", ">")
    match sign:
        case "in" | "notin":
            operator = Operator.IN if sign == "in" else Operator.NOT_IN
            return Requirement(key, operator, _values(words))
        case "<" | ">":
            operator = Operator.GREATER if sign == ">" else Operator.LESS
            return Requirement(key, operator, (_number(words),))
        case "!=":
            return Requirement(key, Operator.NOT_IN, (_value(words),))
        case _:
            return Requirement(key, Operator.IN, (_value(words),), equality=True)


def _key(words: _Words) -> str:
    key = words.label()
    prefix, slash, name = key.rpartition("/")
    prefix_fits = _SUBDOMAIN.fullmatch(prefix) and len(prefix) <= _LONGEST_PREFIX
    if not _NAME.fullmatch(name) or (slash and not prefix_fits):
        raise words.error("a label key such as app or example.com/app", repr(key))
    return key


def _value(words: _Words) -> str:
    if words.ahead in {None, ","}:
        return ""
    return _checked(words, words.label())


def _number(words: _Words) -> str:
    value = words.label()
    if _integer(value) is None:
        raise words.error("an integer", repr(value))
    return value


def _values(words: _Words) -> tuple[str, ...]:
    """Read a bracket; nothing between two of its signs is the empty value."""
    words.take("(")
    values: list[str] = []
    while True:
        empty = words.ahead in {",", ")"}
        values.append("" if empty else _checked(words, words.label()))
        if words.take(",", ")") == ")":
            return tuple(dict.fromkeys(values))


def _checked(words: _Words, value: str) -> str:
    if not _NAME.fullmatch(value):
        raise words.error(
            "a label value of at most 63 letters, digits, '-', '_', '.'", repr(value)
        )
    return value


def _integer(text: str) -> int | None:
    """Return an int64, or None: what Go's ParseInt refuses compares to nothing."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
