"""Kinds of objects that a rule names and nobody here knows: asked of the API server once.

Only the group that a rule names is ever asked for: a cluster may have hundreds of groups, and
enumerating them is what made start-ups of adapters take minutes.
"""

from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

import msgspec

from adapter.api.resources import Resource, Resources
from slicewatch.kube.errors import KubeError, NotFoundError
from slicewatch.promrules.mapping import Target
from slicewatch.service import logs

log = logs.logger(__name__)

# Labels that a template takes for kinds may name any number of groups that do not exist.
MOST_GROUPS: Final = 32

D = TypeVar("D")


class Discovery(Protocol):
    """What is needed of an API server: ``slicewatch.kube.client.ApiServer`` has it."""

    async def read(self, path: str, form: type[D]) -> D:
        """Return the answer to a path, decoded.

        Raises:
            KubeError: there is none.
        """
        ...


class _Version(msgspec.Struct, frozen=True):
    version: str


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    preferred_version: _Version


class _ApiResource(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    kind: str
    namespaced: bool
    singular_name: str = ""


class _ApiResources(msgspec.Struct, frozen=True):
    resources: tuple[_ApiResource, ...] = ()


class Kinds:
    """Learns kinds into ``resources``.

    Args:
        server: None where there is no API server to ask; unknown kinds stay so then.
    """

    def __init__(self, resources: Resources, server: Discovery | None = None) -> None:
        self.resources = resources
        self._server = server
        self._groups: dict[str, tuple[Resource, ...]] = {}

    async def learn(self, targets: Iterable[Target]) -> bool:
        """Learn the kinds of labels; tell whether nothing is left to be learned.

        A group that cannot be read now is left for the next call.
        """
        complete = True
        for target in targets:
            if self.resources.find(target.name) is None:
                complete = await self._learn(target) and complete
        return complete

    async def _learn(self, target: Target) -> bool:
        if self._server is None:
            return True
        if target.group not in self._groups:
            if len(self._groups) >= MOST_GROUPS:
                return True
            try:
                self._groups[target.group] = await _kinds(self._server, target.group)
            except NotFoundError:
                self._groups[target.group] = ()
            except KubeError as error:
                log.warning("kinds are not known yet", group=target.group, error=str(error))
                return False
        names = {kind.plural: kind for kind in self._groups[target.group]}
        names |= {kind.singular: kind for kind in self._groups[target.group]}
        found = names.get(target.resource)
        if found is not None:
            self.resources.learn(found)
        return True


async def _kinds(server: Discovery, group: str) -> tuple[Resource, ...]:
    """Return the kinds of one group in its preferred version."""
    if group:
        version = (await server.read(f"/apis/{group}", _Group)).preferred_version.version
        path = f"/apis/{group}/{version}"
    else:
        version, path = "v1", "/api/v1"
    listed = await server.read(path, _ApiResources)
    return tuple(
        Resource(
            group=group,
            version=version,
            plural=one.name,
            singular=one.singular_name or one.kind.lower(),
            kind=one.kind,
            namespaced=one.namespaced,
        )
        for one in listed.resources
        if "/" not in one.name  # a subresource, such as pods/status
    )
