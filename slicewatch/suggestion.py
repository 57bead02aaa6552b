"""What a person may have meant by a name that does not exist: the end of an error message."""

from collections.abc import Iterable
from difflib import get_close_matches


def closest(wrong: str, names: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the name that is most like ``wrong``, or None where none is."""
    return next(iter(get_close_matches(wrong, list(names), n=1, cutoff=cutoff)), None)


def did_you_mean(wrong: str, names: Iterable[str]) -> str:
    """Return ``; did you mean X?``, or nothing where no name is close."""
    name = closest(wrong, names)
    return f"; did you mean {name}?" if name else ""


def choices(wrong: str, names: Iterable[str]) -> str:
    """Return ``; did you mean X?``, or the names that exist where none is close."""
    known = list(names)
    return did_you_mean(wrong, known) or f"; choose from {', '.join(known)}"
