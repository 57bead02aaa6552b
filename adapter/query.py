"""One question to the metrics API, and what becomes of it for every object that it is about."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from adapter.api.label_selectors import Selector
from adapter.api.paths import ALL, Kind, MetricPath
from adapter.api.status import Reason, Refusal
from adapter.api.values import Item
from adapter.cluster.requests import may_hold_gpu
from adapter.join import Keep, combine, everything, labels_of, serve_of
from adapter.offering import not_found
from adapter.outcome import Absence, Outcome, Part
from adapter.view import NodeView, View
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Metric
from slicewatch.kube.objects import Pod
from slicewatch.service import logs
from slicewatch.wire.layout import Layout

log = logs.logger(__name__)

T = TypeVar("T")

# Per node and reading: distinct metric selectors whose values are kept for the next request.
KEPT_TABLES: Final = 64
SERVED: Final = {metric.name: metric for metric in CATALOG.served()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A path with its selectors, known to be about a metric and a kind that are served."""

    path: MetricPath
    kind: Kind
    metric: Metric[Any]
    objects: Selector
    devices: Selector


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found for one object.

    Attributes:
        expires_at: when its value becomes too old, on the monotonic clock.
        read_at: of the oldest reading in it, in seconds since the epoch.
        item: the encoded value; empty if there is none.
    """

    namespace: str
    name: str
    outcome: Outcome
    node: str = ""
    expires_at: float = -math.inf
    read_at: float = 0.0
    item: bytes = b""

    def missing(self, now: float, max_age_seconds: float) -> tuple[Absence, str] | None:
        """Return why an answer given now lacks the object, with details; None if it does not."""
        if self.outcome.value is None:
            return self.outcome.absence or Absence.NO_VALUE, self.outcome.detail
        if self.expires_at > now:
            return None
        age = now - self.expires_at + max_age_seconds
        return Absence.STALE, f"{age:.1f} s old, the limit is {max_age_seconds:g} s"


def check(path: MetricPath, objects: Selector, devices: Selector) -> Query:
    """Return the query for a path.

    Raises:
        Refusal: no such metric or kind is served.
    """
    metric = SERVED.get(path.metric)
    if metric is None or path.kind is None:
        raise not_found(path, "")
    if path.kind is not Kind.POD and objects.requirements:
        raise Refusal(
            Reason.BadRequest,
            f"labelSelector chooses pods, not {path.kind}; name one, or leave the selector out",
        )
    return Query(path=path, kind=path.kind, metric=metric, objects=objects, devices=devices)


def find(view: View, query: Query) -> list[Found]:
    """Return what is found for each object that a query is about.

    Raises:
        Refusal: it names an object that does not exist or about which nothing is known.
    """
    everyone, name = query.path.name == ALL, query.path.name
    match query.kind:
        case Kind.POD:
            return _pods(view, query, _selected(view, query))
        case Kind.NODE:
            names = view.nodes if everyone else [name]
            return [_contained(_node, view, query, n, name=n) for n in names]
        case Kind.NAMESPACE:
            spaces = _namespaces(view) if everyone else [name]
            return [_contained(_namespace, view, query, n, name=n) for n in spaces]


def _contained(
    make: Callable[[View, Query, T], Found],
    view: View,
    query: Query,
    of: T,
    *,
    name: str,
    namespace: str = "",
) -> Found:
    """Return what ``make`` finds for an object; a bug costs the object, never those beside it."""
    try:
        return make(view, query, of)
    except Refusal:
        raise
    except Exception:
        log.exception(
            "no value for an object", metric=query.metric.name, kind=query.kind, name=name
        )
        return Found(namespace=namespace, name=name, outcome=Outcome(absence=Absence.FAILED))


def _selected(view: View, query: Query) -> Sequence[Pod]:
    path = query.path
    if path.name == ALL:
        return view.pods.select(path.namespace, query.objects)
    pod = view.pods.get(path.namespace, path.name)
    if pod is None:
        raise not_found(path, f"; there is no pod {path.name} in namespace {path.namespace}")
    return (pod,)


def _pods(view: View, query: Query, pods: Sequence[Pod]) -> list[Found]:
    """Return what is found for pods. This loop is the cost of a request for many pods."""
    cached_as = (query.path.version, query.metric.name, query.devices.text)
    tables: dict[str, dict[tuple[str, str], Found]] = {}
    every: list[Found] = []
    for pod in pods:
        node = pod.spec.node_name
        table = tables.get(node)
        if table is None:
            table = tables[node] = _table(view, node, cached_as)
        meta = pod.metadata
        key = (meta.namespace, meta.name)
        found = table.get(key)
        if found is None:
            found = table[key] = _contained(
                _pod, view, query, pod, name=meta.name, namespace=meta.namespace
            )
        every.append(found)
    return every


def _table(view: View, node: str, cached_as: tuple[str, str, str]) -> dict[Any, Any]:
    """Return what is known of the pods of a node by its latest reading; to be filled."""
    seen = view.node(node) if node else None
    if seen is None:
        return {}
    if cached_as not in seen.cache and len(seen.cache) >= KEPT_TABLES:
        seen.cache.clear()
    return seen.cache.setdefault(cached_as, {})


def _pod(view: View, query: Query, pod: Pod) -> Found:
    namespace, name = pod.key
    node = pod.spec.node_name
    seen = view.node(node) if node else None
    if pod.finished:
        outcome = Outcome(absence=Absence.FINISHED, detail=pod.status.phase)
    elif not node:
        outcome = Outcome(absence=Absence.UNSCHEDULED)
    elif seen is None:
        absence = Absence.NO_EXPORTER if may_hold_gpu(pod) else Absence.NO_DEVICE
        outcome = Outcome(absence=absence, detail=f"node {node}")
    else:
        keep = _keep(query.devices, seen.join.layout)
        outcome = seen.join.pod(pod.key, query.metric, keep)
        if outcome.absence is Absence.NO_DEVICE and may_hold_gpu(pod):
            outcome = Outcome(absence=Absence.NOT_ASSIGNED, detail=f"node {node}")
    sources = [] if seen is None else [(seen, outcome.age_seconds)]
    return _found(view, query, outcome, sources, namespace=namespace, name=name, node=node)


def _node(view: View, query: Query, name: str) -> Found:
    seen = view.node(name)
    if seen is None:
        known = f"; known nodes are {', '.join(view.nodes[:20])}" if view.nodes else ""
        raise not_found(query.path, f"; no exporter reports for node {name}{known}")
    outcome = seen.join.node(query.metric, _keep(query.devices, seen.join.layout))
    return _found(view, query, outcome, [(seen, outcome.age_seconds)], name=name, node=name)


def _namespace(view: View, query: Query, name: str) -> Found:
    """Return what is found for a namespace, whose devices may be on many nodes."""
    if unknown := _unknown(view, name):
        return Found(namespace="", name=name, outcome=unknown)
    how = serve_of(query.metric).combine
    parts: list[Part] = []
    sources: list[tuple[NodeView, float]] = []
    holding = [seen for seen in _seen(view) if seen.join.allocation.devices_in(name)]
    for seen in holding:
        keep = _keep(query.devices, seen.join.layout)
        if here := seen.join.namespace(name, query.metric, keep):
            parts += here
            sources.append((seen, combine(here, how).age_seconds))
    outcome = combine(parts, how) if holding else Outcome(absence=Absence.NO_DEVICE)
    return _found(view, query, outcome, sources, name=name)


def _unknown(view: View, namespace: str) -> Outcome | None:
    """Return why it is unknown what some pod holds: without that, a sum would look like a drop."""
    for pod in view.pods.in_namespace(namespace).values():
        node = pod.spec.node_name
        if not node or pod.finished or not may_hold_gpu(pod):
            continue
        seen = view.node(node)
        if seen is None or not seen.join.layout.tenants_known:
            absence = Absence.NO_EXPORTER if seen is None else Absence.TENANTS_UNKNOWN
            return Outcome(absence=absence, detail=f"node {node} of pod {pod.metadata.name}")
    return None


def _namespaces(view: View) -> Sequence[str]:
    """Return the namespaces that hold devices, and those that may."""
    holding = {name for seen in _seen(view) for name in seen.join.allocation.namespaces}
    return sorted(holding | {name for name in view.pods.namespaces if _unknown(view, name)})


def _seen(view: View) -> Iterator[NodeView]:
    return filter(None, map(view.node, view.nodes))


def _found(
    view: View,
    query: Query,
    outcome: Outcome,
    sources: Sequence[tuple[NodeView, float]],
    *,
    name: str,
    namespace: str = "",
    node: str = "",
) -> Found:
    """Return what an outcome means for an object; ``sources`` are its nodes and oldest ages."""
    if outcome.value is None:
        return Found(namespace=namespace, name=name, node=node, outcome=outcome)
    read_at = min(view.read_at(seen, age) for seen, age in sources)
    item = Item(
        kind=query.kind,
        namespace=namespace,
        name=name,
        metric=query.metric.name,
        value=outcome.value,
        read_at=read_at,
        window_seconds=max(seen.join.layout.window_seconds for seen, _ in sources),
        selector=query.devices.echo(),
    )
    return Found(
        namespace=namespace,
        name=name,
        node=node,
        outcome=outcome,
        expires_at=min(view.expires_at(seen, age) for seen, age in sources),
        read_at=read_at,
        item=item.encode(query.path.version),
    )


def _keep(selector: Selector, layout: Layout) -> Keep:
    if not selector.requirements:
        return everything
    return lambda device: selector.matches(labels_of(layout, device))
