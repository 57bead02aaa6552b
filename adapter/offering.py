"""All that is offered, by whom: which provider a request belongs to, and what clients discover.

Of two providers that offer the same, the first is asked: what somebody configured comes before
what is there anyway.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from adapter.api.paths import (
    ALL,
    CUSTOM,
    EXTERNAL,
    GROUPS,
    DiscoveryPath,
    ExternalPath,
    MetricPath,
)
from adapter.api.resources import Resource, Resources
from adapter.api.status import Reason, Refusal
from adapter.provider import CustomMetrics, ExternalMetrics, Offer
from slicewatch.suggestion import did_you_mean

# A message names no more than this many metrics or kinds.
MOST_NAMED = 40


class Offering:
    """The providers of both APIs.

    Args:
        custom, external: in the order of precedence.
        resources: kinds of objects by the names that clients use.
    """

    def __init__(
        self,
        custom: Sequence[CustomMetrics],
        external: Sequence[ExternalMetrics] = (),
        resources: Resources | None = None,
    ) -> None:
        self.resources = resources or Resources()
        self._custom = tuple(custom)
        self._external = tuple(external)
        self._revisions: tuple[int, ...] = ()
        self._by_offer: dict[tuple[Resource, str], CustomMetrics] = {}
        self._by_name: dict[str, ExternalMetrics] = {}
        self._discovery: Mapping[DiscoveryPath, bytes] = {}
        self._refresh()

    def discovery(self, path: DiscoveryPath) -> bytes:
        """Return the answer to a discovery path.

        kube-apiserver builds aggregated discovery from these.
        """
        self._refresh()
        return self._discovery[path]

    def of(self, path: MetricPath) -> CustomMetrics:
        """Return who knows a metric of objects.

        Raises:
            Refusal: nobody does; the message says what is known.
        """
        self._refresh()
        resource = self.resources.find(path.resource)
        found = None if resource is None else self._by_offer.get((resource, path.metric))
        if found is None:
            raise not_found(path, self._hint(path))
        return found

    def of_external(self, path: ExternalPath) -> ExternalMetrics:
        """Return who knows an external metric.

        Raises:
            Refusal: nobody does.
        """
        self._refresh()
        found = self._by_name.get(path.metric.lower())
        if found is None:
            known = self._by_name
            names = f"known are {_named(known)}{did_you_mean(path.metric, known)}"
            raise Refusal(
                Reason.NotFound,
                f"the server could not find the external metric {path.metric}; "
                + (names if known else "no external metrics are configured"),
            )
        return found

    def _hint(self, path: MetricPath) -> str:
        """Say what there is instead: other kinds with the metric, or other metrics."""
        kinds = [resource.name for resource, metric in self._by_offer if metric == path.metric]
        if kinds:
            return f"; it is served for {_named(kinds)}"
        metrics = dict.fromkeys(metric for _, metric in self._by_offer)
        return f"; known metrics are {_named(metrics)}{did_you_mean(path.metric, metrics)}"

    def _refresh(self) -> None:
        custom = (provider.revision for provider in self._custom)
        external = (provider.revision for provider in self._external)
        revisions = (self.resources.revision, *custom, *external)
        if revisions == self._revisions:
            return
        self._revisions = revisions
        self._by_offer, self._by_name = {}, {}
        for provider in self._custom:
            for offer in provider.offers():
                self._by_offer.setdefault((offer.resource, offer.metric), provider)
        names: dict[str, str] = {}
        for source in self._external:
            for name in source.names():
                self._by_name.setdefault(name.lower(), source)
                names.setdefault(name.lower(), name)
        offers = [Offer(resource=r, metric=m) for r, m in self._by_offer]
        self._discovery = _bodies(offers, names.values())


def not_found(path: MetricPath, more: str) -> Refusal:
    """Return the refusal for a metric that does not exist for an object; ``more`` says why."""
    whose = path.resource if path.name == ALL else f"{path.resource} {path.name}"
    return Refusal(
        Reason.NotFound, f"the server could not find the metric {path.metric} for {whose}{more}"
    )


def _named(names: Iterable[str]) -> str:
    known = list(dict.fromkeys(names))
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    return ", ".join(known[:MOST_NAMED]) + more


def _versions(group: str) -> dict[str, object]:
    versions = [{"groupVersion": f"{group}/{v}", "version": v} for v in GROUPS[group]]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _custom_resource(offer: Offer) -> dict[str, object]:
    return {
        "name": f"{offer.resource.name}/{offer.metric}",
        "singularName": "",
        "namespaced": offer.resource.namespaced,
        "kind": "MetricValueList",
        "verbs": ["get"],
    }


def _external_resource(name: str) -> dict[str, object]:
    return {
        "name": name,
        "singularName": "",
        "namespaced": True,
        "kind": "ExternalMetricValueList",
        "verbs": ["get"],
    }


def _bodies(offers: Iterable[Offer], names: Iterable[str]) -> dict[DiscoveryPath, bytes]:
    resources = {
        CUSTOM: [_custom_resource(offer) for offer in offers],
        EXTERNAL: [_external_resource(name) for name in names],
    }
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
                    "resources": sorted(resources[group], key=lambda r: str(r["name"])),
                }
            )
    return made
