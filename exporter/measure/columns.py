"""From the rows of the devices to the columns of a snapshot.

The column of a metric with labels of its own is named by its series, as in
``gpu_nvlink_up{link="3"}``; there is one for every combination that some device has now.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from exporter.measure.row import METRICS, WINDOWED, Held, Row
from exporter.measure.windows import Means
from slicewatch.catalog.model import Metric, Publish
from slicewatch.wire.snapshot import Column

# Of a device that does not answer.
_NOTHING: tuple[None, ...] = (None,) * len(METRICS)
NOTHING: Means = [None] * len(WINDOWED)


def by_metric(rows: Sequence[Means]) -> dict[str, Column]:
    """Return a column per windowed metric from the means of the rows.

    Those of a MIG instance are only the first of a GPU's.
    """
    names = [metric.name for metric in WINDOWED]
    columns = map(list, zip_longest(*rows)) if rows else ([] for _ in names)
    return dict(zip(names, columns, strict=True))


def spread(name: str, rows: Sequence[Mapping[str, float | None]]) -> dict[str, Column]:
    """Return the columns of a labelled metric from the values of each row by their labels' text."""
    texts = dict.fromkeys(text for values in rows for text in values)
    return {name + text: [values.get(text) for values in rows] for text in texts}


class Columns:
    """The columns of one plan.

    Args:
        metrics: names of what is read at all; the others have no column.
    """

    def __init__(self, metrics: frozenset[str]) -> None:
        self._metrics = tuple((i, m) for i, m in enumerate(METRICS) if m.name in metrics)
        self._before: dict[str, tuple[list[Held], dict[str, Column]]] = {}

    def of(
        self, rows: Sequence[Row], up: Sequence[bool], means: Mapping[str, Column]
    ) -> dict[str, Column]:
        """Return a value per row and metric; nothing of a device that does not answer."""
        shown = [row.values if is_up else _NOTHING for row, is_up in zip(rows, up, strict=True)]
        by_metric = list(map(list, zip(*shown, strict=True))) if shown else [[] for _ in METRICS]
        columns: dict[str, Column] = {}
        for index, metric in self._metrics:
            if metric.labels:
                columns |= self._labelled(metric, by_metric[index])
            elif metric.publish is Publish.WINDOW_MEAN:
                columns[metric.name] = means[metric.name]
            else:
                columns[metric.name] = by_metric[index]
        return columns

    def _labelled(self, metric: Metric[Any], column: list[Held]) -> dict[str, Column]:
        before = self._before.get(metric.name)
        # Ends at identity for each row whose reading stayed the same.
        if before is not None and before[0] == column:
            return before[1]
        columns = spread(metric.name, [h if isinstance(h, dict) else {} for h in column])
        self._before[metric.name] = (column, columns)
        return columns
