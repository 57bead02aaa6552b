"""Numbers and names in sentences."""

from collections.abc import Sequence
from typing import Final

_MOST_NAMED: Final = 5


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which takes an s in the plural."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def named(names: Sequence[str]) -> str:
    """Return the first few names."""
    return ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")


def decimal(value: float) -> str:
    """Return a number with at most three decimals."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def age(seconds: float | None) -> str:
    """Return an age, or a dash for an unknown one."""
    return "-" if seconds is None else f"{decimal(round(seconds, 1))} s"
