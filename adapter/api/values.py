"""Values as the APIs write them: one item per object, lists in both versions.

An item is encoded once and then only joined with others: a list of a thousand pods is a
concatenation, not an encoding.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

import msgspec

from adapter.api.paths import CUSTOM, Kind
from adapter.api.quantity import quantity

KIND_NAMES: Final = {Kind.POD: "Pod", Kind.NODE: "Node", Kind.NAMESPACE: "Namespace"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One value of one object.

    Attributes:
        read_at: of the oldest reading in it, in seconds since the epoch.
        selector: the metric selector as a LabelSelector object, or None.
    """

    kind: Kind
    namespace: str
    name: str
    metric: str
    value: float
    read_at: float
    window_seconds: float
    selector: Mapping[str, object] | None

    def encode(self, version: str) -> bytes:
        """Return the JSON of the item in a version of the API."""
        # Assembled by hand: all items of a fleet are encoded again with every tick of its exporters.
        described = _described(self.kind, self.namespace, self.name)
        metric, selector = msgspec.json.encode(self.metric), msgspec.json.encode(self.selector)
        read_at = timestamp(int(self.read_at)).encode()
        window, value = round(self.window_seconds), quantity(self.value).encode()
        if version == "v1beta1":
            return (
                b'{"describedObject":%b,"metricName":%b,"timestamp":"%b","window":%d,'
                b'"value":"%b","selector":%b}'
            ) % (described, metric, read_at, window, value, selector)
        return (
            b'{"describedObject":%b,"metric":{"name":%b,"selector":%b},"timestamp":"%b",'
            b'"windowSeconds":%d,"value":"%b"}'
        ) % (described, metric, selector, read_at, window, value)


@lru_cache(maxsize=16_384)
def _described(kind: Kind, namespace: str, name: str) -> bytes:
    described = {"kind": KIND_NAMES[kind], "namespace": namespace}
    if not namespace:
        del described["namespace"]
    return msgspec.json.encode(described | {"name": name, "apiVersion": "v1"})


@lru_cache(maxsize=1024)
def timestamp(epoch_seconds: int) -> str:
    """Return a time as RFC 3339 in UTC, in whole seconds."""
    return datetime.fromtimestamp(epoch_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _head(version: str) -> bytes:
    text = (
        f'{{"kind":"MetricValueList","apiVersion":"{CUSTOM}/{version}","metadata":{{}},"items":['
    )
    return text.encode()


_HEADS: Final = {version: _head(version) for version in ("v1beta1", "v1beta2")}


def metric_list(version: str, items: Iterable[bytes]) -> bytes:
    """Return the list of encoded items."""
    return _HEADS[version] + b",".join(items) + b"]}"
