"""Templates of Go's text/template with ``<<`` and ``>>``, as far as rules use them.

Field output, ``index``, ``range``, ``if`` with ``else``, ``eq``, ``ne``, ``and``, ``or``, ``not``,
``len`` and ``printf``. Everything else is an error that says so: a query that is rendered
differently than the user meant scales the wrong way.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from slicewatch.promrules.faults import listed
from slicewatch.promrules.template_nodes import (
    FUNCTIONS,
    Call,
    Data,
    Dot,
    Expression,
    Field,
    If,
    Literal,
    Node,
    Output,
    Range,
    Scope,
    TemplateError,
    Text,
    expressions,
    rendered,
)
from slicewatch.suggestion import did_you_mean

_ACTION: Final = re.compile(
    r"(?P<left>\s*<<-(?=\s)|<<)(?:\s*/\*.*?\*/\s*|(?P<body>(?:\"(?:\\.|[^\"\\])*\"|`[^`]*`|.)*?))"
    r"(?P<right>(?<=\s)->>\s*|>>)",
    re.DOTALL,
)
_WORD: Final = re.compile(
    r"""\s*(?:
      (?P<text> "(?:\\.|[^"\\])*" ) | (?P<raw> `[^`]*` ) | (?P<number> -?\d+(?![\w.]) )
    | (?P<field> (?:\$(?=\.))? (?:\.[A-Za-z_]\w*)+ ) | (?P<dot> \. )
    | (?P<name> [A-Za-z_]\w* ) | (?P<sign> [()|] ) | (?P<wrong> \S+ )
    )""",
    re.VERBOSE | re.DOTALL,
)
_LONGEST_CHAIN: Final = 2


class Template:
    """A template, ready to be rendered.

    Args:
        text: the template.
        fields: the names that it may use, such as ``Series``.

    Raises:
        TemplateError: it is none, or uses what is not supported.
    """

    def __init__(self, text: str, fields: Sequence[str]) -> None:
        self.text = text
        try:
            self.nodes = _Parser(text, fields).all()
        except RecursionError as error:
            raise TemplateError("nested too deeply", "write it flat") from error

    def render(self, data: Data) -> str:
        """Return the text for the values of all fields.

        Raises:
            TemplateError: a function cannot do that with these values.
        """
        try:
            return rendered(self.nodes, Scope(data))
        except TypeError as error:
            raise TemplateError(
                f"a function has the wrong number or kind of arguments ({error})",
                f"the functions are {listed(FUNCTIONS)}",
            ) from error

    def expressions(self) -> Iterator[Expression]:
        """Return every expression in it, inner ones too."""
        for node in self.nodes:
            yield from expressions(node)


class _Parser:
    """Makes nodes of a text: actions and what is between them, one after the other."""

    def __init__(self, text: str, fields: Sequence[str]) -> None:
        self._fields = fields
        self._pieces = _pieces(text)
        self._at = 0
        self._ranges = 0

    def all(self) -> tuple[Node, ...]:
        """Return the nodes of the whole text."""
        nodes, end = self._body()
        if end is not None:
            raise TemplateError(f"<<{end}>> without an if or a range before it", "remove it")
        return nodes

    def _body(self) -> tuple[tuple[Node, ...], str | None]:
        """Return the nodes up to an ``else`` or ``end``, and that; None at the end of the text."""
        nodes: list[Node] = []
        while self._at < len(self._pieces):
            is_action, text = self._pieces[self._at]
            self._at += 1
            word = text.split(maxsplit=1)[0] if is_action and text else ""
            if not is_action:
                nodes.append(Text(text))
            elif word in {"else", "end"}:
                return tuple(nodes), text
            elif word in {"if", "range"}:
                nodes.append(self._block(word, text[len(word) :]))
            else:
                nodes.append(Output(self._expression(text)))
        return tuple(nodes), None

    def _block(self, word: str, head: str) -> Node:
        condition = self._expression(head)
        self._ranges += word == "range"
        body, end = self._body()
        self._ranges -= word == "range"
        otherwise: tuple[Node, ...] = ()
        words = (end or "").split(maxsplit=2)
        if word == "if" and words[:2] == ["else", "if"]:
            otherwise = (self._block("if", " ".join(words[2:])),)
            end = "end"  # the inner block has consumed the one that closes both
        elif end == "else":
            otherwise, end = self._body()
        if end != "end":
            raise TemplateError(f"<<{word}{head}>> is never closed", "write <<end>> after it")
        make = If if word == "if" else Range
        return make(condition, body, otherwise)

    def _expression(self, text: str) -> Expression:
        words = [found for found in _WORD.finditer(text) if found[0].strip()]
        made, rest = self._pipeline(words)
        if rest:
            raise TemplateError(f"{rest[0][0].strip()!r} in <<{text}>>", "close what was opened")
        return made

    def _pipeline(
        self, words: Sequence[re.Match[str]]
    ) -> tuple[Expression, Sequence[re.Match[str]]]:
        """Return one command, or several with the value of each handed to the next."""
        made, words = self._command(words, ())
        while words and words[0]["sign"] == "|":
            made, words = self._command(words[1:], (made,))
        return made, words

    def _command(
        self, words: Sequence[re.Match[str]], piped: tuple[Expression, ...]
    ) -> tuple[Expression, Sequence[re.Match[str]]]:
        name = words[0]["name"] if words else None
        if name is None or name in {"true", "false"}:
            operand, words = self._operand(words)
            if piped or (words and words[0]["sign"] not in {")", "|"}):
                raise TemplateError("a value stands where a function should", _FUNCTIONS_ARE)
            return operand, words
        if name not in FUNCTIONS:
            raise TemplateError(
                f"{name} is not supported in templates of rules{did_you_mean(name, FUNCTIONS)}",
                _FUNCTIONS_ARE,
            )
        arguments: list[Expression] = []
        words = words[1:]
        while words and words[0]["sign"] not in {")", "|"}:
            argument, words = self._operand(words)
            arguments.append(argument)
        return Call(name, (*arguments, *piped)), words

    def _operand(
        self, words: Sequence[re.Match[str]]
    ) -> tuple[Expression, Sequence[re.Match[str]]]:
        if not words:
            raise TemplateError("an action without a value", "name a field, such as <<.Series>>")
        word, rest = words[0], words[1:]
        if word["sign"] == "(":
            made, rest = self._pipeline(rest)
            if not rest or rest[0]["sign"] != ")":
                raise TemplateError("a parenthesis that is never closed", "close it")
            return made, rest[1:]
        return self._single(word), rest

    def _single(self, word: re.Match[str]) -> Expression:
        match word.lastgroup:
            case "text":
                return Literal(_unquoted(word["text"]))
            case "raw":
                return Literal(word["raw"][1:-1])
            case "number":
                return Literal(int(word["number"]))
            case "field":
                return self._field(word["field"])
            case "dot":
                return Dot()
            case "name" if word["name"] in {"true", "false"}:
                return Literal(word["name"] == "true")
        raise TemplateError(
            f"{word[0].strip()!r} is not supported in templates of rules",
            f"use fields, texts and {listed(FUNCTIONS)}",
        )

    def _field(self, chain: str) -> Field:
        name, *keys = chain.lstrip("$")[1:].split(".")
        if self._ranges and chain[0] != "$":
            what = f"inside of a range the dot is one element, which has no {chain}"
            raise TemplateError(what, f"write $.{name}")
        if name not in self._fields:
            raise TemplateError(
                f".{name} does not exist here{did_you_mean(name, self._fields)}",
                f"the fields are {listed('.' + field for field in self._fields)}",
            )
        if len(keys) >= _LONGEST_CHAIN or (keys and name != "LabelValuesByName"):
            raise TemplateError(f"{chain} goes into something without fields", f"use .{name}")
        return Field(name, *keys)


_FUNCTIONS_ARE: Final = f"the functions are {listed(FUNCTIONS)}"


def _pieces(text: str) -> list[tuple[bool, str]]:
    """Split a text into what stands outside of actions and, marked, what stands inside."""
    pieces: list[tuple[bool, str]] = []
    at = 0
    for found in _ACTION.finditer(text):
        pieces.append((False, text[at : found.start()]))
        if found["body"] is not None:
            pieces.append((True, found["body"].strip()))
        at = found.end()
    if "<<" in text[at:]:
        raise TemplateError(
            f"{text[at:][:40]!r} is never closed", "write >> where the action ends"
        )
    pieces.append((False, text[at:]))
    return [(is_action, piece) for is_action, piece in pieces if is_action or piece]


def _unquoted(text: str) -> str:
    try:
        # Go's escapes that matter in label names and formats are those of JSON.
        return msgspec.json.decode(text, type=str)
    except msgspec.DecodeError as error:
        raise TemplateError(f"{text} is not a text", 'use only \\" and \\\\ in it') from error
