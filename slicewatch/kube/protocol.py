"""The seam: what we ask of a Kubernetes API server, real or fake."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol

from slicewatch.kube.objects import Kind, O, Selection

Json = Mapping[str, object]
"""An object as the API server writes it."""


class Change(StrEnum):
    """What happened to a watched object. A BOOKMARK only moves the version forward."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(Generic[O]):
    """One event of a watch. ``object`` is the new state, or the last one before a deletion."""

    change: Change
    version: str
    object: O | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[O]):
    """One page of a list.

    Attributes:
        version: of the whole list; a watch can start here.
        more: token for the next page; empty on the last one.
        skipped: number of objects that cannot be read and are left out.
    """

    objects: tuple[O, ...]
    version: str
    more: str = ""
    skipped: int = 0


class Kube(Protocol):
    """Five verbs. Each raises ``KubeError`` and nothing else, apart from cancellation."""

    async def get(self, kind: Kind[O], name: str, namespace: str = "") -> O:
        """Return one object."""
        ...

    async def list(
        self, kind: Kind[O], selection: Selection, *, limit: int, more: str = ""
    ) -> Page[O]:
        """Return at most ``limit`` objects; all pages of a list are of one version.

        Raises:
            GoneError: the version behind ``more`` has been forgotten; start again.
        """
        ...

    def watch(
        self, kind: Kind[O], selection: Selection, *, version: str
    ) -> AsyncGenerator[Event[O], None]:
        """Yield what happens after ``version``, until the server ends the watch normally.

        The first event is a BOOKMARK of ``version`` itself: the watch is open.

        Raises:
            GoneError: the version has been forgotten; list again.
        """
        ...

    async def create(self, kind: Kind[O], body: Json, namespace: str = "") -> O:
        """Create an object; kind and API version are filled in.

        Raises:
            ConflictError: it already exists.
        """
        ...

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
        """Apply a JSON merge patch (RFC 7386) and return the new state.

        Args:
            kind: of the object.
            name: of the object.
            namespace: of the object; empty for one of the cluster.
            patch: the fields to change.
            subresource: ``status`` to write that, and nothing of the spec.
            strategic: apply a strategic merge patch instead, which merges conditions by ``type``
                where the other one replaces whole lists.

        Raises:
            ConflictError: the patch names a ``resourceVersion`` that is not the current one.
        """
        ...
