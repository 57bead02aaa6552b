"""What each device costs: the price of its model, and of a MIG device its part of that.

A MIG device is charged by memory slices: instances have them for themselves, so that their parts
add up to no more than the whole. Compute slices would add up to more where a profile has fewer of
them than of memory. What no instance has is nobody's, and still paid for.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from slicewatch.catalog.cost import DOLLARS_PER_HOUR, PRICE
from slicewatch.hardware import BY_NVML_NAME, MODELS, memory_slices
from slicewatch.wire.layout import Device
from slicewatch.wire.snapshot import Column

_OUR_NAMES: Final = frozenset(name.casefold() for name in MODELS)


class Prices:
    """Prices by patterns of model names, NVML's or ours; the first that fits counts.

    Args:
        dollars_per_hour: of a whole GPU.
    """

    def __init__(self, dollars_per_hour: Mapping[str, float]) -> None:
        self._patterns = tuple(dollars_per_hour.items())
        self._devices: Sequence[Device] | None = None
        self._columns: dict[str, Column] = {}

    def columns(self, devices: Sequence[Device]) -> dict[str, Column]:
        """Return the price of each device, None where it is not known; nothing without prices."""
        if self._patterns and devices is not self._devices:
            self._devices = devices
            self._columns = {PRICE.name: [self._of(device, devices) for device in devices]}
        return self._columns

    def _of(self, device: Device, devices: Sequence[Device]) -> float | None:
        whole = next((price for name, price in self._patterns if _fits(device, name)), None)
        if whole is None or not device.is_mig:
            return whole
        part = _part(device, devices)
        return None if part is None else whole * part


def check(dollars_per_hour: Mapping[str, float]) -> None:
    """Check prices.

    Raises:
        ValueError: one is no price per hour, or of no model; says which.
    """
    for name, price in dollars_per_hour.items():
        # NVML's names have several words. Of those that people say, many would fit nothing.
        if not name or (name.isalnum() and name.casefold() not in _OUR_NAMES):
            raise ValueError(
                f"{name!r} is the name of no model; write '*{name}*' for all that have it in theirs"
            )
        if not DOLLARS_PER_HOUR.hold(price):
            high = DOLLARS_PER_HOUR.high
            raise ValueError(f"{name!r}: {price:g} is no price of an hour, from 0 to {high:g}")


def _fits(device: Device, pattern: str) -> bool:
    known = BY_NVML_NAME.get(device.model)
    names = (device.model,) if known is None else (device.model, known.name)
    return any(fnmatchcase(name.casefold(), pattern.casefold()) for name in names)


def _part(device: Device, devices: Sequence[Device]) -> float | None:
    """Return the part of its GPU that a MIG device is; None where that is not known."""
    slices = memory_slices(device.model)
    if slices is None or device.placement_size is None:
        return None
    instance = device.placement_size / slices
    inside = [
        one for one in devices
        if (one.parent, one.gpu_instance) == (device.parent, device.gpu_instance)
    ]  # fmt: skip
    if len(inside) == 1:
        return instance
    # Compute instances of one GPU instance share its memory; what they have of their own is SMs.
    counts = [one.sm_count for one in inside]
    if device.sm_count is None or None in counts:
        return None
    return instance * device.sm_count / sum(count or 0 for count in counts)
