"""Label selectors: the grammar that kube-apiserver accepts, what they match, how they are echoed.

A selector is read one requirement at a time by a single pattern, so that ``in`` and ``notin`` are
operators only where one may stand, and can be keys and values too.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final


class SelectorError(ValueError):
    """A text is not a valid label selector; says where it stops being one."""


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
    # Every pod of a namespace is held against this: what a value, or None for a label that is
    # missing, has to be among, or must not be; nothing where numbers are compared.
    _listed: frozenset[str | None] = field(init=False, repr=False, compare=False)
    _wanted: bool = field(init=False, repr=False, compare=False)
    _bound: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        numeric = self.operator in {Operator.GREATER, Operator.LESS}
        listed = frozenset() if numeric else frozenset(self.values or (None,))
        wanted = self.operator in {Operator.IN, Operator.DOES_NOT_EXIST}
        object.__setattr__(self, "_listed", listed)
        object.__setattr__(self, "_wanted", wanted)
        object.__setattr__(self, "_bound", _integer(self.values[0]) if numeric else None)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels meet the condition; a label that is missing is in no list."""
        value = labels.get(self.key)
        if self._listed:
            return (value in self._listed) is self._wanted
        return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        number, bound = _labelled(value), self._bound
        if number is None or bound is None:
            return False
        return number > bound if self.operator is Operator.GREATER else number < bound


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all be met, sorted by key; without any, everything matches.

    Attributes:
        text: all of it, as it was asked for.
        reserved: those that choose nothing among labels, but say how to make a value of what
            the others choose. They are never matched, and are echoed with the others.
    """

    text: str
    requirements: tuple[Requirement, ...]
    reserved: tuple[Requirement, ...] = ()

    @property
    def equalities(self) -> tuple[tuple[str, str], ...]:
        """Return the labels that every match carries."""
        return tuple(
            (r.key, r.values[0])
            for r in self.requirements
            if r.operator is Operator.IN and len(r.values) == 1
        )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels meet all requirements."""
        for requirement in self.requirements:  # noqa: SIM110 - half the time of a generator
            if not requirement.matches(labels):
                return False
        return True

    def without(self, keys: Collection[str]) -> "Selector":
        """Return the same selector with all conditions on these keys reserved."""
        reserved = tuple(r for r in self.requirements if r.key in keys)
        rest = tuple(r for r in self.requirements if r.key not in keys)
        return Selector(self.text, rest, reserved)

    def check_expressible(self) -> None:
        """Check that a LabelSelector object can express it, which autoscalers write it as.

        Raises:
            SelectorError: it compares numbers.
        """
        for requirement in self.requirements:
            if requirement.operator in {Operator.GREATER, Operator.LESS}:
                raise SelectorError(
                    f"{requirement.key}: > and < cannot select metrics; use = or in"
                )

    def echo(self) -> dict[str, object] | None:
        """Return it as the LabelSelector object of an answer; None if it is empty.

        Raises:
            SelectorError: it compares numbers, which a LabelSelector object cannot express.
        """
        asked = sorted(self.requirements + self.reserved, key=lambda r: r.key)
        if not asked:
            return None
        self.check_expressible()
        labels = {r.key: r.values[0] for r in asked if r.equality}
        expressions = [
            _expression(r) for r in asked if not (r.equality and labels[r.key] == r.values[0])
        ]
        parts = {"matchLabels": labels, "matchExpressions": expressions}
        return {name: part for name, part in parts.items() if part}


def _expression(requirement: Requirement) -> dict[str, object]:
    values = {"values": list(requirement.values)} if requirement.values else {}
    return {"key": requirement.key, "operator": str(requirement.operator), **values}


