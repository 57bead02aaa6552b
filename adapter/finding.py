"""What becomes of a question for every object that it is about, from what is known of the nodes."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from adapter.api.paths import ALL, Kind
from adapter.api.status import Refusal
from adapter.api.values import Item
from adapter.cluster.requests import may_hold_gpu
from adapter.history import averaged
from adapter.join import Join
from adapter.offering import not_found
from adapter.outcome import Absence, Outcome, Part, combine
from adapter.query import Query, keep, window_of
from adapter.selection import selected
from adapter.view import NodeView, View
from slicewatch.kube.objects import Pod
from slicewatch.service import logs

log = logs.logger(__name__)

T = TypeVar("T")

# Per node and reading: distinct questions whose values are kept for the next request.
KEPT_TABLES: Final = 64

Ask = Callable[[Join], Outcome]
"""Asks one snapshot of a node."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
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


class Dated(NamedTuple):
    """What the readings in a value mean for it: see ``Found`` and ``Item``."""

    read_at: float
    expires_at: float
    window_seconds: float


def find(view: View, query: Query) -> list[Found]:
    """Return what is found for each object that a query is about.

    Raises:
        Refusal: it names an object that does not exist or about which nothing is known.
    """
    everyone, name = query.path.name == ALL, query.path.name
    match query.kind:
        case Kind.POD:
            return _pods(view, query, selected(view.pods, query.path, query.objects))
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
            "no value for an object", metric=query.served.name, kind=query.kind, name=name
        )
        return Found(namespace=namespace, name=name, outcome=Outcome(absence=Absence.FAILED))


def _pods(view: View, query: Query, pods: Sequence[Pod]) -> list[Found]:
    """Return what is found for pods. This loop is the cost of a request for many pods."""
    served = query.served
    cached_as = (
        query.path.version, served.name, query.devices.text, served.combine, query.window_seconds,
    )  # fmt: skip
    tables: dict[str, tuple[NodeView | None, dict[Any, Any]]] = {}
    every: list[Found] = []
    for pod in pods:
        node = pod.spec.node_name
        known = tables.get(node)
        if known is None:
            known = tables[node] = _table(view, node, cached_as)
        seen, table = known
        meta = pod.metadata
        key = (meta.namespace, meta.name)
        found = table.get(key)
        if found is None:
            found = table[key] = _contained(
                _pod, view, query, (pod, seen), name=meta.name, namespace=meta.namespace
            )
        every.append(found)
    return every


def _table(
    view: View, node: str, cached_as: tuple[object, ...]
) -> tuple[NodeView | None, dict[Any, Any]]:
    """Return a node and what is known of its pods by its latest reading; to be filled."""
    seen = view.node(node) if node else None
    if seen is None:
        return None, {}
    if cached_as not in seen.cache and len(seen.cache) >= KEPT_TABLES:
        seen.cache.clear()
    return seen, seen.cache.setdefault(cached_as, {})


def _pod(view: View, query: Query, of: tuple[Pod, NodeView | None]) -> Found:
    pod, seen = of
    namespace, name = pod.key
    node = pod.spec.node_name
    if pod.finished:
        outcome = Outcome(absence=Absence.FINISHED, detail=pod.status.phase)
    elif not node:
        outcome = Outcome(absence=Absence.UNSCHEDULED)
    elif seen is None:
        absence = Absence.NO_EXPORTER if may_hold_gpu(pod) else Absence.NO_DEVICE
        outcome = Outcome(absence=absence, detail=f"node {node}")
    else:
        outcome = _over(
            view,
            query,
            seen,
            lambda join: join.pod(pod.key, query.served, keep(query, join.layout)),
        )
        if outcome.absence is Absence.NO_DEVICE and may_hold_gpu(pod):
            outcome = Outcome(absence=Absence.NOT_ASSIGNED, detail=f"node {node}")
    dated = None if seen is None else _dated(view, query, seen, outcome)
    return _found(query, outcome, dated, namespace=namespace, name=name, node=node)


def _node(view: View, query: Query, name: str) -> Found:
    seen = view.node(name)
    if seen is None:
        known = f"; known nodes are {', '.join(view.nodes[:20])}" if view.nodes else ""
        raise not_found(query.path, f"; no exporter reports for node {name}{known}")
    outcome = _over(
        view, query, seen, lambda join: join.node(query.served, keep(query, join.layout))
    )
    dated = _dated(view, query, seen, outcome)
    return _found(query, outcome, dated, name=name, node=name)


def _namespace(view: View, query: Query, name: str) -> Found:
    """Return what is found for a namespace, whose devices may be on many nodes."""
    if unknown := _unknown(view, name):
        return Found(namespace="", name=name, outcome=unknown)
    parts: list[Part] = []
    dates: list[Dated] = []
    holding = [seen for seen in _seen(view) if seen.join.allocation.devices_in(name)]
    for seen in holding:
        here = _over(
            view,
            query,
            seen,
            lambda join: join.namespace(name, query.served, keep(query, join.layout)),
        )
        if here.parts:
            parts += here.parts
            dates.append(_dated(view, query, seen, here))
    if not holding:
        return Found(namespace="", name=name, outcome=Outcome(absence=Absence.NO_DEVICE))
    outcome = combine(parts, query.served.combine)
    return _found(query, outcome, _together(dates) if dates else None, name=name)


def _over(view: View, query: Query, seen: NodeView, ask: Ask) -> Outcome:
    """Ask a node for what it reads now, or as a mean over the window that is wanted."""
    now, window = ask(seen.join), query.window_seconds
    if now.value is None or window is None or window <= seen.join.layout.window_seconds:
        return now
    tiles = view.tiles(seen, window)
    parts = averaged(
        now,
        tiles.now_seconds,
        [(seconds, ask(join)) for seconds, join in tiles.earlier],
        window_seconds=window,
        max_age_seconds=view.max_age_seconds,
    )
    return combine(parts, query.served.combine)


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


def _dated(view: View, query: Query, seen: NodeView, outcome: Outcome) -> Dated:
    age = outcome.age_seconds
    return Dated(
        view.read_at(seen, age + query.served.interval_seconds),
        view.expires_at(seen, age),
        window_of(query, seen.join.layout),
    )


def _together(dates: Sequence[Dated]) -> Dated:
    read_at, expires_at, windows = zip(*dates, strict=True)
    return Dated(min(read_at), min(expires_at), max(windows))


def _found(
    query: Query,
    outcome: Outcome,
    dated: Dated | None,
    *,
    name: str,
    namespace: str = "",
    node: str = "",
) -> Found:
    """Return what an outcome means for an object."""
    if outcome.value is None or dated is None:
        return Found(namespace=namespace, name=name, node=node, outcome=outcome)
    item = Item(
        resource=query.kind.resource,
        namespace=namespace,
        name=name,
        metric=query.served.name,
        value=outcome.value,
        read_at=dated.read_at,
        window_seconds=dated.window_seconds,
        selector=query.devices.echo(),
    )
    return Found(
        namespace=namespace,
        name=name,
        node=node,
        outcome=outcome,
        expires_at=dated.expires_at,
        read_at=dated.read_at,
        item=item.encode(query.path.version),
    )
