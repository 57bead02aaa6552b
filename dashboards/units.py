"""Grafana's names of the catalog's units."""

from typing import Final

from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Kind, Unit

COUNT: Final = "short"
STATE: Final = "none"
PER_SECOND: Final = "cps"
DOLLARS_PER_HOUR: Final = "currencyUSD"
RATIO: Final = "percentunit"
SECONDS: Final = "s"
CORES: Final = "short"

_NAMES: Final = {
    Unit.NONE: COUNT,
    Unit.PERCENT: "percent",
    Unit.RATIO: RATIO,
    Unit.BYTES: "bytes",
    Unit.WATTS: "watt",
    Unit.JOULES: "joule",
    Unit.CELSIUS: "celsius",
    Unit.MEGAHERTZ: "suffix: MHz",
    Unit.HERTZ: "hertz",
    Unit.SECONDS: SECONDS,
    Unit.BYTES_PER_SECOND: "binBps",
    Unit.DOLLARS_PER_HOUR: DOLLARS_PER_HOUR,
}


def of(name: str) -> str:
    """Return the unit of a metric's values; of a counter, of what it counts.

    Raises:
        KeyError: the catalog has no such metric.
    """
    return _NAMES[CATALOG[name].unit]


def rate_of(name: str) -> str:
    """Return the unit of a counter's rate: of seconds and joules what they are per second.

    Raises:
        KeyError: the catalog has no such metric, or it is no counter.
    """
    metric = CATALOG[name]
    if metric.kind is not Kind.COUNTER:
        raise KeyError(f"{name} is no counter")
    return {Unit.SECONDS: RATIO, Unit.BYTES: "binBps", Unit.JOULES: "watt"}.get(
        metric.unit, PER_SECOND
    )
