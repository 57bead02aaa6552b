"""Kubernetes quantities, read: exactly, and as an autoscaler reads them.

Writing them is not done here: who writes a value chooses how much of it to keep.
"""

import math
import re
from decimal import Decimal
from typing import Final

Quantity = str | int | float
"""As it arrives. Kubernetes writes text; some metrics servers write bare numbers."""

_TEXT: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?\d{1,3}))?"
)
_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
LARGEST_INT64: Final = 2**63 - 1


def number(quantity: Quantity) -> Decimal:
    """Return the value of a quantity.

    Raises:
        ValueError: it is none; the message repeats it.
    """
    found = _TEXT.fullmatch(str(quantity))
    if found is None:
        raise ValueError(f"{quantity!r} is not a quantity such as 70, 500m, 1.5k or 2Gi")
    value, suffix = Decimal(found["number"]), found["suffix"] or ""
    if suffix in _BINARY:
        return value * (1 << _BINARY[suffix])
    return value.scaleb(int(found["exponent"] or _DECIMAL[suffix]))


def thousandths(quantity: Quantity) -> int:
    """Return a quantity in thousandths, rounded up: all that an autoscaler sees of it.

    One that overflows int64 then is 0, as it is to an autoscaler: ``10P`` scales down to the
    minimum.

    Raises:
        ValueError: it is no quantity.
    """
    exact = math.ceil(number(quantity) * 1000)
    return exact if abs(exact) <= LARGEST_INT64 else 0
