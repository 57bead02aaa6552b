"""Every write to the cluster passes here: it is made and counted, or in a dry run only counted.

Both are a ``Kube`` and answer alike, so that a dry run goes the same way as a real one up to the
last step: the same patches, conflicts and errors, and nothing changed.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from slicewatch.kube import errors, patches
from slicewatch.kube.objects import CONFIG_MAP, Kind, O, Selection
from slicewatch.kube.protocol import Event, Json, Kube, Page
from slicewatch.service import logs

log = logs.logger(__name__)

Note = Callable[[str, str], None]
"""Told of each write: what was written, such as ``node/status``, and its outcome."""

DONE: Final = "done"
DRY_RUN: Final = "dry_run"
# One node has a handful of places to write to, and its events.
MOST_REMEMBERED: Final = 256
SHARED: Final = frozenset({CONFIG_MAP.plural})

_OUTCOMES: Final = {
    errors.NotFoundError: "not_found",
    errors.ForbiddenError: "forbidden",
    errors.ConflictError: "conflict",
    errors.GoneError: "gone",
    errors.MalformedError: "malformed",
    errors.UnavailableError: "unavailable",
}


class Writes:
    """``Kube`` that counts what is written through it."""

    outcome: str = DONE

    def __init__(self, kube: Kube, note: Note) -> None:
        self._kube = kube
        self._note = note

    async def get(self, kind: Kind[O], name: str, namespace: str = "") -> O:
        """Return one object."""
        return await self._kube.get(kind, name, namespace)

    async def list(
        self, kind: Kind[O], selection: Selection, *, limit: int, more: str = ""
    ) -> Page[O]:
        """Return one page."""
        return await self._kube.list(kind, selection, limit=limit, more=more)

    def watch(
        self, kind: Kind[O], selection: Selection, *, version: str
    ) -> AsyncGenerator[Event[O], None]:
        """Yield events."""
        return self._kube.watch(kind, selection, version=version)

    async def create(self, kind: Kind[O], body: Json, namespace: str = "") -> O:
        """Create an object."""
        with self._counting(_what(kind)):
            return await self._kube.create(kind, body, namespace)

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
        with self._counting(_what(kind, subresource)):
            return await self._kube.patch(
                kind,
                name,
                patch,
                namespace=namespace,
                subresource=subresource,
                strategic=strategic,
            )

    @contextmanager
    def _counting(self, what: str) -> Iterator[None]:
        try:
            yield
        except errors.KubeError as error:
            self._note(what, _OUTCOMES.get(type(error), "refused"))
            raise
        except asyncio.CancelledError:
            self._note(what, "cancelled")
            raise
        self._note(what, self.outcome)


class DryRun(Writes):
    """``Writes`` that makes none, and says in the log what each would have been.

    What it would have written to nodes and events it shows to whoever reads them through it, so
    that a cordon that was never made is also taken back once. ConfigMaps are read as they are,
    since others write them as well; the same write to one of them is said and counted once.
    """

    outcome = DRY_RUN

    def __init__(self, kube: Kube, note: Note) -> None:
        super().__init__(kube, note)
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def get(self, kind: Kind[O], name: str, namespace: str = "") -> O:
        """Return one object as it would be."""
        return _converted(await self._current(kind, name, namespace), kind)

    async def create(self, kind: Kind[O], body: Json, namespace: str = "") -> O:
        """Say what would be created."""
        metadata = {"uid": "", "resourceVersion": "", **_metadata(body), "namespace": namespace}
        made = {**body, "metadata": metadata}
        name = metadata["name"]
        try:
            await self._current(kind, name, namespace)
        except errors.NotFoundError:
            self._keep("create", _what(kind), kind.path(namespace, name), _Kept(made=made))
            return _converted(made, kind)
        self._note(_what(kind), _OUTCOMES[errors.ConflictError])
        raise errors.ConflictError(f"create {kind.path(namespace, name)}: it already exists")

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
        """Say what would be changed."""
        path, what = kind.path(namespace, name), _what(kind, subresource)
        part = _without_version(patches.limited(patch, subresource))
        try:
            current = await self._current(kind, name, namespace)
            patches.check_version(path, patch, current)
        except errors.KubeError as error:
            self._note(what, _OUTCOMES.get(type(error), "refused"))
            raise
        merge = patches.strategic if strategic else patches.merged
        changed = _converted(merge(current, part), kind)
        old = self._kept.get(path, _Kept())
        kept = replace(old, changes=_composed(old.changes, part))
        if old.made is not None:
            kept = _Kept(made=merge(old.made, part))
        self._keep("patch", what, path, kept, part)
        return changed

    async def _current(self, kind: Kind[O], name: str, namespace: str) -> dict[str, Any]:
        kept = self._kept.get(kind.path(namespace, name), _Kept())
        if kind.plural in SHARED:
            kept = _Kept()
        try:
            found = await self._kube.get(kind, name, namespace)
        except errors.NotFoundError:
            if kept.made is None:
                raise
            return dict(kept.made)
        real = msgspec.json.decode(msgspec.json.encode(found))
        current: dict[str, Any] = patches.strategic(real, kept.changes)
        return current

    def _keep(
        self, verb: str, what: str, path: str, kept: "_Kept", body: Json | None = None
    ) -> None:
        """Remember what would have been written, and say it unless that has been said already."""
        if self._kept.get(path) == kept:
            return
        self._kept[path] = kept
        self._kept.move_to_end(path)
        if len(self._kept) > MOST_REMEMBERED:
            self._kept.popitem(last=False)
        self._note(what, self.outcome)
        text = msgspec.json.encode(body or kept.made).decode()
        log.info("dry run: not written", verb=verb, what=what, path=path, body=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What became of an object without being written.

    Attributes:
        made: the whole of one that does not exist.
        changes: to one that does, as a strategic merge patch.
    """

    made: Json | None = None
    changes: Json = field(default_factory=dict)


def _composed(old: Json, new: Json) -> dict[str, Any]:
    """Return the patch that does what two in succession do.

    What the first one set and the second removes is as if it had never been; a null that removes
    what is really there stays.
    """
    result: dict[str, Any] = dict(old)
    for key, value in new.items():
        was = result.get(key)
        if value is None and was is not None:
            del result[key]
        elif isinstance(value, Mapping):
            result[key] = _composed(was if isinstance(was, Mapping) else {}, value)
        elif key == "conditions" and isinstance(value, list):
            of = {one["type"]: one for one in (*(was or ()), *value)}
            result[key] = list(of.values())
        else:
            result[key] = value
    return result


def _what(kind: Kind[Any], subresource: str = "") -> str:
    return kind.name.lower() + (f"/{subresource}" if subresource else "")


def _metadata(body: Json) -> Mapping[str, Any]:
    metadata = body.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _without_version(body: Json) -> Json:
    kept = {k: v for k, v in _metadata(body).items() if k != "resourceVersion"}
    return {**body, "metadata": kept} if "metadata" in body else body


def _converted(body: Json, kind: Kind[O]) -> O:
    try:
        return msgspec.convert(body, kind.type)
    except msgspec.ValidationError as error:
        raise errors.MalformedError(f"no {kind.name} would come of it: {error}") from error
