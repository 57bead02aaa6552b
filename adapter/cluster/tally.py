"""Sums that follow changes: what changes costs its own part, however many others there are."""

from collections import Counter
from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")


class Tally(Generic[K]):
    """Whole numbers by key. A key whose sum is 0 is gone.

    Attributes:
        sums: to be read only.
    """

    def __init__(self) -> None:
        self.sums: Counter[K] = Counter()

    def replace(self, old: Mapping[K, int], new: Mapping[K, int]) -> None:
        """Take out what something contributed before, and put in what it contributes now."""
        # Loops: Counter's own methods cost several times as much for a few keys.
        for key, number in new.items():
            self.sums[key] += number
        for key, number in old.items():
            self.sums[key] -= number
        for key in {**old, **new}:
            if not self.sums[key]:
                del self.sums[key]
