"""Kubernetes quantities: how a number is written so that every client reads the same one.

Canonical decimal form: no fraction, an exponent that is a multiple of three, the largest suffix
that fits. Autoscalers read thousandths, so thousandths are what is kept.
"""

import math
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

# Autoscalers compute in int64 thousandths and read 10P as 0; even a thousand such pods still sum.
LARGEST: Final = 9_000_000_000_000
_SUFFIXES: Final = ("m", "", "k", "M", "G", "T")
_THOUSANDTH: Final = Decimal("0.001")


def quantity(value: float) -> str:
    """Return the canonical text of a value, rounded half to even at a thousandth.

    Values beyond 9e12 are cut there, since autoscalers overflow soon after.

    Raises:
        ValueError: the value is not finite; such a value must be left out, not written.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} is no quantity")
    # Of the shortest decimal that means this float: 0.0005 is to round as it is written.
    cut = max(-LARGEST, min(LARGEST, float(value)))
    exact = Decimal(repr(cut)).quantize(_THOUSANDTH, rounding=ROUND_HALF_EVEN)
    thousandths = int(exact * 1000)
    if thousandths == 0:
        return "0"
    step = 0
    while thousandths % 1000 == 0 and step < len(_SUFFIXES) - 1:
        thousandths //= 1000
        step += 1
    return f"{thousandths}{_SUFFIXES[step]}"
