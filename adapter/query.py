"""One question of the metrics API, and what comes of it for every object that it is about."""

import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adapter.api.label_selectors import Selector
from adapter.api.paths import ALL, Kind, MetricPath
from adapter.api.status import Reason, Refusal
from adapter.join import Keep, combine, everything, labels_of, serve_of
from adapter.outcome import Absence, Outcome, Part
from adapter.view import NodeView, View
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Metric
from slicewatch.kube.objects import Pod
from slicewatch.wire.layout import Layout

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
    """What came of one object.

    Attributes:
        window_seconds: of the value, from the exporter's layout.
        limit_seconds: how old a served reading may be.
        expires_at: until when the value is served, on the monotonic clock.
        read_at: when the oldest reading in it was taken, in seconds since the epoch.
    """

    namespace: str
    name: str
    outcome: Outcome
    node: str = ""
    window_seconds: float = 0.0
    limit_seconds: float = 0.0
    expires_at: float = -math.inf
    read_at: float = 0.0

    def absence(self, now: float) -> tuple[Absence | None, str]:
        """Return why the object is not in an answer at a moment, and more; None if it is."""
        if self.outcome.value is None:
            return self.outcome.absence, self.outcome.detail
        if self.expires_at > now:
            return None, ""
        age = now - self.expires_at + self.limit_seconds
        return Absence.STALE, f"{age:.1f} s old, served are at most {self.limit_seconds:g} s"


