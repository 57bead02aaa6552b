"""How current what we hold of the cluster is: a watch that fails may have missed anything."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from slicewatch.kube.cache import Cache
from slicewatch.kube.objects import Node, Pod, PriorityClass, ResourceQuota

AnyCache = Cache[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """The objects of the cluster that facts are derived from."""

    pods: Cache[Pod]
    nodes: Cache[Node]
    quotas: Cache[ResourceQuota]
    priority_classes: Cache[PriorityClass]


class OutdatedError(Exception):
    """What is held of the cluster is incomplete, or may be too old; says why."""


class Freshness:
    """When each cache was last seen to be current.

    Args:
        max_age_seconds: for so long, what a cache holds may be used while its watch fails.
        monotonic: seconds on a clock that is never set.
    """

    def __init__(
        self, *, max_age_seconds: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_age_seconds = max_age_seconds
        self._monotonic = monotonic
        self._current_at: dict[str, float] = {}

    def age_seconds(self, caches: Iterable[AnyCache]) -> float:
        """Return for how long, at most, changes of one of the caches may have been missed.

        Whoever asks rarely is told an age that is too long, never one that is too short.

        Raises:
            OutdatedError: one is not listed yet, or its watch has failed for too long.
        """
        return max((self._age_seconds(cache) for cache in caches), default=0.0)

    def _age_seconds(self, cache: AnyCache) -> float:
        now, name = self._monotonic(), cache.kind.plural
        if not cache.synced:
            raise OutdatedError(f"the {name} of the cluster are not listed yet: {cache.fault}")
        if not cache.fault:
            self._current_at[name] = now
        age = now - self._current_at.setdefault(name, now)
        if age > self._max_age_seconds:
            raise OutdatedError(
                f"the watch on {name} may have missed changes for {age:.0f} s, the limit is "
                f"{self._max_age_seconds:g} s: {cache.fault}"
            )
        return age
