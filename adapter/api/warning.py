"""The ``Warning`` header of an answer: what is missing from it or was changed. kubectl shows it."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

MOST_NAMED: Final = 5
"""An answer about a thousand pods names no more of them than this."""


def warning(text: str) -> str:
    """Return the header for a text, without what a header may not hold; empty for no text."""
    if not text:
        return ""
    quotable = text.replace("\\", "").replace('"', "'")
    return f'299 - "{"".join(c for c in quotable if c.isprintable() and c.isascii())}"'


def listed(names: Iterable[str], separator: str = ", ") -> str:
    """Return the first of some names, and whether there are more."""
    shown = list(islice(names, MOST_NAMED + 1))
    more = separator + "..." if len(shown) > MOST_NAMED else ""
    return separator.join(shown[:MOST_NAMED]) + more
