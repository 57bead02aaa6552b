"""Regular expressions as Go and Prometheus write them (RE2), run by Python's engine.

What RE2 has and Python writes otherwise is translated; what only Python has is refused, so that
a rule means the same here as it does there, or is not taken at all.
"""

import re
from dataclasses import dataclass
from typing import Final

from slicewatch.promrules.faults import FaultKind, RuleError

_POSIX: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7F", "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_TOKEN: Final = re.compile(
    r"""
      (?P<quoted> \\Q (?P<literal> .*? ) (?: \\E | \Z ) )
    | (?P<code> \\x\{ (?P<digits> [0-9A-Fa-f]{1,6} ) \} )
    | (?P<escape> \\ . )
    | (?P<posix> \[:\^?[a-z]+:\] )
    | (?P<group> \( \? (?: P?<[A-Za-z_]\w*> | [imsU]*(?:-[imsU]+)?[:)] | \S? ) )
    | (?P<repeat> (?: [*+?] | \{\d+(?:,\d*)?\} ) (?P<possessive> \+ )? )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_SPECIAL: Final = frozenset(r"\.+*?()|[]{}^$")


def quote(text: str) -> str:
    """Return an expression that matches exactly the text, as Go's QuoteMeta writes it."""
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in text)


def literal(pattern: str) -> str | None:
    """Return the only text that a fully anchored expression matches; None if there are others."""
    inner = pattern.removeprefix("^")
    inner = inner.removesuffix("$") if not inner.endswith("\\$") else inner
    return None if _SPECIAL & set(inner) else inner


def compile_re2(pattern: str) -> re.Pattern[str]:
    """Return the expression, to be used unanchored (``search``).

    Raises:
        RuleError: RE2 has no such thing, or Python cannot do what it says.
    """
    try:
        return re.compile(_Translation(pattern).text, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise _refused(pattern, str(error)) from error


def _refused(pattern: str, why: str) -> RuleError:
    return RuleError(
        FaultKind.PATTERN,
        f"{pattern!r} is not a regular expression of RE2: {why}",
        "write it as Go and Prometheus understand it",
    )


class _Translation:
    """One walk over an expression; ``text`` is what Python understands."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._class_start = -1  # where the open character class began in the parts; -1: none is
        self._parts: list[str] = []
        for found in _TOKEN.finditer(pattern):
            self._parts.append(self._translated(found))
        self.text = "".join(self._parts)

    def _translated(self, found: re.Match[str]) -> str:
        text = found[0]
        if found["quoted"] is not None and self._class_start >= 0:
            raise _refused(self._pattern, "a class has no \\Q")
        if found["quoted"] is not None:
            return re.escape(found["literal"])
        if found["code"] is not None:
            return self._code_point(found["digits"])
        if found["escape"] is not None:
            return self._escape(text)
        return self._inside_class(found) if self._class_start >= 0 else self._outside(found)

    def _outside(self, found: re.Match[str]) -> str:
        text = found[0]
        match found.lastgroup:
            case "repeat":
                return self._repeat(found)
            case "group":
                return self._group(text)
            case "posix":
                # Without brackets around it, it is a plain class of these letters.
                return f"[{re.escape(text[1:-1])}]"
        return self._other(text)

    def _code_point(self, digits: str) -> str:
        try:
            return re.escape(chr(int(digits, 16)))
        except ValueError as error:
            raise _refused(self._pattern, f"there is no character {digits}") from error

    def _escape(self, text: str) -> str:
        letter = text[1]
        if self._class_start >= 0 and letter in "AbBz":
            raise _refused(self._pattern, f"{text} is a place, which no class can have")
        if letter == "z":
            return r"\Z"
        if letter in "pPC":
            raise _refused(
                self._pattern, f"classes such as {text} are not supported here; name the letters"
            )
        if letter.isalnum() and letter not in "AabBdDfnrsStvwWx0":
            reason = "back references" if letter.isdigit() else text
            raise _refused(self._pattern, f"it has no {reason}")
        return text

    def _inside_class(self, found: re.Match[str]) -> str:
        text = found[0]
        if found["posix"] is not None:
            return self._posix(text)
        # Right after the opening bracket a closing one is a letter of the class.
        first = "".join(self._parts[self._class_start + 1 :]) in {"", "^"}
        if text == "]" and not first:
            self._class_start = -1
            return text
        if text == "-" and self._parts[-1] == "-":
            raise _refused(
                self._pattern, "two dashes in a class can be read in two ways: write \\-"
            )
        if len(text) > 1 or text in "[]&~|":
            return "".join(c if c in "^-:" or c.isalnum() else f"\\{c}" for c in text)
        return text

    def _posix(self, text: str) -> str:
        name = text.strip("[:]^")
        if name not in _POSIX or "^" in text:
            raise _refused(self._pattern, f"the class {text} is not supported here")
        return _POSIX[name]

    def _group(self, text: str) -> str:
        if text.startswith(("(?P<", "(?<")) and text.endswith(">"):
            return f"(?P<{text[text.index('<') + 1 :]}"
        flags = text[2:-1]
        if text[-1] not in ":)" or "U" in flags:
            raise _refused(self._pattern, f"{text} is not supported: no lookaround, no U flag")
        if text[-1] == ")" and self._parts:
            raise _refused(self._pattern, f"{text} may only stand at the start here")
        return text

    def _repeat(self, found: re.Match[str]) -> str:
        if found["possessive"]:
            raise _refused(self._pattern, f"it has no possessive {found[0]}")
        return found[0]

    def _other(self, text: str) -> str:
        if text == "[":
            self._class_start = len(self._parts)
            return text
        if text == "$":
            return r"\Z"
        return r"\{" if text == "{" else text


_REFERENCE: Final = re.compile(r"\$(?:(?P<dollar>\$)|(?P<bare>\w+)|\{(?P<braced>\w+)\})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """A text with references to the groups of a match, by the rules of Go's ``Expand``.

    Attributes:
        text: as it was written: ``$1``, ``${1}``, ``$name``, ``${name}`` and ``$$`` are known.
    """

    text: str

    def references(self) -> list[str]:
        """Return the groups that it names; ``$1_x`` names one that is called ``1_x``."""
        found = _REFERENCE.finditer(self.text)
        return [match["bare"] or match["braced"] for match in found if not match["dollar"]]

    def of(self, match: re.Match[str]) -> str:
        """Return the text for a match; a group that does not exist is empty."""
        return _REFERENCE.sub(lambda ref: self._value(ref, match), self.text)

    @staticmethod
    def _value(reference: re.Match[str], match: re.Match[str]) -> str:
        if reference["dollar"]:
            return "$"
        return match[_group_of(reference["bare"] or reference["braced"])] or ""

    def unknown(self, pattern: re.Pattern[str]) -> list[str]:
        """Return the groups that it names and the expression does not have."""
        return [name for name in self.references() if not _exists(name, pattern)]


def _group_of(name: str) -> int | str:
    return int(name) if name.isdigit() else name


def _exists(name: str, pattern: re.Pattern[str]) -> bool:
    if name.isdigit():
        return str(int(name)) == name and int(name) <= pattern.groups
    return name in pattern.groupindex
