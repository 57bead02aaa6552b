"""What the adapter reports about its own operation: set when somebody asks, not before.

Only copies what other parts count or know; decides nothing.
"""

import time
from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from prometheus_client import Counter

from adapter.api.authentication import Gate
from adapter.outcome import Absence
from adapter.registration import Registration, Standing
from adapter.sources.source import SnapshotSource
from adapter.trust import Trust
from slicewatch.catalog.own import (
    CERTIFICATE_ENDS,
    DROPPED_VALUES,
    EXPORTER_AGE,
    EXPORTER_CONNECTED,
    REFUSED_HANDSHAKES,
    REGISTERED,
    REJECTED_LINES,
    RELOAD_TIME,
    RELOAD_VALID,
    SAMPLE_AGE,
    STREAM_FAULTS,
)
from slicewatch.service.own_metrics import OwnMetrics

E = TypeVar("E", bound=Enum)


class StreamMetrics:
    """The exporters' streams, by node; by address where an exporter never named its node."""

    def __init__(self, metrics: OwnMetrics, source: SnapshotSource) -> None:
        self._source = source
        self._connected = metrics.gauge(EXPORTER_CONNECTED)
        self._age = metrics.gauge(EXPORTER_AGE)
        self._sample_age = metrics.gauge(SAMPLE_AGE)
        self._rejected = metrics.counter(REJECTED_LINES)
        self._faults = metrics.counter(STREAM_FAULTS)

    def observe(self) -> None:
        """Set what is known now."""
        _copy(self._faults, self._source.faults)
        for metric in (self._connected, self._age, self._sample_age, self._rejected):
            metric.clear()
        now = time.monotonic()
        for target, stream in self._source.streams.items():
            reading = self._source.readings.get(target)
            node = target if reading is None else reading.layout.node
            self._connected.labels(node).set(float(stream.connected))
            self._rejected.labels(node).inc(stream.rejected)
            if reading is None:
                continue
            silent = now - reading.received_at
            self._age.labels(node).set(silent)
            if reading.oldest_seconds is not None:
                self._sample_age.labels(node).set(silent + reading.oldest_seconds)


class SecurityMetrics:
    """Certificates, handshakes and APIServices."""

    def __init__(
        self, metrics: OwnMetrics, *, gate: Gate, trust: Trust, registration: Registration
    ) -> None:
        self._gate = gate
        self._trust = trust
        self._registration = registration
        self._ends = metrics.gauge(CERTIFICATE_ENDS)
        self._refused = metrics.counter(REFUSED_HANDSHAKES)
        self._registered = metrics.gauge(REGISTERED)

    def observe(self) -> None:
        """Set what is known now."""
        _copy(self._refused, self._trust.refused)
        self._ends.clear()
        for what, end in self._gate.ends_at().items():
            self._ends.labels(what).set(end)
        self._registered.clear()
        for name, standing in self._registration.standings.items():
            ours = standing is Standing.OURS
            self._registered.labels(name, "" if ours else _word(standing)).set(float(ours))


class DropMetrics:
    """Objects without a value, by reason."""

    def __init__(self, metrics: OwnMetrics, dropped: Mapping[Absence, int]) -> None:
        self._dropped = dropped
        self._counter = metrics.counter(DROPPED_VALUES)

    def observe(self) -> None:
        """Set what is known now."""
        _copy(self._counter, self._dropped)


class ReloadMetrics:
    """The last reload of files; called by ``slicewatch.service.reload.Reload``."""

    def __init__(self, metrics: OwnMetrics) -> None:
        self._valid = metrics.gauge(RELOAD_VALID)
        self._time = metrics.gauge(RELOAD_TIME)

    def report(self, valid: bool) -> None:
        """Note that all files are valid, or that one is not."""
        self._valid.set(float(valid))
        if valid:
            self._time.set_to_current_time()


def _copy(counter: Counter, counts: Mapping[E, int]) -> None:
    counter.clear()
    for reason, number in counts.items():
        counter.labels(_word(reason)).inc(number)


def _word(reason: Enum) -> str:
    return reason.name.lower()
