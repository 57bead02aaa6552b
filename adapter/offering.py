"""All that is offered, by whom: which provider a request belongs to, and what clients discover.

Of two providers that offer the same, the first is asked: what somebody configured comes before
what is there anyway. What no client could ask for is not listed, and its name is logged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from adapter.aliases import unanswered
from adapter.api.discovery import bodies
from adapter.api.paths import ALL, DiscoveryPath, ExternalPath, MetricPath
from adapter.api.resources import Resource, Resources
from adapter.api.status import Reason, Refusal
from adapter.provider import CustomMetrics, ExternalMetrics, Offer
from slicewatch.service import logs
from slicewatch.suggestion import did_you_mean

log = logs.logger(__name__)

T = TypeVar("T")

# A message names no more than this many metrics or kinds.
MOST_NAMED = 40
# Likeness to a wrong name is sought among no more than this many, since everybody waits for it.
MOST_COMPARED = 200
LONGEST_COMPARED = 256
# Kubernetes reads these in the place of an external metric as a part of the namespace, and asks
# for rights to that.
PARTS_OF_NAMESPACES = frozenset({"status", "finalize"})


class Offering:
    """The providers of both APIs.

    Args:
        custom, external: in the order of precedence.
        resources: kinds of objects by the names that clients use; those that are offered are
            learned.
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
        self._by_offer: dict[tuple[str, str], CustomMetrics] = {}
        self._by_name: dict[str, ExternalMetrics] = {}
        self._discovery: Mapping[DiscoveryPath, bytes] = {}
        self._faults: list[str] = []
        self._refresh()

    def discovery(self, path: DiscoveryPath) -> bytes:
        """Return the answer to a discovery path.

        kube-apiserver builds aggregated discovery from these, and tells by one of them whether
        the API is available: they never depend on a backend.
        """
        self._refresh()
        return self._discovery[path]

    def canonical(self, path: MetricPath) -> MetricPath:
        """Return a path with the name and the scope of the kind of objects that it is about.

        Autoscalers ask for objects that are in no namespace, such as nodes, inside their own.

        Raises:
            Refusal: objects of this kind are in namespaces, and the path names none.
        """
        self._refresh()
        resource = self.resources.find(path.resource)
        if resource is None:
            return path
        if resource.namespaced and not path.namespace:
            where = f"/namespaces/<namespace>/{resource.name}/{path.name}/{path.metric}"
            raise not_found(path, f": {resource.name} are in namespaces; ask at {where}")
        namespace = path.namespace if resource.namespaced else ""
        if (path.resource, path.namespace) == (resource.name, namespace):
            return path
        return replace(path, resource=resource.name, namespace=namespace)

    def of(self, path: MetricPath) -> CustomMetrics:
        """Return who knows a metric of objects; the path is canonical.

        Raises:
            Refusal: nobody does; the message says what is known.
        """
        self._refresh()
        found = self._by_offer.get((path.resource, path.metric))
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
            raise Refusal(
                Reason.NotFound,
                f"the server could not find the external metric {path.metric}; "
                + (_external_fault(path.metric) or self._external_hint(path.metric)),
            )
        return found

    def _hint(self, path: MetricPath) -> str:
        """Say what there is instead: other kinds with the metric, or other metrics."""
        if reason := unanswered(path.metric):
            return f": {reason}"
        kinds = [resource for resource, metric in self._by_offer if metric == path.metric]
        if kinds:
            return f"; it is served for {_named(kinds)}"
        same = [metric for resource, metric in self._by_offer if resource == path.resource]
        if not same:
            return f"; metrics are served for {_named(kind for kind, _ in self._by_offer)}"
        return f"; those of {path.resource} are {_named(same)}{_suggestion(path.metric, same)}"

    def _external_hint(self, metric: str) -> str:
        names = list(self._by_name)
        known = f"known are {_named(names)}{_suggestion(metric, names)}"
        return known if names else "no external metrics are configured"

    def _refresh(self) -> None:
        custom = (provider.revision for provider in self._custom)
        external = (provider.revision for provider in self._external)
        providers = (*custom, *external)
        if (self.resources.revision, *providers) == self._revisions:
            return
        faults: list[str] = []
        kinds = self._find_custom(faults)
        names = self._find_external(faults)
        self._discovery = bodies(kinds, names)
        # The kinds learned meanwhile are part of what was found.
        self._revisions = (self.resources.revision, *providers)
        if faults and faults != self._faults:
            log.warning("not offered", count=len(faults), first=faults[:MOST_NAMED])
        self._faults = faults

    def _find_custom(self, faults: list[str]) -> list[tuple[Resource, str]]:
        """Find who offers which metric of which kind of objects, and return what is to be listed."""
        self._by_offer = {}
        listed: list[tuple[Resource, str]] = []
        for provider in self._custom:
            for offer in _contained(provider.offers):
                kind = self._known(offer.resource)
                if fault := _custom_fault(offer, kind):
                    faults.append(fault)
                elif (kind.name, offer.metric) not in self._by_offer:
                    self._by_offer[kind.name, offer.metric] = provider
                    listed.append((kind, offer.metric))
        return listed

    def _find_external(self, faults: list[str]) -> list[str]:
        """Find who offers which external metric, and return the names to be listed."""
        self._by_name = {}
        listed: dict[str, str] = {}
        for provider in self._external:
            for name in _contained(provider.names):
                if fault := _external_fault(name):
                    faults.append(f"external metric {name!r}: {fault}")
                    continue
                first = listed.setdefault(name.lower(), name)
                self._by_name.setdefault(name.lower(), provider)
                if first != name:
                    faults.append(
                        f"external metric {name!r}: {first!r} is asked for by the same name, "
                        "since clients write it in lower case: rename one"
                    )
        return list(listed.values())

    def _known(self, resource: Resource) -> Resource:
        """Return a kind of objects as it is known, and know it from now on."""
        known = self.resources.find(resource.name)
        if known is not None and known.name == resource.name:
            return known
        self.resources.learn(resource)
        return resource


