"""Kubernetes quantities: how to write a number so that every client reads the same one.

Canonical decimal form: no fraction, an exponent that is a multiple of three, the largest suffix
that fits. Autoscalers compute in thousandths, so that is the precision kept.
"""

import math
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

# Autoscalers compute in int64 thousandths and read 10P as 0; a thousand pods of this still fit.
LARGEST: Final = 9_000_000_000_000
_SUFFIXES: Final = ("m", "", "k", "M", "G", "T")
_THOUSANDTH: Final = Decimal("0.001")


def quantity(value: float) -> str:
    """Return the canonical text of a value, rounded half to even at a thousandth.

    Values beyond 9e12 are clamped, since autoscalers overflow soon after.

    Raises:
        ValueError: the value is not finite; such a value must be left out, not written.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a valid quantity")
    # From the shortest decimal for this float: 0.0005 must round as it is written.
    clamped = max(-LARGEST, min(LARGEST, float(value)))
    exact = Decimal(repr(clamped)).quantize(_THOUSANDTH, rounding=ROUND_HALF_EVEN)
    thousandths = int(exact * 1000)
    if thousandths == 0:
        return "0"
    step = 0
    while thousandths % 1000 == 0 and step < len(_SUFFIXES) - 1:
        thousandths //= 1000
        step += 1
    return f"{thousandths}{_SUFFIXES[step]}"
