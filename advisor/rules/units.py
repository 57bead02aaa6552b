"""What a metric is measured in, as far as its name tells: what targets are held against."""

from typing import Final

from slicewatch.catalog import CATALOG
from slicewatch.catalog.dcgm import ALIASES
from slicewatch.catalog.model import Unit

_NATIVE_OF_ALIAS: Final = {alias.name: alias for alias in ALIASES}
_RATIO_WORDS: Final = ("_ratio", "_perc", "_fraction")
_PERCENT_WORDS: Final = ("_percent", "_percentage", "gpu_util", "gpu_utilization")


def unit_of(*names: str) -> Unit | None:
    """Return the unit of a metric by any of its names, the most telling first; None if unknown."""
    return next((unit for name in names if (unit := _unit(name)) is not None), None)


def _unit(name: str) -> Unit | None:
    if name in CATALOG:
        return CATALOG[name].unit
    alias = _NATIVE_OF_ALIAS.get(name)
    if alias is not None:
        native = CATALOG[alias.metric].unit
        if native is Unit.PERCENT and alias.factor == 1:
            return Unit.PERCENT
        return Unit.RATIO if native is Unit.RATIO and alias.factor == 1 else None
    lower = name.lower()
    if lower.endswith(_RATIO_WORDS):
        return Unit.RATIO
    if lower.endswith(_PERCENT_WORDS):
        return Unit.PERCENT
    return Unit.BYTES if lower.endswith("_bytes") else None
