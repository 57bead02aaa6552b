"""One question to the metrics API, checked: which metric of which objects, and how it is wanted."""

from dataclasses import dataclass, replace
from typing import Final

from adapter import aliases
from adapter.api.label_selectors import Selector
from adapter.api.paths import Kind, MetricPath
from adapter.api.status import Reason, Refusal
from adapter.join import Keep, everything, labels_of
from adapter.offering import not_found
from adapter.provider import Question
from adapter.served import NATIVE, Served
from slicewatch.wire.layout import Layout

SERVED: Final = {served.name: served for served in (*NATIVE, *aliases.SERVED)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A path with its selectors, known to be about a metric and a kind that are served.

    Attributes:
        served: as the request wants it combined.
        window_seconds: that a value is to be a mean over; None for its usual one.
    """

    path: MetricPath
    kind: Kind
    served: Served
    objects: Selector
    devices: Selector
    window_seconds: float | None


def check(question: Question) -> Query:
    """Return the query for a question.

    Raises:
        Refusal: no such metric or kind is served, or not in such a way.
    """
    path, served = question.path, SERVED.get(question.path.metric)
    if served is None or path.kind is None or path.kind not in served.kinds:
        raise not_found(path, "")
    if path.kind is not Kind.POD and question.objects.requirements:
        raise Refusal(
            Reason.BadRequest,
            f"labelSelector chooses pods, not {path.kind}; name one, or leave the selector out",
            field="labelSelector",
        )
    if question.combine is not None:
        served = replace(served, combine=question.combine)
    return Query(
        path=path,
        kind=path.kind,
        served=served,
        objects=question.objects,
        devices=question.series,
        window_seconds=_window(served, question.window_seconds),
    )


def _window(served: Served, wanted_seconds: float | None) -> float | None:
    """Return the window that is wanted, if it is not the usual one.

    Raises:
        Refusal: the metric has no such window.
    """
    if served.has_exporters_window or wanted_seconds in {None, served.window_seconds}:
        return wanted_seconds if served.has_exporters_window else None
    has = (
        f"has a window of {served.window_seconds:g} s"
        if served.window_seconds
        else "is of the moment"
    )
    raise Refusal(
        Reason.BadRequest,
        f"{served.name} {has}, whatever is asked for: leave the window out",
        field="metricLabelSelector",
    )


def window_of(query: Query, layout: Layout) -> float:
    """Return the time that a value from a node is a mean over, in seconds; 0 for a moment."""
    served = query.served
    if not served.has_exporters_window:
        return served.window_seconds or 0.0
    return max(layout.window_seconds, query.window_seconds or 0.0)


def keep(query: Query, layout: Layout) -> Keep:
    """Return which devices of a node the metric selector chooses."""
    selector = query.devices
    if not selector.requirements:
        return everything
    if query.served.dcgm:
        return lambda device: selector.matches(
            labels_of(layout, device) | aliases.labels_of(layout, device)
        )
    return lambda device: selector.matches(labels_of(layout, device))
