"""How long to wait before the next attempt: longer each time, never in step with others."""

import random
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Backoff:
    """Waiting times that double from ``first_seconds`` to ``most_seconds``, each with jitter.

    A fleet that lost its server at one moment must not come back at one moment, so a wait is
    anything between half of its step and the whole.
    """

    first_seconds: float = 0.5
    most_seconds: float = 30.0
    _failures: int = field(default=0, init=False)

    def next_seconds(self) -> float:
        """Return how long to wait after one more failure."""
        # The bound on the exponent keeps an outage of days from overflowing.
        step = min(self.most_seconds, self.first_seconds * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return step * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, keeps no secret

    def reset(self) -> None:
        """Start over: an attempt succeeded."""
        self._failures = 0
