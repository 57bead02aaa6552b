"""What the exporter's page says of tenants, by who they are."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

INFO: Final = "gpu_tenant_info"
BUSY_RATIO: Final = "gpu_tenant_busy_ratio"
BUSY_SECONDS: Final = "gpu_tenant_busy_seconds_total"
MEMORY: Final = "gpu_tenant_memory_used_bytes"
SAMPLED_SECONDS: Final = "gpu_sampled_seconds_total"


class Row(NamedTuple):
    """Who works on which device; the names of a process outside of pods are empty."""

    device: str
    namespace: str = ""
    pod: str = ""
    container: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What the page says of one row.

    Attributes:
        labels: those of ``gpu_tenant_info``.
        values: by metric; without what is not known.
    """

    labels: Mapping[str, str]
    values: Mapping[str, float]


class Page:
    """One answer of the exporter.

    Raises:
        ValueError: it is not an exposition, or has a series twice.
    """

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._by_name: defaultdict[str, list[Sample]] = defaultdict(list)
        seen = set()
        for sample in samples:
            series = (sample.name, frozenset(sample.labels.items()))
            if series in seen:
                raise ValueError(f"{sample.name} {sample.labels} stands on the page twice")
            seen.add(series)
            self._by_name[sample.name].append(sample)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the page of a text."""
        return cls(s for family in text_string_to_metric_families(text) for s in family.samples)

    def samples(self, metric: str) -> list[Sample]:
        """Return the series of a metric."""
        return self._by_name[metric]

    def of_device(self, metric: str) -> dict[str, float]:
        """Return a metric by the uuid of the device."""
        return {sample.labels["uuid"]: sample.value for sample in self.samples(metric)}

    @property
    def tenants(self) -> dict[Row, Served]:
        """All rows; one that has values but no ``gpu_tenant_info`` has no labels either."""
        labels = {_row(sample): sample.labels for sample in self.samples(INFO)}
        values: dict[Row, dict[str, float]] = {row: {} for row in labels}
        for metric in (BUSY_RATIO, BUSY_SECONDS, MEMORY):
            for sample in self.samples(metric):
                values.setdefault(_row(sample), {})[metric] = sample.value
        return {
            row: Served(labels=labels.get(row, {}), values=found) for row, found in values.items()
        }


def _row(sample: Sample) -> Row:
    labels = sample.labels
    names = (labels.get(name, "") for name in ("namespace", "pod", "container"))
    return Row(labels["uuid"], *names)
