"""The facts as an exposition: what is known, and nothing of what is not."""

from collections.abc import Mapping
from typing import Any, Final

from adapter.cluster.facts import ClusterFacts, series_of
from adapter.cluster.freshness import OutdatedError
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Cluster, Metric
from slicewatch.catalog.readings.cluster import Series
from slicewatch.service.exposition import Family, Format, constant_text, own_labels_text

_METRICS: Final[tuple[tuple[Cluster[Any], Metric[Any]], ...]] = tuple(
    (metric.origin, metric) for metric in CATALOG if isinstance(metric.origin, Cluster)
)
_Texts = Mapping[Format, str]


class ClusterPage:
    """The cluster's part of ``/metrics``; text is kept for as long as its facts are the same."""

    def __init__(self, facts: ClusterFacts) -> None:
        self._facts = facts
        self._texts: dict[str, tuple[object, _Texts]] = {}

    def render(self, form: Format) -> bytes:
        """Return the families that are known now, without an end marker."""
        return "".join(self._text(origin, metric)[form] for origin, metric in _METRICS).encode()

    def _text(self, origin: Cluster[Any], metric: Metric[Any]) -> _Texts:
        try:
            fact = self._facts.fact(origin)
        except OutdatedError:
            return dict.fromkeys(Format, "")
        held, texts = self._texts.get(metric.name, (None, {}))
        if held is not fact.reading:
            texts = _rendered(metric, series_of(metric, fact))
            self._texts[metric.name] = (fact.reading, texts)
        return texts


def _rendered(metric: Metric[Any], series: Series) -> _Texts:
    rows = sorted(series.items())
    family = Family(metric, [own_labels_text(metric, labels) for labels, _ in rows])
    return constant_text([(family, [float(value) for _, value in rows])])
