"""All objects of one selection, kept as the API server has them by one list and a watch.

``refresh`` and ``follow`` are the single passes; ``run`` repeats them for ever. Who needs an
index registers a listener and is told every change, also those that a new list reveals.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, Generic

import structlog

from slicewatch.kube.backoff import Backoff
from slicewatch.kube.errors import Gone, KubeError
from slicewatch.kube.objects import Kind, O, Selection
from slicewatch.kube.protocol import Change, Event, Kube

log = structlog.get_logger(__name__)

PAGE_SIZE: Final = 500

Key = tuple[str, str]


class Cache(Generic[O]):
    """Read-only view of a kind; synced once the first list is complete.

    Attributes:
        synced: the first list is in.
        fault: why the newest state may be missing at the moment; empty while the watch is open.
    """

    def __init__(
        self,
        kube: Kube,
        kind: Kind[O],
        selection: Selection | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self._kube = kube
        self.kind = kind
        self.selection = selection or Selection()
        self._waits = backoff or Backoff()
        self._objects: dict[Key, O] = {}
        self._version = ""
        self._listeners: list[Callable[[O | None, O | None], None]] = []
        self._error: KubeError | None = None
        self.synced = False
        self.fault = "not listed yet"

    @property
    def objects(self) -> Mapping[Key, O]:
        """The objects by namespace and name."""
        return self._objects

    def listen(self, listener: Callable[[O | None, O | None], None]) -> None:
        """Call ``listener`` with the state before and after each change; None is absence."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Keep the objects current until cancelled.

        Waits a moment between any two watches, longer after failures: neither a server that
        ends each watch at once nor one that forgets every version is asked without pause.
        """
        while True:
            try:
                if not self._version:
                    await self.refresh()
                await self.follow()
            except Gone:
                self._version = ""
            except KubeError as error:
                self._failed(error)
            await asyncio.sleep(self._waits.next_seconds())

    async def refresh(self) -> None:
        """List everything once, page by page, and replace what is held.

        Raises:
            KubeError: a page failed; what is held stays.
        """
        found: dict[Key, O] = {}
        more = ""
        while True:
            page = await self._kube.list(self.kind, self.selection, limit=PAGE_SIZE, more=more)
            found.update((o.key, o) for o in page.objects)
            if not (more := page.more):
                break
        for key in self._objects.keys() - found.keys():
            self._set(key, None)
        for key, new in found.items():
            self._set(key, new)
        self._version = page.version
        if not self.synced:
            log.info("listed", kind=self.kind.name, objects=len(found))
        self.synced = True

    async def follow(self) -> None:
        """Take in one watch until the server ends it.

        Raises:
            Gone: the version is forgotten; ``refresh`` is needed.
            KubeError: the watch broke; it can go on from where it was.
        """
        events = self._kube.watch(self.kind, self.selection, version=self._version)
        try:
            async for event in events:
                self._take(event)
        finally:
            await events.aclose()

    def _take(self, event: Event[O]) -> None:
        self.fault, self._error = "", None
        if event.object is not None:
            gone = event.change is Change.DELETED
            self._set(event.object.key, None if gone else event.object)
        if event.version not in {"", self._version}:
            self._version = event.version
            self._waits.reset()

    def _set(self, key: Key, new: O | None) -> None:
        old = self._objects.get(key)
        if new is None:
            self._objects.pop(key, None)
        else:
            self._objects[key] = new
        if old != new:
            for listener in self._listeners:
                listener(old, new)

    def _failed(self, error: KubeError) -> None:
        """Say each kind of fault once: an API server that is away for an hour is one line."""
        if type(error) is not type(self._error):
            log.warning("watch failed", kind=self.kind.name, error=str(error))
        self.fault, self._error = str(error), error
