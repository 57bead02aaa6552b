"""Go's integers, where they differ from Python's: division, and replicas that do not fit."""

import math
from typing import Final

from slicewatch.kube.quantity import LARGEST_INT64

LARGEST_REPLICAS: Final = 2**31 - 1


def quotient(dividend: int, divisor: int) -> int:
    """Return the quotient, truncated towards zero."""
    size = abs(dividend) // abs(divisor)
    return size if (dividend < 0) == (divisor < 0) else -size


def replicas(exact: float) -> int:
    """Return a number of replicas, rounded up; what does not fit is what amd64 makes of it.

    That is a negative number, so that an absurdly high metric scales down to the minimum.
    """
    fits = math.isfinite(exact) and abs(exact) <= LARGEST_REPLICAS
    return math.ceil(exact) if fits else -LARGEST_REPLICAS - 1


def capped_replicas(exact: float) -> int:
    """Return a number of replicas, rounded up, and at most the largest there can be."""
    return LARGEST_REPLICAS if exact > LARGEST_REPLICAS else replicas(exact)


def total(values: tuple[int, ...]) -> int:
    """Return a sum, at most the largest int64."""
    return min(sum(values), LARGEST_INT64)
