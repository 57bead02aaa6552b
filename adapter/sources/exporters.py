"""All exporters at once: one stream each, begun and ended as they are found and lost."""

import asyncio
from collections.abc import Callable, Mapping

import aiohttp

from adapter.sources.board import Board
from adapter.sources.protocol import Listener, Reading, Stream, Target
from adapter.sources.stream import ExporterStream, session

Targets = Callable[[], frozenset[Target]]
"""Returns the exporters that are wanted now. Never waits."""


class Exporters:
    """``SnapshotSource`` over HTTP.

    ``wake`` makes it look at its targets again; a stream that fails harms no other.
    """

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._board = Board()
        self._running: dict[Target, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    @property
    def readings(self) -> Mapping[Target, Reading]:
        """The latest reading of each wanted exporter."""
        return self._board.readings

    @property
    def streams(self) -> Mapping[Target, Stream]:
        """State of every wanted exporter."""
        return self._board.streams

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` after each change of a reading."""
        self._board.listen(listener)

    def wake(self) -> None:
        """Say that the targets may have changed."""
        self._changed.set()

    async def run(self) -> None:
        """Follow all targets until cancelled."""
        async with session() as client, asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                self._settle(client, group)
                await self._changed.wait()

    def _settle(self, client: aiohttp.ClientSession, group: asyncio.TaskGroup) -> None:
        """Begin and end streams until they are those of the targets."""
        wanted = self._targets()
        for target in self._running.keys() - wanted:
            self._running.pop(target).cancel()
            self._board.forget(target)
        for target in sorted(wanted - self._running.keys()):
            stream = ExporterStream(target, self._board, client)
            self._running[target] = group.create_task(stream.run(), name=f"stream {target}")
