"""Why a value is what it is: every input of every selected object, as JSON for people.

Requested with ``explain=true`` on the metric's own path, so that exactly those who may read the
metric may read this.
"""

from collections.abc import Collection

from adapter.api.paths import Kind
from adapter.finding import Found, find
from adapter.outcome import Part, Shares
from adapter.provider import Tree
from adapter.query import Query
from adapter.sources.source import Target
from adapter.view import View
from slicewatch.kube.times import timestamp


def explain(view: View, query: Query) -> Tree:
    """Return the explanation of a query.

    Raises:
        Refusal: a named object does not exist.
    """
    now = view.monotonic()
    found = find(view, query)
    nodes = {f.node for f in found if f.node} or set(view.nodes)
    tree: Tree = {
        "kind": "MetricExplanation",
        "metric": query.served.name,
        "help": query.served.help,
        "unit": query.served.unit,
        "combine": str(query.served.combine),
        "madeOf": query.served.column or query.served.tenant_column,
        "windowSeconds": query.window_seconds or query.served.window_seconds,
        "labelSelector": query.objects.text,
        "metricLabelSelector": query.devices.text,
        "maxAgeSeconds": view.max_age_seconds,
        "items": [_object(view, f, now) for f in found],
        "exporters": [_exporter(view, target, now) for target in _exporters(view, nodes)],
    }
    if not found and query.kind is Kind.POD:
        tree["note"] = _nothing_selected(view, query)
    return tree


def _object(view: View, found: Found, now: float) -> Tree:
    missing = found.missing(now, view.max_age_seconds)
    tree: Tree = {"namespace": found.namespace, "name": found.name, "node": found.node}
    tree["value"] = found.outcome.value if missing is None else None
    if missing is None:
        tree["timestamp"] = timestamp(int(found.read_at))
        tree["ageSeconds"] = round(view.wall() - found.read_at, 3)
    else:
        absence, detail = missing
        tree["absent"] = absence.name
        tree["why"] = f"no value, since {absence}" + (f" ({detail})" if detail else "")
    tree["devices"] = [_device(part) for part in found.outcome.parts]
    return {key: value for key, value in tree.items() if value != ""}


def _device(part: Part) -> Tree:
    device = part.device
    tree: Tree = {"uuid": device.uuid, "gpu": device.gpu, "model": device.model}
    tree |= {
        "profile": device.profile,
        "ageWhenSentSeconds": part.age_seconds,
        "deviceValue": part.device_value,
    }
    tree |= {"value": part.value, "rule": str(part.rule) if part.rule else ""}
    if part.shares is not None:
        tree["inputs"] = _inputs(part.shares)
    if part.absence is not None:
        tree["absent"] = part.absence.name
        tree["why"] = f"{part.absence}" + (f" ({part.detail})" if part.detail else "")
    return {key: value for key, value in tree.items() if value != ""}


def _inputs(shares: Shares) -> Tree:
    return {
        "W": shares.own,
        "B": shares.total,
        "m": shares.holders,
        "n": shares.tenants,
        "meaning": "W and B: busy shares of the workload and of everyone; m and n: their containers",
    }


def _exporters(view: View, nodes: Collection[str]) -> list[Target]:
    """Return who speaks for the nodes, and who is refused there."""
    speakers = {target for node in nodes if (target := view.exporter_of(node))}
    refused = {
        target
        for target, stream in view.source.streams.items()
        if stream.refused and (stream.refused in nodes or stream.node in nodes)
    }
    return sorted(speakers | refused)


def _exporter(view: View, target: Target, now: float) -> Tree:
    stream = view.source.streams.get(target)
    reading = view.source.readings.get(target)
    tree: Tree = {"url": target}
    if stream is not None:
        tree |= {"connected": stream.connected, "fault": stream.fault}
        tree["rejectedLines"] = stream.rejected
    if reading is not None:
        tree["node"] = reading.layout.node
        tree["windowSeconds"] = reading.layout.window_seconds
        tree["silentSeconds"] = round(now - reading.received_at, 3)
        tree["tenantsKnown"] = reading.layout.tenants_known
        snapshot = reading.snapshot
        tree["tenantsAgeSeconds"] = snapshot.tenants_age
        tree["sharesFrom"] = snapshot.shares
    return tree


def _nothing_selected(view: View, query: Query) -> str:
    """Say what a selector that matches nothing could have matched."""
    namespace = query.path.namespace
    pods = view.pods.in_namespace(namespace)
    if not pods:
        return f"namespace {namespace} has no pods"
    return f"none of the {len(pods)} pods of namespace {namespace} matches {query.objects.text!r}"
