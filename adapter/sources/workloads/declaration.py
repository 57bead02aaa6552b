"""What can be asked of workloads: each metric declared by its user, and how it is made.

Only what is declared is ever read from a pod's page. Nothing is served under a name that nobody
wrote down.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from slicewatch.catalog.model import Combine

Labels = tuple[tuple[str, str], ...]
"""Label names and values, sorted by name."""

INTERVAL_SECONDS: Final = 5.0


class Type(StrEnum):
    """How a value is made of the series of a pod's page."""

    GAUGE = "gauge"
    RATE = "rate"
    AVERAGE = "average"
    QUANTILE = "quantile"


class Idle(StrEnum):
    """What is served of a workload whose page is fresh, and that has nothing to measure."""

    ABSENT = "absent"
    ZERO = "zero"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadMetric:
    """One metric of pods.

    Attributes:
        name: as it is asked for.
        series: name of its samples in the page; of averages without ``_sum`` and ``_count``, of
            quantiles without ``_bucket``.
        labels: that its series must carry.
        window_seconds: the least time that growth is measured over, once that much is known.
        combine: how several series become one value; None where none of the ways is declared.
            Averages and quantiles are of all requests, whatever series those are counted in.
        quantile: which one, 0-1.
        scale: what the value is multiplied by, such as 1000 for a latency in milliseconds.
        idle: read only where the page is fresh: a pod that cannot be read never counts as idle.
        max_age_seconds: a value from an older page is not served.
        low, high: values outside are served as these.
    """

    name: str
    series: str
    type: Type
    labels: Labels = ()
    window_seconds: float = 30.0
    combine: Combine | None = None
    quantile: float = 0.5
    scale: float = 1.0
    idle: Idle = Idle.ABSENT
    max_age_seconds: float = 3 * INTERVAL_SECONDS
    low: float = -math.inf
    high: float = math.inf

    @property
    def samples(self) -> tuple[str, ...]:
        """Return the names of the samples that it is made of."""
        match self.type:
            case Type.AVERAGE:
                return f"{self.series}_sum", f"{self.series}_count"
            case Type.QUANTILE:
                return (f"{self.series}_bucket",)
            case Type.GAUGE | Type.RATE:
                return (self.series,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All metrics of workloads, and how their pages are read.

    Attributes:
        interval_seconds: from one scrape of a pod to the next.
        insecure_skip_verify: read pages over TLS from whoever answers: pods rarely have
            certificates that anyone could verify.
    """

    metrics: tuple[WorkloadMetric, ...] = ()
    interval_seconds: float = INTERVAL_SECONDS
    insecure_skip_verify: bool = False
