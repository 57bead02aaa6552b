"""What readings are while a ``garbage`` fault lasts.

These are values that real drivers and libraries gave: words for "not available", taken at face
value.
"""

from typing import Final, TypeVar

import msgspec

R = TypeVar("R", bound=msgspec.Struct)

CELSIUS: Final = 4_278_190_080
PERCENT: Final = 9_223_372_036_854_775_807
WORD: Final = 2**32 - 1
LONG: Final = 2**64 - 1


def instead_of(reading: R) -> R:
    """Return a reading of the same kind in which each number means "not available"."""
    shown = (getattr(reading, name) for name in reading.__struct_fields__)
    return type(reading)(*map(_nonsense, shown))


def _nonsense(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(map(_nonsense, value))
    return LONG if type(value) is int else value
