"""Taking turns: what is compared is measured again and again, one after the other.

A noisy machine is noisy for both; the order changes from round to round, so that a machine that
gets slower all the time favours neither.
"""

import statistics
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One quantity of ours and of a peer, once a round each."""

    ours: tuple[float, ...]
    peers: tuple[float, ...]

    @classmethod
    def of(cls, rounds: Sequence[tuple[T, T]], quantity: Callable[[T], float]) -> "Comparison":
        """Take one quantity out of what ``alternately`` returned."""
        return cls(
            ours=tuple(quantity(ours) for ours, _ in rounds),
            peers=tuple(quantity(peer) for _, peer in rounds),
        )

    @property
    def value(self) -> float:
        """Median of ours."""
        return statistics.median(self.ours)

    @property
    def peer(self) -> float:
        """Median of the peer's."""
        return statistics.median(self.peers)

    @property
    def ratio(self) -> float:
        """Median of the ratios within a round, which share their moment."""
        return statistics.median(self._ratios())

    @property
    def spread(self) -> tuple[float, float]:
        """Smallest and largest ratio."""
        ratios = self._ratios()
        return min(ratios), max(ratios)

    def _ratios(self) -> list[float]:
        return [ours / peer for ours, peer in zip(self.ours, self.peers, strict=True)]


async def alternately(
    rounds: int, ours: Callable[[], Awaitable[T]], peer: Callable[[], Awaitable[T]]
) -> list[tuple[T, T]]:
    """Measure both once a round, ours first in every other one; return the pairs."""
    pairs = []
    for turn in range(rounds):
        if turn % 2 == 0:
            first = await ours()
            pairs.append((first, await peer()))
        else:
            second = await peer()
            pairs.append((await ours(), second))
    return pairs


def extent(values: Iterable[float]) -> tuple[float, float]:
    """Return the smallest and the largest."""
    known = list(values)
    return min(known), max(known)
