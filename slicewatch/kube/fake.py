"""An API server in memory, for tests and the demo: same errors, versions and watches.

Objects are stored as JSON, as by the real one, and decoded on the way out. It does not validate:
a pod with a nonsense field is stored as it is.
"""

import asyncio
import copy
import uuid
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import msgspec

from slicewatch.kube import errors, patches
from slicewatch.kube.objects import Kind, Metadata, O, Selection
from slicewatch.kube.protocol import Change, Event, Json, Page

_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Record:
    version: int
    change: Change
    plural: str
    body: dict[str, Any]
    before: dict[str, Any] | None

    def seen_by(self, selection: Selection) -> Change | None:
        """Return what a watch of ``selection`` sees: objects enter and leave a selection."""
        entered = self.before is None or not _takes(selection, self.before)
        left = self.change is Change.DELETED or not _takes(selection, self.body)
        if entered:
            return None if left else Change.ADDED
        return Change.DELETED if left else Change.MODIFIED


class FakeKube:
    """``Kube`` without a cluster.

    Inject faults with ``fail_next`` (the next requests), ``break_watches`` (open watches fail),
    ``end_watches`` (they end normally, as after the server's timeout) and ``compact`` (old
    versions and pages are forgotten).
    """

    def __init__(self) -> None:
        self._bodies: dict[_Key, dict[str, Any]] = {}
        self._history: list[_Record] = []
        self._version = 1
        self._oldest = 0
        self._faults: deque[errors.KubeError] = deque()
        self._wakeup = asyncio.Event()
        self._epoch = 0
        self._break: errors.KubeError | None = None

    def fail_next(self, error: errors.KubeError, times: int = 1) -> None:
        """Answer the next requests with ``error``."""
        self._faults.extend([error] * times)

    def break_watches(self, error: errors.KubeError) -> None:
        """End all open watches with ``error``."""
        self._end_epoch(error)

    def end_watches(self) -> None:
        """End all open watches normally."""
        self._end_epoch(None)

    def compact(self) -> None:
        """Forget all versions but the current one."""
        self._version += 1
        self._oldest = self._version
        self._history.clear()

    async def get(self, kind: Kind[O], name: str, namespace: str = "") -> O:
        """Return one object."""
        await self._arrive()
        return msgspec.convert(self._body(kind, name, namespace), kind.type)

    async def list(
        self, kind: Kind[O], selection: Selection, *, limit: int, more: str = ""
    ) -> Page[O]:
        """Return one page; ``more`` is the version of the first page and the key to go on at."""
        await self._arrive()
        version, _, after = more.partition("/") if more else (str(self._version), "", "")
        if int(version) < self._oldest:
            raise errors.GoneError(f"list {kind.plural}: 410 the version of the page is too old")
        found = [
            (f"{namespace}/{name}", body)
            for (plural, namespace, name), body in sorted(self._bodies.items())
            if plural == kind.plural and _takes(selection, body)
        ]
        rest = [(key, body) for key, body in found if key > after]
        objects = tuple(msgspec.convert(body, kind.type) for _, body in rest[:limit])
        last = f"{version}/{rest[limit - 1][0]}" if len(rest) > limit else ""
        return Page(objects=objects, version=version, more=last)

    async def watch(
        self, kind: Kind[O], selection: Selection, *, version: str
    ) -> AsyncGenerator[Event[O], None]:
        """Yield events; see ``Kube.watch``."""
        await self._arrive()
        epoch, seen = self._epoch, int(version)
        yield Event(change=Change.BOOKMARK, version=version)
        while True:
            wakeup = self._wakeup
            if seen < self._oldest:
                raise errors.GoneError(f"watch {kind.plural}: 410 version {seen} is too old")
            for record in [r for r in self._history if r.version > seen]:
                seen = record.version
                change = record.seen_by(selection) if record.plural == kind.plural else None
                if change is not None:
                    decoded = msgspec.convert(record.body, kind.type)
                    yield Event(change=change, version=str(seen), object=decoded)
            if epoch != self._epoch:
                if self._break is not None:
                    raise self._break
                return
            await wakeup.wait()

    async def create(self, kind: Kind[O], body: Json, namespace: str = "") -> O:
        """Create an object."""
        await self._arrive()
        whole: dict[str, Any] = copy.deepcopy(dict(body))
        metadata = whole.setdefault("metadata", {})
        metadata["namespace"] = namespace
        key = (kind.plural, namespace, metadata["name"])
        if key in self._bodies:
            raise errors.ConflictError(f"create {'/'.join(key)}: 409 it already exists")
        # An API server makes its own; here a simulation may have told it to others already.
        metadata.setdefault("uid", str(uuid.uuid4()))
        whole |= {"apiVersion": kind.api_version, "kind": kind.name}
        return msgspec.convert(self._store(key, whole, Change.ADDED), kind.type)

    async def patch(
        self,
        kind: Kind[O],
        name: str,
        patch: Json,
        *,
        namespace: str = "",
        subresource: str = "",
        strategic: bool = False,
    ) -> O:
        """Apply a merge patch."""
        await self._arrive()
        current = self._body(kind, name, namespace)
        patches.check_version(f"{kind.plural}/{name}", patch, current)
        part = patches.limited(patch, subresource)
        merged = patches.strategic(current, part) if strategic else patches.merged(current, part)
        if merged == current:
            return msgspec.convert(current, kind.type)
        key = (kind.plural, namespace, name)
        return msgspec.convert(self._store(key, merged, Change.MODIFIED), kind.type)

    def delete(self, kind: Kind[O], name: str, namespace: str = "") -> None:
        """Remove an object at once, as another client would."""
        body = self._body(kind, name, namespace)
        del self._bodies[kind.plural, namespace, name]
        self._record(kind.plural, copy.deepcopy(body), Change.DELETED, body)

    async def _arrive(self) -> None:
        await asyncio.sleep(0)
        if self._faults:
            raise self._faults.popleft()

    def _body(self, kind: Kind[O], name: str, namespace: str) -> dict[str, Any]:
        key = (kind.plural, namespace, name)
        if key not in self._bodies:
            raise errors.NotFoundError(f"{kind.path(namespace, name)}: 404 it does not exist")
        return self._bodies[key]

    def _store(self, key: _Key, body: dict[str, Any], change: Change) -> dict[str, Any]:
        self._record(key[0], body, change, self._bodies.get(key))
        self._bodies[key] = body
        return body

    def _record(
        self, plural: str, body: dict[str, Any], change: Change, before: dict[str, Any] | None
    ) -> None:
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        self._history.append(_Record(self._version, change, plural, body, before))
        self._wake()

    def _end_epoch(self, error: errors.KubeError | None) -> None:
        self._break = error
        self._epoch += 1
        self._wake()

    def _wake(self) -> None:
        """Let every open watch look again; each waits on its own event, so none misses one."""
        self._wakeup.set()
        self._wakeup = asyncio.Event()


def _takes(selection: Selection, body: dict[str, Any]) -> bool:
    node = body.get("spec", {}).get("nodeName", "")
    return selection.takes(msgspec.convert(body["metadata"], Metadata), node)
