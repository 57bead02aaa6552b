"""Whether files have been replaced, for those who must not read them each time to find out."""

from collections.abc import Iterable
from pathlib import Path

Stamp = tuple[tuple[int, int], ...]


def stamp(paths: Iterable[str | Path]) -> Stamp:
    """Return a value that changes when files are replaced; nothing if one of them is away."""
    try:
        states = [Path(path).stat() for path in paths]
    except OSError:
        return ()
    # Mounted Secrets are replaced by renaming a link, which may leave the times unchanged.
    return tuple((state.st_mtime_ns, state.st_ino) for state in states)
