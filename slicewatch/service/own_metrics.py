"""Metrics about ourselves: declared in the catalog, held and rendered by prometheus-client."""

from collections.abc import Iterator
from typing import Any, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
)
from prometheus_client import exposition as text
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Kind, Metric, Own
from slicewatch.service.exposition import Format

M = TypeVar("M", bound=MetricWrapperBase)


class _WithoutCreated(Collector):
    """The same families without ``_created``, which are samples of a family in OpenMetrics only."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[MetricFamily]:
        for family in self._registry.collect():
            family.samples = [s for s in family.samples if not s.name.endswith("_created")]
            yield family


class OwnMetrics:
    """The metrics of one process: those of its origin, and the interpreter's."""

    def __init__(self, origin: Own) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._held = {m.name: self._make(m) for m in CATALOG.of(Own) if m.origin is origin}

    def counter(self, metric: Metric[None]) -> Counter:
        """Return the counter that the catalog declares as ``metric``."""
        return self._get(metric, Counter)

    def gauge(self, metric: Metric[None]) -> Gauge:
        """Return the gauge, or info family, that the catalog declares as ``metric``."""
        return self._get(metric, Gauge)

    def histogram(self, metric: Metric[None]) -> Histogram:
        """Return the histogram that the catalog declares as ``metric``."""
        return self._get(metric, Histogram)

    def render(self, form: Format) -> bytes:
        """Return the exposition of all of them.

        OpenMetrics ends with ``# EOF`` and has units, and since when counters and histograms
        count.
        """
        if form is Format.OPEN_METRICS:
            rendered: bytes = openmetrics.generate_latest(self.registry)  # type: ignore[no-untyped-call]
            return rendered
        return text.generate_latest(_WithoutCreated(self.registry))

    def _get(self, metric: Metric[None], kind: type[M]) -> M:
        held = self._held[metric.name]
        if not isinstance(held, kind):
            raise TypeError(f"{metric.name} is a {metric.kind}, not a {kind.__name__}")
        return held

    def _make(self, metric: Metric[Any]) -> MetricWrapperBase:
        labels = tuple(map(str, metric.labels))
        if metric.kind is Kind.HISTOGRAM:
            return Histogram(
                metric.name, metric.help, labels, unit=_unit(metric), buckets=metric.buckets,
                registry=self.registry,
            )  # fmt: skip
        made = Counter if metric.kind is Kind.COUNTER else Gauge
        return made(metric.name, metric.help, labels, unit=_unit(metric), registry=self.registry)


def _unit(metric: Metric[Any]) -> str:
    """Return the unit where the name has it last: prometheus-client would append any other."""
    unit = str(metric.unit)
    return unit if metric.name.removesuffix("_total").endswith(f"_{unit}") else ""
