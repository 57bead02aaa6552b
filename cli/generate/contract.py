"""``tests/golden/catalog.json``: what others rely on, one line per metric.

A change to a promise is a change to its line, which the review of a commit shows. Of a ``stable``
metric nothing may go away.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from slicewatch.catalog.model import Metric, Scope


def contract_of(metrics: Iterable[Metric[Any]]) -> str:
    """Return the promises of metrics as JSON, sorted by name."""
    promises = {metric.name: _promise(metric) for metric in metrics}
    lines = [
        f"  {msgspec.json.encode(name).decode()}: {msgspec.json.encode(promise).decode()}"
        for name, promise in sorted(promises.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _promise(metric: Metric[Any]) -> dict[str, object]:
    """Return what those who query a metric rely on; identity labels follow from ``scopes``."""
    return {
        "type": metric.kind,
        "unit": metric.unit,
        "labels": metric.labels,
        "scopes": [scope for scope in Scope if scope in metric.scopes],
        "stability": metric.stability,
    }