def check(path: MetricPath, objects: Selector, devices: Selector) -> Query:
    """Return the query of a path.

    Raises:
        Refusal: no such metric or kind is served; names what is.
    """
    metric = SERVED.get(path.metric)
    if metric is None:
        near = difflib.get_close_matches(path.metric, SERVED, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise not_found(path, f"; known are {', '.join(SERVED)}{hint}")
    if path.kind is None:
        raise not_found(path, f"; it is served for {', '.join(Kind)}")
    if path.kind is not Kind.POD and objects.requirements:
        raise Refusal(
            Reason.BadRequest,
            f"labelSelector chooses pods, not {path.kind}; name one, or leave the selector out",
        )
    return Query(path=path, kind=path.kind, metric=metric, objects=objects, devices=devices)


def not_found(path: MetricPath, more: str) -> Refusal:
    """Return the refusal for a metric that an object, or any, does not have; ``more`` says why."""
    whose = path.resource if path.name == ALL else f"{path.resource} {path.name}"
    return Refusal(
        Reason.NotFound, f"the server could not find the metric {path.metric} for {whose}{more}"
    )


def selected(view: View, query: Query) -> Sequence[Pod]:
    """Return the pods that a query is about.

    Raises:
        Refusal: it names one that does not exist.
    """
    path = query.path
    if path.name == ALL:
        return view.pods.select(path.namespace, query.objects)
    pod = view.pods.get(path.namespace, path.name)
    if pod is None:
        raise not_found(path, f"; there is no pod {path.name} in namespace {path.namespace}")
    return (pod,)


def walk(view: View, query: Query) -> Iterator[Found]:
    """Yield what comes of each object that a query is about.

    Raises:
        Refusal: it names one that does not exist or that nothing is known of.
    """
    match query.kind:
        case Kind.POD:
            for pod in selected(view, query):
                yield of_pod(view, query, pod)
        case Kind.NODE:
            for name in view.nodes if query.path.name == ALL else (query.path.name,):
                yield _of_node(view, query, name)
        case Kind.NAMESPACE:
            for name in _namespaces(view) if query.path.name == ALL else (query.path.name,):
                yield _of_namespace(view, query, name)


def of_pod(view: View, query: Query, pod: Pod) -> Found:
    """Return what comes of one pod."""
    namespace, name = pod.key
    node = pod.spec.node_name
    seen = view.node(node) if node else None
    if pod.finished:
        outcome = Outcome(absence=Absence.FINISHED, detail=pod.status.phase)
    elif not node:
        outcome = Outcome(absence=Absence.UNSCHEDULED)
    elif seen is None:
        absence = Absence.NO_EXPORTER if _asks_for_gpu(pod) else Absence.NO_DEVICE
        outcome = Outcome(absence=absence, detail=f"node {node}")
    else:
        keep = _keep(query.devices, seen.join.layout)
        outcome = seen.join.pod(pod.key, query.metric, keep)
        if outcome.absence is Absence.NO_DEVICE and _asks_for_gpu(pod):
            outcome = Outcome(absence=Absence.NOT_ASSIGNED, detail=f"node {node}")
    return _found(view, outcome, seen, namespace=namespace, name=name, node=node)


def _of_node(view: View, query: Query, name: str) -> Found:
    seen = view.node(name)
    if seen is None:
        known = f"; known are {', '.join(view.nodes[:20])}" if view.nodes else ""
        raise not_found(query.path, f"; no exporter tells about node {name}{known}")
    outcome = seen.join.node(query.metric, _keep(query.devices, seen.join.layout))
    return _found(view, outcome, seen, namespace="", name=name, node=name)


def _of_namespace(view: View, query: Query, name: str) -> Found:
    """Return what comes of a namespace, whose devices may lie on many nodes."""
    if blind := _unseen(view, name):
        detail = f"node {blind.spec.node_name} of pod {blind.metadata.name}"
        outcome = Outcome(absence=Absence.NO_EXPORTER, detail=detail)
        return Found(namespace="", name=name, outcome=outcome)
    how = serve_of(query.metric).combine
    parts: list[Part] = []
    founds: list[Found] = []
    for seen in _holding(view, name):
        keep = _keep(query.devices, seen.join.layout)
        here = seen.join.namespace(name, query.metric, keep)
        parts += here
        if here:
            founds.append(_found(view, combine(here, how), seen, namespace="", name=name, node=""))
    if not founds:
        why = Absence.NOT_SELECTED if _holding(view, name) else Absence.NO_DEVICE
        return Found(namespace="", name=name, outcome=Outcome(absence=why))
    return Found(
        namespace="",
        name=name,
        outcome=combine(parts, how),
        window_seconds=max(f.window_seconds for f in founds),
        limit_seconds=view.max_age_seconds,
        expires_at=min(f.expires_at for f in founds),
        read_at=min(f.read_at for f in founds),
    )


def _unseen(view: View, namespace: str) -> Pod | None:
    """Return a pod whose devices nobody tells about: without it, a sum would look like a drop."""
    for pod in view.pods.in_namespace(namespace).values():
        node = pod.spec.node_name
        if node and not pod.finished and view.told_by(node) is None and _asks_for_gpu(pod):
            return pod
    return None


def _holding(view: View, namespace: str) -> list[NodeView]:
    """Return the nodes on which pods of a namespace hold devices."""
    seen = filter(None, map(view.node, view.nodes))
    return [node for node in seen if node.join.allocation.devices_in(namespace)]


def _namespaces(view: View) -> Sequence[str]:
    seen = filter(None, map(view.node, view.nodes))
    return sorted({name for node in seen for name in node.join.allocation.namespaces})


def _found(
    view: View, outcome: Outcome, seen: NodeView | None, *, namespace: str, name: str, node: str
) -> Found:
    if seen is None or outcome.value is None:
        return Found(namespace=namespace, name=name, node=node, outcome=outcome)
    return Found(
        namespace=namespace,
        name=name,
        node=node,
        outcome=outcome,
        window_seconds=seen.join.layout.window_seconds,
        limit_seconds=view.max_age_seconds,
        expires_at=view.expires_at(seen, outcome.age_seconds),
        read_at=view.read_at(seen, outcome.age_seconds),
    )


def _keep(selector: Selector, layout: Layout) -> Keep:
    if not selector.requirements:
        return everything
    return lambda device: selector.matches(labels_of(layout, device))


def _asks_for_gpu(pod: Pod) -> bool:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return any("nvidia.com/" in name for c in containers for name in c.resources.requests)
