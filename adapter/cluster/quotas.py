"""What ResourceQuotas say of devices. Pure.

Taken from their status, which is what the API server enforces. It counts requests of extended
resources only: a bound on their limits has a hard part and no used one.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from adapter.cluster.resources import count
from slicewatch.catalog.readings.cluster import Quotas
from slicewatch.kube.objects import ResourceQuota

_BOUND: Final = re.compile(r"(requests|limits)\.(nvidia\.com/.+)")

_Key = tuple[str, ...]


def quotas(found: Iterable[ResourceQuota]) -> Quotas:
    """Return hard and used devices by namespace, quota, kind of bound and resource."""
    hard: dict[_Key, int] = {}
    used: dict[_Key, int] = {}
    for quota in found:
        hard |= _bounds(quota, quota.status.hard)
        used |= _bounds(quota, quota.status.used)
    # Of a bound of 0, which forbids, no part can be used.
    ratios = {key: used[key] / bound for key, bound in hard.items() if bound and key in used}
    return Quotas(hard=hard, used=used, used_ratio=ratios)


def _bounds(quota: ResourceQuota, quantities: Mapping[str, str]) -> dict[_Key, int]:
    namespace, name = quota.key
    return {
        (namespace, name, found[1], found[2]): number
        for bound, quantity in quantities.items()
        if (found := _BOUND.fullmatch(bound)) and (number := count(quantity)) is not None
    }
