"""All exporters at once: one stream each, started and stopped as exporters come and go."""

import asyncio
from collections.abc import Callable, Mapping

import aiohttp

from adapter.sources.credentials import Credentials
from adapter.sources.entry import Entry
from adapter.sources.source import SnapshotSource, Target
from adapter.sources.stream import ExporterStream, session

Targets = Callable[[], Mapping[Target, str]]
"""Returns the exporters that are wanted now, each with its node if that is known. Never waits."""


class Exporters(SnapshotSource):
    """``SnapshotSource`` over HTTP; a stream that fails affects no other."""

    def __init__(self, targets: Targets, credentials: Credentials | None = None) -> None:
        super().__init__()
        self._targets = targets
        self._credentials = credentials or Credentials()
        self._entry = Entry()
        self._running: dict[tuple[Target, str], asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Look at the targets again: they may have changed."""
        self._changed.set()

    async def run(self) -> None:
        """Follow all targets until cancelled."""
        async with session() as client, asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                self._settle(client, group)
                await self._changed.wait()

    def _settle(self, client: aiohttp.ClientSession, group: asyncio.TaskGroup) -> None:
        """Start and stop streams until there is one for each target."""
        wanted = self._targets().items()
        for one in self._running.keys() - wanted:
            self._running.pop(one).cancel()
            self.forget(one[0])
        for target, node in sorted(wanted - self._running.keys()):
            self.want(target, node)
            stream = ExporterStream(target, self, client, self._credentials, self._entry)
            task = group.create_task(stream.run(), name=f"stream {target}")
            self._running[target, node] = task
