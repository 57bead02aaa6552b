"""From the series of a page, and from growth, to the value of a metric. Pure.

Nothing is divided by zero and nothing unknown becomes 0: a workload is idle only where its page
is there, and says so.
"""

import math
from collections.abc import Collection, Mapping
from itertools import accumulate

from adapter.sources.workloads.declaration import Idle, Type, WorkloadMetric
from adapter.sources.workloads.growth import Growth
from adapter.sources.workloads.outcome import Absence, Outcome
from adapter.sources.workloads.page import Reading
from slicewatch.catalog.model import Combine


def outcome(metric: WorkloadMetric, reading: Reading, growth: Growth | None) -> Outcome:
    """Return what becomes of a metric.

    Args:
        metric: the declaration.
        reading: what the latest page says of it.
        growth: of its counters up to that page; None before there are two, and for gauges.
    """
    if reading.fault:
        return Outcome(absence=Absence.WRONG, detail=reading.fault)
    if not reading.series:
        if not reading.announced:
            return Outcome(absence=Absence.NO_SERIES)
        return _idle(metric, 0.0)
    if fault := _incomplete(metric, reading):
        return Outcome(absence=Absence.WRONG, detail=fault)
    if metric.type is Type.GAUGE:
        return _of_gauge(metric, [parts[""] for parts in reading.series.values()])
    if growth is None:
        return Outcome(absence=Absence.ONE_PAGE)
    value = _of_growth(metric, growth)
    if value is None:
        return _idle(metric, growth.seconds)
    return _made(metric, value, growth.seconds, len(reading.series))


def _incomplete(metric: WorkloadMetric, reading: Reading) -> str:
    """Return which sample some series lacks, without which its growth means nothing."""
    needed = {
        Type.AVERAGE: {"sum": "_sum", "count": "_count"},
        Type.QUANTILE: {"inf": '_bucket{le="+Inf"}'},
    }.get(metric.type, {})
    for labels, parts in reading.series.items():
        for part, ending in needed.items():
            if part not in parts:
                which = f" of {dict(labels)}" if labels else ""
                return f"there is no {metric.series}{ending}{which}"
    return ""


def _idle(metric: WorkloadMetric, seconds: float) -> Outcome:
    if metric.idle is Idle.ZERO:
        return _made(metric, 0.0, seconds, 0)
    return Outcome(absence=Absence.IDLE)


def _made(metric: WorkloadMetric, value: float, seconds: float, series: int) -> Outcome:
    served = min(metric.high, max(metric.low, value * metric.scale))
    if not math.isfinite(served):
        return Outcome(absence=Absence.WRONG, detail=f"the value is {served}")
    return Outcome(value=served, window_seconds=seconds, series=series)


def _of_gauge(metric: WorkloadMetric, values: Collection[float]) -> Outcome:
    if len(values) > 1 and metric.combine is None:
        detail = f"{len(values)} match; set combine to sum, avg or max, or choose one by labels"
        return Outcome(absence=Absence.SEVERAL, detail=detail)
    return _made(metric, _combined(values, metric.combine), 0.0, len(values))


def _of_growth(metric: WorkloadMetric, growth: Growth) -> float | None:
    """Return the value that growth makes; None where nothing was counted that it could be of."""
    by_part = {part: amount for (_, part), amount in growth.amounts.items()}
    match metric.type:
        case Type.AVERAGE:
            count = by_part.get("count", 0.0)
            return by_part["sum"] / count if count > 0 else None
        case Type.QUANTILE:
            return quantile(metric.quantile, {float(le): n for le, n in by_part.items()})
        case _:
            return _combined(growth.amounts.values(), metric.combine) / growth.seconds


def _combined(values: Collection[float], combine: Combine | None) -> float:
    match combine:
        case Combine.MAX:
            return max(values)
        case Combine.MEAN:
            return math.fsum(values) / len(values)
        case _:
            return math.fsum(values)


def quantile(q: float, buckets: Mapping[float, float]) -> float | None:
    """Return a quantile of a histogram, as Prometheus' ``histogram_quantile`` estimates it.

    Values are taken to be spread evenly in their bucket; those of the last one are as large as its
    lower bound, and the first one begins at 0 unless it ends below.

    Args:
        q: 0-1.
        buckets: by upper bound, how many values are not larger.

    Returns:
        None if there are no values, or no bucket for the largest.
    """
    bounds = sorted(buckets)
    # Counters are read one after another while requests go on: an upper one may be behind.
    counts = list(accumulate((buckets[bound] for bound in bounds), max))
    if not bounds or not math.isinf(bounds[-1]) or len(bounds) == 1 or counts[-1] <= 0:
        return None
    rank = q * counts[-1]
    place = next(i for i, count in enumerate(counts) if count >= rank and count > 0)
    if place == len(bounds) - 1:
        return bounds[-2]
    upper = bounds[place]
    lower, below = (bounds[place - 1], counts[place - 1]) if place else (min(0.0, upper), 0.0)
    if place == 0 and upper <= 0:
        return upper
    return lower + (upper - lower) * (rank - below) / (counts[place] - below)
