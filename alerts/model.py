"""What an alert and a recording rule are.

An expression is text, since PromQL is what its readers know; the names in it come from
``alerts.series``, so that a metric that does not exist is an error of the generator. Each number
in it comes from ``alerts.thresholds``, with its reason.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Severity(StrEnum):
    """Who has to act, and when."""

    CRITICAL = "critical"
    """Somebody is woken: work is being lost, or will be soon."""
    WARNING = "warning"
    """Somebody looks at it on the same working day."""
    INFO = "info"
    """Nobody is called. It goes into a report, or explains another alert."""


class Source(StrEnum):
    """Which process the series of an alert come from, so that one knows what it needs."""

    EXPORTER = "exporter"
    ADAPTER = "adapter"
    HEALTH = "health"
    KUBE_STATE_METRICS = "kube-state-metrics"
    PROMETHEUS = "prometheus"
    """What Prometheus itself makes of a scrape: ``up``."""


# Of an alert on a raw reading of a device: kept back while the health monitor says it of that GPU.
DEVICE: Final = (("layer", "device"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert.

    Attributes:
        name: begins with ``GPU`` if it is about GPUs or those who use them, with ``Slicewatch`` if
            it is about ourselves; also the name of its page under ``docs/runbooks/``.
        expr: PromQL; what it returns while there is something to say.
        hold: for how long it has to be so, as Prometheus writes durations; empty: at once.
        keep: for how long it fires on after that, so that one that flaps pages once.
        summary: one line with the labels that tell where: what a phone shows.
        description: what it means, its value, and the first thing to do.
        sources: where the series come from.
        labels: beside ``severity``.
    """

    name: str
    expr: str
    severity: Severity
    summary: str
    description: str
    sources: frozenset[Source]
    hold: str = ""
    keep: str = ""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A series that Prometheus computes, named ``level:metric:operations``.

    Attributes:
        help: what it is, with its unit; for the reference, Prometheus keeps none.
        sources: where the series come from that it is made of.
    """

    name: str
    expr: str
    help: str
    sources: frozenset[Source]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rules that are evaluated one after the other, and become one file under ``rules/``.

    Attributes:
        name: of the file; the group is called ``slicewatch-<name>``.
        interval: how often; empty for Prometheus's default.
        title, intent: for the reference page.
    """

    name: str
    title: str
    intent: str
    rules: tuple[Alert | Recording, ...]
    interval: str = ""


# The page of an alert is below it; whoever keeps the pages elsewhere replaces it (see the chart).
RUNBOOKS: Final = "https://github.com/slicewatch/slicewatch/blob/main/docs/runbooks"
