"""Label selectors of requests, as conditions of PromQL.

Values are quoted twice, as regular expressions of RE2 and as texts of PromQL: what a user writes
into a selector can choose series, and never change the query. A single value is compared, several
are alternatives of an expression; both anchored by PromQL, both as Kubernetes means them.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from slicewatch.promrules.regex import quote
from slicewatch.promrules.template_nodes import quoted


class Requirement(Protocol):
    """One condition of a label selector, as parsers of selectors make it."""

    @property
    def key(self) -> str:
        """Return the label's key, perhaps with a prefix, as in ``example.com/app``."""
        ...

    @property
    def operator(self) -> str:
        """Return ``In``, ``NotIn``, ``Exists``, ``DoesNotExist``, ``Gt`` or ``Lt``."""
        ...

    @property
    def values(self) -> tuple[str, ...]:
        """Return what it is compared to."""
        ...


class UnsupportedRequirementError(ValueError):
    """A condition cannot be asked of Prometheus; says which, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one label, in PromQL.

    Attributes:
        values: what a template's ``.LabelValuesByName`` has for the label.
    """

    label: str
    text: str
    values: tuple[str, ...]


_UNFIT: Final = re.compile(r"[^A-Za-z0-9_]")
_SIGNS: Final = {"In": ("=", "=~"), "NotIn": ("!=", "!~")}


def label_name(key: str) -> str:
    """Return the label that Prometheus has for a key of Kubernetes.

    Everything but letters, digits and underscores becomes an underscore, as Prometheus itself
    does with labels of pods.
    """
    name = _UNFIT.sub("_", key)
    return f"_{name}" if name[:1].isdigit() else name


def condition(requirement: Requirement) -> Condition:
    """Return a requirement as a condition.

    Raises:
        UnsupportedRequirementError: it compares numbers, which PromQL cannot do with labels.
    """
    label, values = label_name(requirement.key), requirement.values
    if requirement.operator in _SIGNS:
        return among(label, values, _SIGNS[requirement.operator])
    if requirement.operator == "Exists":
        return Condition(label, f'{label}!=""', ())
    if requirement.operator == "DoesNotExist":
        return Condition(label, f'{label}=""', ())
    raise UnsupportedRequirementError(
        f"{requirement.key}: > and < cannot select series, since labels are texts; use =, in, "
        "notin or !="
    )


def conditions(requirements: Iterable[Requirement]) -> list[Condition]:
    """Return all requirements as conditions, sorted by key.

    Raises:
        UnsupportedRequirementError: one of them compares numbers.
    """
    return [condition(each) for each in sorted(requirements, key=lambda each: each.key)]


def among(label: str, values: Sequence[str], signs: tuple[str, str] = ("=", "=~")) -> Condition:
    """Return that a label has one of several values, or with other signs none of them."""
    if len(values) == 1:
        return Condition(label, f"{label}{signs[0]}{quoted(values[0])}", tuple(values))
    alternatives = "|".join(quote(value) for value in values)
    return Condition(label, f"{label}{signs[1]}{quoted(alternatives)}", tuple(values))