def not_found(path: MetricPath, more: str) -> Refusal:
    """Return the refusal for a metric that does not exist for an object; ``more`` says why."""
    whose = path.resource if path.name == ALL else f"{path.resource} {path.name}"
    return Refusal(
        Reason.NotFound, f"the server could not find the metric {path.metric} for {whose}{more}"
    )


def _contained(offered: Callable[[], Iterable[T]]) -> list[T]:
    """Return what a provider offers; a bug costs its own offers, never the whole API."""
    try:
        return list(offered())
    except Exception:
        log.exception("a provider cannot say what it offers")
        return []


def _custom_fault(offer: Offer, known: Resource) -> str:
    """Return why a metric cannot be offered, or nothing."""
    what = f"metric {offer.metric!r} of {offer.resource.name}"
    if offer.resource.namespaced != known.namespaced:
        scope = "in a namespace" if known.namespaced else "in no namespace"
        return f"{what}: objects of this kind are {scope}"
    fault = _segment_fault(offer.metric)
    return f"{what}: {fault}" if fault else ""


def _external_fault(name: str) -> str:
    """Return why an external metric of a name cannot be offered, or nothing."""
    if name.lower() in PARTS_OF_NAMESPACES:
        return f"Kubernetes takes {name} in its place for a part of the namespace: rename it"
    return _segment_fault(name)


def _segment_fault(name: str) -> str:
    """Return why a name cannot be a segment of a path, which autoscalers check."""
    if name in {"", ".", ".."} or "/" in name or "%" in name:
        return "a name must not be empty, '.' or '..', nor contain '/' or '%': rename it"
    return ""


def _suggestion(wrong: str, names: Sequence[str]) -> str:
    if len(wrong) > LONGEST_COMPARED:  # Nothing is like it, and it would be kept.
        return ""
    return _compared(wrong, tuple(names[:MOST_COMPARED]))


# An autoscaler with a wrong name asks four times a minute; to compare costs milliseconds.
_compared = lru_cache(maxsize=256)(did_you_mean)


def _named(names: Iterable[str]) -> str:
    known = list(dict.fromkeys(names))
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    return ", ".join(known[:MOST_NAMED]) + more