# Words are possessive (``++``): "xin (a)" must not be read as the key x and the operator in. So is
# white space, since two runs of it that meet could share it out in as many ways as it is long.
_REQUIREMENT = re.compile(
    r"""
    \s*+ (?: !\s*+ (?P<absent> [^\s=!<>(),]++ )
      | (?P<key> [^\s=!<>(),]++ ) \s*+
        (?: (?P<sign> !=|==?|[<>] ) \s*+ (?P<value> [^\s=!<>(),]*+ )
          | (?P<list> in|notin ) \s*+ \( (?P<values> [^=!<>()]*+ ) \)
        )?
    ) \s*+ (?: , | $ )
    """,
    re.VERBOSE | re.ASCII,
)
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
# An int64 has at most 19 digits: more of them need not, and above 4,300 cannot, be converted.
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
_LONGEST_PREFIX: Final = 253
# A selector is held against every pod of a namespace, in the loop that serves everyone. The
# length costs little there, the number of requirements does: 64 with the longest keys and values
# do fit.
LONGEST: Final = 32_768
MOST_REQUIREMENTS: Final = 64
# A longer one is parsed again each time, so that what is kept stays small whoever asks.
LONGEST_KEPT: Final = 4096
# A message repeats no more of what was asked for.
MOST_SAID: Final = 200
_OPERATORS: Final = {
    "!=": Operator.NOT_IN,
    "<": Operator.LESS,
    ">": Operator.GREATER,
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
}


def parse(text: str) -> Selector:
    """Return the selector that a text stands for.

    Raises:
        SelectorError: it is not a valid selector, or larger than any that is written by hand.
    """
    return _kept(text) if len(text) <= LONGEST_KEPT else _parsed(text)


def _parsed(text: str) -> Selector:
    if len(text) > LONGEST:
        raise SelectorError(f"a label selector may have {LONGEST} characters, not {len(text)}")
    try:
        found = dict.fromkeys(_requirements(text)) if text.strip() else {}
    except SelectorError as error:
        raise SelectorError(
            f"unable to parse the label selector {_said(text)}: {error}"
        ) from error
    if len(found) > MOST_REQUIREMENTS:
        raise SelectorError(
            f"a label selector may have {MOST_REQUIREMENTS} requirements, not {len(found)}"
        )
    return Selector(text, tuple(sorted(found, key=lambda r: r.key)))


_kept = lru_cache(maxsize=256)(_parsed)


def _said(text: str) -> str:
    return repr(text if len(text) <= MOST_SAID else f"{text[:MOST_SAID]}...")


def _requirements(text: str) -> Iterator[Requirement]:
    at, seen = 0, set()
    while True:
        found = _REQUIREMENT.match(text, at)
        if found is None:
            raise SelectorError(
                f"at {_said(text[at:])}: expected a requirement such as app=web or !app"
            )
        written = found[0].strip(", ")
        if written not in seen:  # Ten thousand times the same one fit in.
            seen.add(written)
            yield _requirement(found)
        if not found[0].endswith(","):
            return
        at = found.end()


def _requirement(found: re.Match[str]) -> Requirement:
    if found["absent"]:
        return Requirement(_key(found["absent"]), Operator.DOES_NOT_EXIST)
    key, sign = _key(found["key"]), found["sign"]
    if found["list"]:
        # Nothing between two commas is the empty value.
        values = dict.fromkeys(_value(value.strip()) for value in found["values"].split(","))
        return Requirement(key, _OPERATORS[found["list"]], tuple(values))
    if sign is None:
        return Requirement(key, Operator.EXISTS)
    if sign in "<>":
        return Requirement(key, _OPERATORS[sign], (_number(found["value"]),))
    operator = _OPERATORS.get(sign, Operator.IN)
    return Requirement(key, operator, (_value(found["value"]),), operator is Operator.IN)


def _key(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    prefix_fits = _SUBDOMAIN.fullmatch(prefix) and len(prefix) <= _LONGEST_PREFIX
    if not _NAME.fullmatch(name) or (slash and not prefix_fits):
        raise SelectorError(f"{_said(key)}: expected a label key such as app or example.com/app")
    return key


def _value(value: str) -> str:
    if value and not _NAME.fullmatch(value):
        raise SelectorError(
            f"{_said(value)}: expected a label value of at most 63 letters, digits, '-', '_', '.'"
        )
    return value


def _number(value: str) -> str:
    if _integer(value) is None:
        raise SelectorError(f"{_said(value)}: expected an integer")
    return value


def _integer(text: str) -> int | None:
    """Return an int64, or None: what Go's ParseInt rejects compares to nothing."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    number = int(found[1] + found[2])
    return number if -(2**63) <= number < 2**63 else None


# Of labels only, which are short: what is asked for may be a page of zeros.
_labelled = lru_cache(maxsize=4096)(_integer)
