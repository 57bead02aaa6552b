"""Values as the APIs write them: one item per object or series, and lists in every version.

An item is encoded once and then only joined with others: a list of a thousand pods is a
concatenation, not an encoding.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from adapter.api.paths import CUSTOM, EXTERNAL, GROUPS
from adapter.api.quantity import quantity
from adapter.api.resources import Resource
from slicewatch.kube.times import timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One value of one object.

    Attributes:
        namespace: empty for objects that are in none.
        read_at: of the oldest reading in it, in seconds since the epoch.
        window_seconds: time that the value is a mean over; 0 for an instant.
        selector: the metric selector as a LabelSelector object, or None.
    """

    resource: Resource
    namespace: str
    name: str
    metric: str
    value: float
    read_at: float
    window_seconds: float
    selector: Mapping[str, object] | None

    def encode(self, version: str) -> bytes:
        """Return the JSON of the item in a version of the API.

        Raises:
            ValueError: the value is not finite.
        """
        # Assembled by hand: all items of a fleet are encoded again with every tick of its exporters.
        described = _described(
            self.resource.kind, self.resource.api_version, self.namespace, self.name
        )
        metric, selector = msgspec.json.encode(self.metric), msgspec.json.encode(self.selector)
        when = _when(version, int(self.read_at), round(self.window_seconds))
        value = quantity(self.value).encode()
        if version == "v1beta1":
            return (b'{"describedObject":%b,"metricName":%b,%b"value":"%b","selector":%b}') % (
                described,
                metric,
                when,
                value,
                selector,
            )
        return (b'{"describedObject":%b,"metric":{"name":%b,"selector":%b},%b"value":"%b"}') % (
            described,
            metric,
            selector,
            when,
            value,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalItem:
    """One value of one series that belongs to no object; autoscalers sum all items of a list.

    Attributes:
        metric: its name as it was configured, whatever case it was asked for in.
        labels: what tells the series from the others.
        read_at: of the oldest reading in it, in seconds since the epoch.
        window_seconds: time that the value is a mean over; 0 for an instant.
    """

    metric: str
    labels: Mapping[str, str]
    value: float
    read_at: float
    window_seconds: float = 0.0

    def encode(self) -> bytes:
        """Return the JSON of the item.

        Raises:
            ValueError: the value is not finite.
        """
        seconds = round(self.window_seconds)
        item = {
            "metricName": self.metric,
            "metricLabels": dict(self.labels),
            "timestamp": timestamp(int(self.read_at)),
            **({"window": seconds} if seconds else {}),
            "value": quantity(self.value),
        }
        return msgspec.json.encode(item)


@lru_cache(maxsize=16_384)
def _described(kind: str, api_version: str, namespace: str, name: str) -> bytes:
    within = {"namespace": namespace} if namespace else {}
    described = {"kind": kind, **within, "name": name, "apiVersion": api_version}
    return msgspec.json.encode(described)


@lru_cache(maxsize=1024)
def _when(version: str, read_at: int, window_seconds: int) -> bytes:
    window = {"window" if version == "v1beta1" else "windowSeconds": window_seconds}
    fields = {"timestamp": timestamp(read_at)} | (window if window_seconds else {})
    return msgspec.json.encode(fields)[1:-1] + b","


def _head(kind: str, group: str, version: str) -> bytes:
    text = f'{{"kind":"{kind}","apiVersion":"{group}/{version}","metadata":{{}},"items":['
    return text.encode()


_HEADS: Final = {v: _head("MetricValueList", CUSTOM, v) for v in GROUPS[CUSTOM]}
_EXTERNAL_HEAD: Final = _head("ExternalMetricValueList", EXTERNAL, GROUPS[EXTERNAL][0])


def metric_list(version: str, items: Iterable[bytes]) -> bytes:
    """Return the list of encoded items of objects."""
    return _HEADS[version] + b",".join(items) + b"]}"


def external_list(items: Iterable[bytes]) -> bytes:
    """Return the list of encoded items of series."""
    return _EXTERNAL_HEAD + b",".join(items) + b"]}"
