"""What the APIs offer, as clients discover it. Built once, since the catalog does not change."""

from typing import Final

import msgspec

from adapter.api.paths import CUSTOM, GROUPS, DiscoveryPath, Kind
from slicewatch.catalog import CATALOG

NAMESPACED: Final = {Kind.POD: True, Kind.NODE: False, Kind.NAMESPACE: False}


def _versions(group: str) -> dict[str, object]:
    versions = [{"groupVersion": f"{group}/{v}", "version": v} for v in GROUPS[group]]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resource(kind: Kind, metric: str) -> dict[str, object]:
    return {
        "name": f"{kind}/{metric}",
        "singularName": "",
        "namespaced": NAMESPACED[kind],
        "kind": "MetricValueList",
        "verbs": ["get"],
    }


def _resources(group: str) -> list[dict[str, object]]:
    if group != CUSTOM:
        return []
    offered = [_resource(kind, m.name) for kind in Kind for m in CATALOG.served()]
    return sorted(offered, key=lambda resource: str(resource["name"]))


def _bodies() -> dict[DiscoveryPath, bytes]:
    encode = msgspec.json.encode
    groups = [_versions(group) for group in GROUPS]
    made = {
        DiscoveryPath(): encode({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }
    for group, versions in GROUPS.items():
        head = {"kind": "APIGroup", "apiVersion": "v1"}
        made[DiscoveryPath(group=group)] = encode(head | _versions(group))
        for version in versions:
            made[DiscoveryPath(group=group, version=version)] = encode(
                {
                    "kind": "APIResourceList",
                    "apiVersion": "v1",
                    "groupVersion": f"{group}/{version}",
                    "resources": _resources(group),
                }
            )
    return made


BODIES: Final = _bodies()
"""The answer to every discovery path. kube-apiserver builds aggregated discovery from these."""
