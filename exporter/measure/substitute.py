"""Utilization of MIG instances from another source, where NVML has none: before Hopper."""

from collections.abc import Sequence
from typing import Final, Protocol

from exporter.measure.row import METRICS, Row
from slicewatch.service.exposition import labels_text
from slicewatch.wire.layout import Device
from slicewatch.wire.snapshot import Column

UTILIZATION: Final = "gpu_utilization"
SOURCE: Final = "gpu_metric_source_info"

_COLUMN: Final = next(i for i, metric in enumerate(METRICS) if metric.name == UTILIZATION)


class Source(Protocol):
    """Whoever else may know it; never waits."""

    name: str

    def utilization(self, device: Device, now: float) -> tuple[float, float] | None:
        """Return the utilization in percent, and its age in seconds."""
        ...

    def reason(self, device: Device, now: float) -> str | None:
        """Return why there is none, in one word; None if there is one."""
        ...


class Substitute:
    """What a source knows of the rows that NVML cannot tell the utilization of.

    Attributes:
        reasons: per row, why neither knows it; None where one does. The same while none changes.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.reasons: tuple[str | None, ...] = ()

    def ask(self, rows: Sequence[Row], now: float) -> Column:
        """Return a column of what the source knows, and keep the reasons for what it does not."""
        lacking = [row.device.is_mig and row.reasons[_COLUMN] is not None for row in rows]
        found = [
            self._source.utilization(row.device, now) if lacks else None
            for row, lacks in zip(rows, lacking, strict=True)
        ]
        self.reasons = tuple(
            None
            if value is not None
            else (self._source.reason(row.device, now) if lacks else None) or row.reasons[_COLUMN]
            for row, lacks, value in zip(rows, lacking, found, strict=True)
        )
        return [None if value is None else value[0] for value in found]

    def fill(self, columns: dict[str, Column], known: Column) -> None:
        """Put what the source knows where nothing is, and say that it comes from there."""
        for name in columns.keys() & {UTILIZATION}:
            own = columns[name]
            columns[name] = [o if k is None else k for o, k in zip(own, known, strict=True)]

    def mark(self, known: Column) -> dict[str, Column]:
        """Return the column that says which values are the source's."""
        text = labels_text((("metric", UTILIZATION), ("source", self._source.name)))
        return {SOURCE + text: [None if value is None else 1 for value in known]}
