"""Discovery documents: the groups, their versions, and what can be asked for in each.

Only the legacy form is written, which kube-apiserver builds aggregated discovery from. It refuses
all of a group in which one kind of objects is listed both in and outside of namespaces; whoever
calls this has to see to that.
"""

from collections.abc import Iterable, Mapping

import msgspec

from adapter.api.paths import CUSTOM, EXTERNAL, GROUPS, DiscoveryPath
from adapter.api.resources import Resource


def bodies(
    custom: Iterable[tuple[Resource, str]], external: Iterable[str]
) -> Mapping[DiscoveryPath, bytes]:
    """Return the answer to every discovery path.

    Args:
        custom: metrics of objects, by the kind that has them.
        external: metrics of none.
    """
    listed = {
        CUSTOM: _listed(
            _resource(f"{kind.name}/{metric}", "MetricValueList", namespaced=kind.namespaced)
            for kind, metric in custom
        ),
        EXTERNAL: _listed(
            _resource(name, "ExternalMetricValueList", namespaced=True) for name in external
        ),
    }
    made = {DiscoveryPath(): _body("APIGroupList", groups=[_versions(group) for group in GROUPS])}
    for group, versions in GROUPS.items():
        made[DiscoveryPath(group=group)] = _body("APIGroup", **_versions(group))
        for version in versions:
            made[DiscoveryPath(group=group, version=version)] = _body(
                "APIResourceList", groupVersion=f"{group}/{version}", resources=listed[group]
            )
    return made


def _body(kind: str, **fields: object) -> bytes:
    return msgspec.json.encode({"kind": kind, "apiVersion": "v1", **fields})


def _versions(group: str) -> dict[str, object]:
    versions = [{"groupVersion": f"{group}/{v}", "version": v} for v in GROUPS[group]]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resource(name: str, kind: str, *, namespaced: bool) -> dict[str, object]:
    return {
        "name": name,
        "singularName": "",
        "namespaced": namespaced,
        "kind": kind,
        "verbs": ["get"],
    }


def _listed(resources: Iterable[dict[str, object]]) -> msgspec.Raw:
    """Return a list encoded once for all versions."""
    return msgspec.Raw(msgspec.json.encode(sorted(resources, key=lambda r: str(r["name"]))))
