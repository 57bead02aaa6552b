"""All objects of one selection, kept in step with the API server by a list and a watch.

``refresh`` and ``follow`` are single passes; ``run`` repeats them forever. Anyone who needs an
index registers a listener and hears of every change, including those that a new list reveals.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, Generic

from slicewatch.kube.errors import GoneError, KubeError, MalformedError
from slicewatch.kube.objects import Kind, O, Selection
from slicewatch.kube.protocol import Change, Event, Kube
from slicewatch.service import logs
from slicewatch.service.backoff import Backoff

log = logs.logger(__name__)

PAGE_SIZE: Final = 500
MOST_PAGES: Final = 2000
# After so many in a row, changes may have been missed for too long: list again.
MOST_FAILURES: Final = 3

Key = tuple[str, str]


class Cache(Generic[O]):
    """Read-only view of a kind; synced once the first list is complete.

    Attributes:
        synced: the first list is complete.
        fault: why recent changes may be missing; empty while the watch is open.
        skipped: objects in the last list that cannot be read and are left out.
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
        self._failures = 0
        self._said: set[type[KubeError]] = set()
        self.synced = False
        self.skipped = 0
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

        Pauses between any two watches, longer after failures, so as not to hammer a server that
        ends every watch at once or forgets every version.
        """
        while True:
            try:
                if not self._version:
                    await self.refresh()
                await self.follow()
            except KubeError as error:
                self._failed(error)
            await asyncio.sleep(self._waits.next_seconds())

    async def refresh(self) -> None:
        """List everything once, page by page, and replace what is held.

        Raises:
            KubeError: a page failed, or they do not end; what is held is kept.
        """
        found, version, skipped = await self._listed()
        for key in self._objects.keys() - found.keys():
            self._set(key, None)
        for key, new in found.items():
            self._set(key, new)
        self._version = version
        if not self.synced:
            log.info("listed", kind=self.kind.name, objects=len(found))
        if skipped > self.skipped:
            log.warning("cannot read some objects", kind=self.kind.name, objects=skipped)
        self.synced, self.skipped = True, skipped

    async def _listed(self) -> tuple[dict[Key, O], str, int]:
        """Return all objects, their version, and how many more cannot be read."""
        found: dict[Key, O] = {}
        skipped, more = 0, ""
        for _ in range(MOST_PAGES):
            before = len(found) + skipped
            page = await self._kube.list(self.kind, self.selection, limit=PAGE_SIZE, more=more)
            found.update((o.key, o) for o in page.objects)
            skipped, more = skipped + page.skipped, page.more
            if not more:
                return found, page.version, skipped
            if len(found) + skipped == before:
                break
        raise MalformedError(f"the list of {self.kind.plural} does not end")

    async def follow(self) -> None:
        """Apply the events of one watch until the server ends it.

        Raises:
            GoneError: the version has been forgotten; ``refresh`` is needed.
            KubeError: the watch broke; it can resume where it was.
        """
        events = self._kube.watch(self.kind, self.selection, version=self._version)
        try:
            async for event in events:
                self._take(event)
        finally:
            await events.aclose()

    def _take(self, event: Event[O]) -> None:
        self.fault = ""
        if event.object is not None:
            gone = event.change is Change.DELETED
            self._set(event.object.key, None if gone else event.object)
        if event.version not in {"", self._version}:
            self._version = event.version
            self._waits.reset()
            self._failures = 0
            self._said.clear()

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
        """Resume where the watch was, or list again if that cannot or does not work.

        Logs each kind of fault once: an API server that is down for an hour is one line.
        """
        self._failures += 1
        if isinstance(error, GoneError | MalformedError) or self._failures >= MOST_FAILURES:
            self._version, self._failures = "", 0
        if isinstance(error, GoneError):
            return  # Routine after a while without changes.
        if type(error) not in self._said:
            self._said.add(type(error))
            log.warning("watch failed", kind=self.kind.name, error=str(error))
        self.fault = str(error)
