"""What templates of rules consist of, and what each part is with given values.

Values are texts, numbers, truths, lists and maps of texts; a map without a key gives the empty
text, as ``index`` does in Go.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from slicewatch.promrules.faults import FaultKind, RuleError

Value = str | int | bool | Mapping[str, str] | Sequence[str]
Data = Mapping[str, Value]


class TemplateError(RuleError):
    """A text is not a template that can be used, or cannot be rendered with these values."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(FaultKind.TEMPLATE, what, fix)


@dataclass(frozen=True, slots=True)
class Scope:
    """What expressions see: the fields, and what the dot stands for."""

    fields: Data
    dot: Value | None = None


@dataclass(frozen=True, slots=True)
class Literal:
    """A text or number in the template."""

    value: str | int | bool

    def of(self, _: Scope) -> Value:
        """Return it."""
        return self.value


@dataclass(frozen=True, slots=True)
class Dot:
    """The element of the innermost ``range``."""

    def of(self, scope: Scope) -> Value:
        """Return what the dot stands for."""
        if scope.dot is None:
            raise TemplateError("<<.>> outside of a range", "name a field, such as <<.Series>>")
        return scope.dot


@dataclass(frozen=True, slots=True)
class Field:
    """A field; ``key`` is one more step, into a map."""

    name: str
    key: str | None = None

    def of(self, scope: Scope) -> Value:
        """Return its value."""
        value = scope.fields[self.name]
        return value if self.key is None else _index(value, self.key)


@dataclass(frozen=True, slots=True)
class Call:
    """A function and what it is called with."""

    function: str
    arguments: "tuple[Expression, ...]"

    def of(self, scope: Scope) -> Value:
        """Return what it makes of the arguments."""
        values = [argument.of(scope) for argument in self.arguments]
        return FUNCTIONS[self.function](*values)


Expression = Literal | Dot | Field | Call


@dataclass(frozen=True, slots=True)
class Text:
    """What stands there as it is."""

    text: str

    def render(self, _: Scope) -> str:
        """Return it."""
        return self.text


@dataclass(frozen=True, slots=True)
class Output:
    """A value, written."""

    expression: Expression

    def render(self, scope: Scope) -> str:
        """Return the value as Go prints it."""
        return _printed(self.expression.of(scope))


@dataclass(frozen=True, slots=True)
class If:
    """One of two bodies."""

    condition: Expression
    body: "tuple[Node, ...]"
    otherwise: "tuple[Node, ...]"

    def render(self, scope: Scope) -> str:
        """Return the body that the condition chooses."""
        return rendered(self.body if self.condition.of(scope) else self.otherwise, scope)


@dataclass(frozen=True, slots=True)
class Range:
    """A body for each element; ``otherwise`` where there are none."""

    over: Expression
    body: "tuple[Node, ...]"
    otherwise: "tuple[Node, ...]"

    def render(self, scope: Scope) -> str:
        """Return the bodies one after the other; the values of a map go by its sorted keys."""
        elements = self.over.of(scope)
        if isinstance(elements, str | int):
            raise TemplateError("range over a text", "use it on .GroupBySlice")
        if isinstance(elements, Mapping):
            elements = [elements[key] for key in sorted(elements)]
        if not elements:
            return rendered(self.otherwise, scope)
        return "".join(rendered(self.body, Scope(scope.fields, each)) for each in elements)


Node = Text | Output | If | Range


def rendered(nodes: Sequence[Node], scope: Scope) -> str:
    """Return the text of nodes, one after the other."""
    return "".join(node.render(scope) for node in nodes)


def _printed(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{value[key]}' for key in sorted(value))}]"
    return f"[{' '.join(value)}]"


def _index(value: Value, key: Value) -> str:
    if isinstance(value, Mapping) and isinstance(key, str):
        return value.get(key, "")
    if isinstance(value, Sequence) and not isinstance(value, str) and isinstance(key, int):
        if 0 <= key < len(value):
            return value[key]
        raise TemplateError(f"index {key} of {len(value)} elements", "test the length first")
    raise TemplateError(
        "index of something that has no such elements",
        'write index .LabelValuesByName "label" or index .GroupBySlice 0',
    )


def _length(value: Value) -> int:
    if isinstance(value, int):
        raise TemplateError("len of a number", "use it on a text, a list or a map")
    return len(value)


def _and(first: Value, *rest: Value) -> Value:
    values = (first, *rest)
    return next((value for value in values if not value), values[-1])


def _or(first: Value, *rest: Value) -> Value:
    values = (first, *rest)
    return next((value for value in values if value), values[-1])


_VERB: Final = re.compile(r"%(.?)", re.DOTALL)


def _printf(form: Value, *values: Value) -> str:
    rest = iter(values)

    def written(verb: re.Match[str]) -> str:
        if verb[1] == "%":
            return "%"
        value = next(rest, None)
        if verb[1] not in "svdq" or verb[1] == "" or value is None:
            raise TemplateError(
                f"printf with {verb[0]} and {len(values)} values",
                "use %s, %v, %d or %q, and one value for each",
            )
        return quoted(_printed(value)) if verb[1] == "q" else _printed(value)

    return _VERB.sub(written, _printed(form))


def quoted(text: str) -> str:
    """Return a text in double quotes, as Go and PromQL read it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


FUNCTIONS: Final[Mapping[str, Callable[..., Value]]] = {
    "index": _index,
    "eq": lambda first, *others: first in others,
    "ne": lambda first, second: first != second,
    "and": _and,
    "or": _or,
    "not": lambda value: not value,
    "len": _length,
    "printf": _printf,
}


def expressions(part: Node | Expression) -> Iterator[Expression]:
    """Return every expression of a part, inner ones too."""
    match part:
        case Output(expression):
            yield from expressions(expression)
        case If(head, body, otherwise) | Range(head, body, otherwise):
            for inner in (head, *body, *otherwise):
                yield from expressions(inner)
        case Call(_, arguments):
            yield part
            for argument in arguments:
                yield from expressions(argument)
        case Literal() | Dot() | Field():
            yield part
        case Text():
            pass
