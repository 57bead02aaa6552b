"""Mappings of a YAML document, read key by key, that know at which line each key stands."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import yaml

from slicewatch.promrules.faults import Fault, FaultKind, Place, RuleError, listed
from slicewatch.service.documents import parse_yaml
from slicewatch.service.settings import duration
from slicewatch.suggestion import did_you_mean

Path = tuple[str | int, ...]
T = TypeVar("T")


def path_text(path: Path) -> str:
    """Return a path as people write it, such as ``rules[2].name.as``."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).removeprefix(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A YAML document, with the line of each of its keys and elements."""

    file: str
    value: object
    lines: Mapping[Path, int]

    def place(self, path: Path) -> Place:
        """Return where something stands; where it is missing, what it is missing from."""
        known = path
        while known not in self.lines:
            known = known[:-1]
        return Place(file=self.file, line=self.lines[known], path=path_text(path))


def document(text: str, *, file: str, first_line: int = 1) -> Document:
    """Return a YAML document with its lines.

    Args:
        text: the document, without others.
        file: its name in messages.
        first_line: of the text, in that file.

    Raises:
        DocumentError: it is not YAML, or has a key twice; says line and column.
    """
    value = parse_yaml("\n" * (first_line - 1) + text)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    lines = dict(_lines(root, (), first_line)) if root is not None else {}
    return Document(file=file, value=value, lines={(): first_line, **lines})


def _lines(node: yaml.Node, path: Path, first_line: int) -> Iterator[tuple[Path, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, key.value)
            yield inner, key.start_mark.line + first_line
            yield from _lines(value, inner, first_line)
    elif isinstance(node, yaml.SequenceNode):
        for at, value in enumerate(node.value):
            yield (*path, at), value.start_mark.line + first_line
            yield from _lines(value, (*path, at), first_line)


@dataclass(slots=True, kw_only=True)
class Section:
    """One mapping: hands out what it has, notes what is wrong, and in the end what is unknown."""

    document: Document
    path: Path
    value: Mapping[Any, Any]
    faults: list[Fault]
    _known: list[str] = field(default_factory=list)

    def at(self, key: str | int | None = None) -> Place:
        """Return the place of a key, or its own."""
        return self.document.place(self.path if key is None else (*self.path, key))

    def fault(self, error: RuleError, key: str | int | None = None) -> None:
        """Note what is wrong with a key, or with all of it."""
        self.faults.append(error.at(self.at(key)))

    def text(self, key: str, default: str = "") -> str:
        """Return a text."""
        text: str = self._typed(key, str, default, "a text; put it in quotes")
        return text

    def flag(self, key: str, default: bool) -> bool:
        """Return a truth."""
        flag: bool = self._typed(key, bool, default, "true or false")
        return flag

    def number(self, key: str) -> float | None:
        """Return a number."""
        value = self._typed(key, (int, float), None, "a number")
        return None if value is None else float(value)

    def seconds(self, key: str) -> float | None:
        """Return a duration that is more than nothing."""
        value = self._get(key)
        return None if value is None else self.made(key, lambda: _positive(value))

    def section(self, key: str) -> "Section":
        """Return the mapping below a key; an empty one if it is not there."""
        value = self._typed(key, dict, {}, "a mapping")
        return self._inner((*self.path, key), value)

    def sections(self, key: str) -> "list[Section]":
        """Return the mappings that the list below a key has."""
        elements: Sequence[object] = self._typed(key, list, [], "a list")
        found = []
        for at, element in enumerate(elements):
            path = (*self.path, key, at)
            if isinstance(element, dict):
                found.append(self._inner(path, element))
            else:
                error = _not("a mapping", element)
                self.faults.append(error.at(self.document.place(path)))
        return found

    def know(self, key: str) -> None:
        """Take a key for known whatever it has, since somebody else reads it."""
        self._get(key)

    def inner(self) -> "list[tuple[str, Section]]":
        """Return each key with its mapping, where the keys are names that somebody chose."""
        return [(key, self.section(key)) for key in map(str, self.value)]

    def made(self, key: str, make: Callable[[], T]) -> T | None:
        """Return what is made of a key's value; None, and a fault of the key, if it cannot be."""
        try:
            return make()
        except RuleError as error:
            self.fault(error, key)
            return None

    def end(self) -> None:
        """Note the keys that nobody asked for."""
        for key in self.value:
            if key not in self._known:
                self.fault(
                    RuleError(
                        FaultKind.UNKNOWN_KEY,
                        f"there is no such key{did_you_mean(str(key), self._known)}",
                        f"the keys here are {listed(self._known)}",
                    ),
                    key if isinstance(key, str | int) else None,
                )

    def _inner(self, path: Path, value: Mapping[Any, Any]) -> "Section":
        return Section(document=self.document, path=path, value=value, faults=self.faults)

    def _get(self, key: str) -> Any:  # noqa: ANN401 - whatever the document says
        if key not in self._known:
            self._known.append(key)
        return self.value.get(key)

    def _typed(self, key: str, kind: type | tuple[type, ...], default: Any, expected: str) -> Any:  # noqa: ANN401 - of that kind
        value = self._get(key)
        if value is None:
            return default
        is_kind = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
        if not is_kind:
            self.fault(_not(expected, value), key)
            return default
        return value


def _positive(value: object) -> float:
    try:
        seconds = duration(value)
    except ValueError as error:
        raise RuleError(FaultKind.BAD_VALUE, str(error), "write it like 30s or 2m") from error
    if seconds <= 0:
        raise RuleError(FaultKind.BAD_VALUE, f"{value} is no time", "write it like 30s or 2m")
    return seconds


def _not(expected: str, value: object) -> RuleError:
    return RuleError(
        FaultKind.BAD_VALUE, f"{value!r} is of the wrong kind", f"expected {expected}"
    )
