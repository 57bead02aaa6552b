"""How a value is to be made of the chosen series: two keys that metric selectors reserve.

An autoscaler has no other field to say it in. The keys ask for a way, never for labels, so
neither can be the name of a label that a selector chooses by.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from adapter.api.label_selectors import Operator, Selector, SelectorError
from slicewatch.catalog.model import Combine

T = TypeVar("T")

COMBINE: Final = "combine"
WINDOW: Final = "window"
COMBINES: Final = {"avg": Combine.MEAN, "sum": Combine.SUM, "max": Combine.MAX}
WINDOWS_SECONDS: Final = {"15s": 15.0, "1m": 60.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSelector:
    """A metric selector, taken apart.

    Attributes:
        series: which series; echoed with the reserved keys, as it was asked for.
        combine: how several series of an object become one value; None where it is not said.
        window_seconds: time that the value is to be a mean over; None where it is not said.
    """

    series: Selector
    combine: Combine | None = None
    window_seconds: float | None = None


def split(selector: Selector) -> SeriesSelector:
    """Return a metric selector taken apart.

    Raises:
        SelectorError: a reserved key has a value that there is not, or is no equality.
    """
    series = selector.without({COMBINE, WINDOW})
    return SeriesSelector(
        series=series,
        combine=_chosen(series, COMBINE, COMBINES),
        window_seconds=_chosen(series, WINDOW, WINDOWS_SECONDS),
    )


def _chosen(series: Selector, key: str, choices: Mapping[str, T]) -> T | None:
    asked = [r for r in series.reserved if r.key == key]
    if not asked:
        return None
    values = {value for requirement in asked for value in requirement.values}
    plain = all(r.operator is Operator.IN for r in asked)
    if not plain or len(values) != 1 or not values <= choices.keys():
        possible = " or ".join(f"{key}={choice}" for choice in choices)
        raise SelectorError(f"{key} chooses how a value is made, not a label: write {possible}")
    return choices[values.pop()]
