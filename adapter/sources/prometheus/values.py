"""From series to values: which of them can be served, and why the others cannot. Pure."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from adapter.api.quantity import LARGEST
from adapter.sources.prometheus.query_result import Sample
from adapter.sources.prometheus.readings import Reading
from slicewatch.promrules.rule import Adjustment


class Drop(StrEnum):
    """Why there is no value. The text completes 'no value, since …'."""

    NOT_A_NUMBER = "the query makes NaN, as 0/0 does; set nanAs if that has a meaning"
    INFINITE = "the query makes an infinite value"
    STALE = "its samples are too old"
    SEVERAL = "the query makes several series of it; aggregate with by (<<.GroupBy>>)"
    NO_SERIES = "the query makes no series of it"

    @property
    def passing(self) -> bool:
        """Tell a state that may end by itself from one that lasts."""
        return self in {Drop.NOT_A_NUMBER, Drop.INFINITE, Drop.STALE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What became of one object, or of one external series: a value, or else ``drop``.

    Attributes:
        labels: of the series; none if there is not exactly one.
        raw: what the backend said.
        read_at: of the oldest sample in it, in seconds since the epoch, as far as that is known;
            else the time of the query.
        dated: whether that is known.
        expires_at: when it becomes too old, on the monotonic clock.
        clamped: it exceeds what an autoscaler can compute with, and is moved to that.
    """

    labels: Mapping[str, str]
    raw: float = math.nan
    value: float | None = None
    drop: Drop | None = None
    read_at: float = 0.0
    dated: bool = False
    expires_at: float = -math.inf
    clamped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """How the values of a rule are made.

    Attributes:
        now: on the monotonic clock.
        max_age_seconds: older samples are not served.
    """

    adjustment: Adjustment
    max_age_seconds: float
    now: float

    def value(self, reading: Reading, sample: Sample, key: Mapping[str, str]) -> Value:
        """Return what becomes of a sample whose age is found under ``key``."""
        read_at = reading.read_at(key)
        at = reading.evaluated_at if read_at is None else min(read_at, reading.evaluated_at)
        expires_at = reading.asked_at - (reading.evaluated_at - at) + self.max_age_seconds
        value = self.adjustment.of(sample.value)
        drop = None
        if value is None:
            drop = Drop.NOT_A_NUMBER if math.isnan(sample.value) else Drop.INFINITE
        elif expires_at <= self.now:
            value, drop = None, Drop.STALE
        return Value(
            labels=sample.labels,
            raw=sample.value,
            value=value,
            drop=drop,
            read_at=at,
            dated=read_at is not None,
            expires_at=expires_at,
            clamped=value is not None and abs(value) > LARGEST,
        )


def of_objects(reading: Reading, label: str, serving: Serving) -> dict[str, Value]:
    """Return what becomes of each object that a label names. Series without it belong to none."""
    found: dict[str, list[Sample]] = defaultdict(list)
    for sample in reading.result.samples:
        if name := sample.labels.get(label):
            found[name].append(sample)
    return {
        name: _only(reading, samples, {label: name}, serving) for name, samples in found.items()
    }


def of_series(reading: Reading, serving: Serving) -> list[Value]:
    """Return what becomes of each series of an external metric."""
    return [serving.value(reading, sample, {}) for sample in reading.result.samples]


def _only(
    reading: Reading, samples: Sequence[Sample], key: Mapping[str, str], serving: Serving
) -> Value:
    if len(samples) > 1:
        return Value(labels=key, drop=Drop.SEVERAL)
    return serving.value(reading, samples[0], key)
