"""Answers to queries: fresh values only, encoded once for each state of a node, or a refusal.

The short way joins encoded items; only a refusal walks the long way, to say what became of
every object.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from adapter.api.paths import ALL, Kind
from adapter.api.status import Reason, Refusal
from adapter.api.values import Item, metric_list
from adapter.outcome import Absence
from adapter.query import Found, Query, not_found, of_pod, selected, walk
from adapter.view import View
from slicewatch.kube.objects import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A list of values.

    Attributes:
        expires_at: when the first of them is too old, on the monotonic clock.
        warning: what it lacks though it may come again, for the ``Warning`` header.
    """

    body: bytes
    expires_at: float = math.inf
    warning: str = ""


class Encoded(NamedTuple):
    """An item and until when, on the monotonic clock, it may be given out."""

    body: bytes
    expires_at: float
    absence: Absence | None = None

    def lacks(self, now: float) -> bool:
        """Tell whether it is missing from an answer for a reason that may pass."""
        if self.absence is None:
            return self.expires_at <= now
        return self.absence.passing


_ABSENT: Final = {why: Encoded(b"", -math.inf, why) for why in Absence}


def answer(view: View, query: Query) -> Answer:
    """Return the list of fresh values.

    Raises:
        Refusal: a named object does not exist, or objects match and none has a fresh value.
    """
    now = view.monotonic()
    if query.kind is Kind.POD:
        pods = selected(view, query)
        encoded = _of_pods(view, query, pods)
        names = [pod.metadata.name for pod in pods]
    else:
        found = list(walk(view, query))
        encoded = [_encode(query, f) for f in found]
        names = [f.name for f in found]
    fresh = [item for item in encoded if item.expires_at > now]
    if encoded and not fresh:
        return _none(view, query, now)
    lacking = (
        [name for name, item in zip(names, encoded, strict=True) if item.lacks(now)]
        if len(fresh) < len(encoded)
        else []
    )
    return Answer(
        body=metric_list(query.path.version, [item.body for item in fresh]),
        expires_at=min((item.expires_at for item in fresh), default=math.inf),
        warning=_warning(query, lacking, len(encoded)),
    )


def _of_pods(view: View, query: Query, pods: Sequence[Pod]) -> list[Encoded]:
    """Return the items of pods. This loop is what a request for many pods costs."""
    kept_as = (query.path.version, query.metric.name, query.devices.text)
    tables: dict[str, dict[tuple[str, str], Encoded]] = {}
    items: list[Encoded] = []
    for pod in pods:
        node = pod.spec.node_name
        table = tables.get(node)
        if table is None:
            seen = view.node(node) if node else None
            table = tables[node] = {} if seen is None else seen.kept.setdefault(kept_as, {})
        meta = pod.metadata
        key = (meta.namespace, meta.name)
        item = table.get(key)
        if item is None:
            item = table[key] = _encode(query, of_pod(view, query, pod))
        items.append(item)
    return items


def _encode(query: Query, found: Found) -> Encoded:
    value, absence = found.outcome.value, found.outcome.absence
    if value is None:
        return _ABSENT[absence or Absence.NO_VALUE]
    body = Item(
        kind=query.kind,
        namespace=found.namespace,
        name=found.name,
        metric=query.metric.name,
        value=value,
        read_at=found.read_at,
        window_seconds=found.window_seconds,
        selector=query.devices.echo(),
    ).encode(query.path.version)
    return Encoded(body, found.expires_at)


def _none(view: View, query: Query, now: float) -> Answer:
    """Answer a query none of whose objects has a fresh value.

    Raises:
        Refusal: 503 if waiting may help, 404 if not.
    """
    found = list(walk(view, query))
    kinds: Counter[Absence] = Counter()
    examples: dict[Absence, str] = {}
    for each in found:
        why, detail = each.absence(now)
        if why is not None:
            kinds[why] += 1
            examples.setdefault(why, f"{each.name}: {detail}" if detail else each.name)
    passing = any(why.passing for why in kinds)
    if Absence.NOT_SELECTED in kinds and not passing:
        return Answer(body=metric_list(query.path.version, ()))
    message = _causes(query, found, kinds, examples)
    if passing:
        text = f"the metric {query.metric.name} is not available now: {message}"
        raise Refusal(Reason.ServiceUnavailable, text)
    raise not_found(query.path, f": {message}")


def _causes(
    query: Query,
    found: Sequence[Found],
    kinds: Counter[Absence],
    examples: Mapping[Absence, str],
) -> str:
    if query.path.name != ALL:
        why = next(iter(kinds))
        return f"{query.kind} {examples[why]}: no value, since {why}"
    causes = "; ".join(f"{n} since {why} ({examples[why]})" for why, n in kinds.most_common())
    return f"{len(found)} {query.kind} match, none has a fresh value: {causes}"


def _warning(query: Query, lacking: Sequence[str], matching: int) -> str:
    if not lacking or query.path.name != ALL:
        return ""
    named = ", ".join(lacking[:5]) + (", ..." if len(lacking) > 5 else "")
    return f'299 - "{len(lacking)} of {matching} {query.kind} have no fresh value: {named}"'
