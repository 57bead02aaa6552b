"""How many streams may be opening at one time, so that a fleet does not come back all at once.

Exporters that could not be reached in their last attempt wait in a lane of their own: a rack that
is down, each of whose addresses takes seconds to fail, keeps nobody else waiting.
"""

import asyncio
from typing import Final

MOST_OPENING: Final = 128


class Entry:
    """Two lanes into the fleet's streams: for those that are expected to open, and the others."""

    def __init__(self, most: int = MOST_OPENING) -> None:
        self._healthy = asyncio.Semaphore(most)
        self._failing = asyncio.Semaphore(most)

    def lane(self, *, failing: bool) -> asyncio.Semaphore:
        """Return what to hold while a stream is being opened."""
        return self._failing if failing else self._healthy
