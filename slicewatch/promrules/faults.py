"""What is wrong with a file of rules: where it stands, what it is, what to do about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    """The ways in which a rule cannot be used; each is a check of ``slicewatch lint``."""

    UNKNOWN_KEY = "unknown-key"
    BAD_VALUE = "bad-value"
    TEMPLATE = "template"
    PATTERN = "pattern"
    SERIES = "series-query"
    NAME_REFERENCE = "name-reference"
    RESOURCES = "resource-mapping"
    QUERY_MODE = "query-mode"
    SAME_NAME = "same-name"
    RESOURCE_RULES = "resource-rules"
    ELSEWHERE = "rules-elsewhere"


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Place:
    """Where something stands.

    Attributes:
        file: as it was named by whoever read it.
        line: the first is 1.
        path: of the key, such as ``rules[2].name.as``.
    """

    file: str
    line: int
    path: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.path}" if self.path else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that keeps a rule, or a section, from being used."""

    kind: FaultKind
    place: Place
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}; {self.fix}"


class RuleError(ValueError):
    """A part of a rule cannot be used; ``fix`` says what to do."""

    def __init__(self, kind: FaultKind, what: str, fix: str) -> None:
        super().__init__(f"{what}; {fix}")
        self.kind = kind
        self.what = what
        self.fix = fix

    def at(self, place: Place) -> Fault:
        """Return it as a fault of a place."""
        return Fault(kind=self.kind, place=place, what=self.what, fix=self.fix)


def listed(names: Iterable[str]) -> str:
    """Return names as they stand in a message."""
    return ", ".join(names)
