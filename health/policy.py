"""How patient the monitor is. The operator's choice, apart from what makes a GPU ill."""

from dataclasses import dataclass
from typing import Final

from health.case import POLLS_KEPT

# A node whose exporter is replaced is without one for less.
LEAST_SILENCE_SECONDS: Final = 300.0
SILENT_POLLS: Final = 3
# Of the time between two polls: what one that came early or late may lack or add.
JITTER: Final = 0.1
LONGEST_POLL: Final = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How long evidence has to last, and what follows from it at most.

    Attributes:
        interval_seconds: between two polls.
        grace_seconds: after a boot, or since the driver came or went, checks that ask for it raise
            nothing; so links may train and drivers be replaced.
        good_polls: so many have to find nothing that cordons before a cordon is taken back.
        flapping_raises: a fault that cordons and is raised for the so-manieth time within a day
            stays until a human clears it.
        auto_cordon: False for never wishing that the node be cordoned, nor that it be released.
    """

    interval_seconds: float = 60.0
    grace_seconds: float = 300.0
    good_polls: int = 5
    flapping_raises: int = 3
    auto_cordon: bool = True

    @property
    def silence_seconds(self) -> float:
        """Return after which time without an answer what was known is worth nothing."""
        return max(LEAST_SILENCE_SECONDS, SILENT_POLLS * self.interval_seconds)

    @property
    def credit_seconds(self) -> float:
        """Return how much of the time between two polls is taken for seen at most."""
        return LONGEST_POLL * self.interval_seconds

    @property
    def patience_seconds(self) -> float:
        """Return after which time without evidence a streak is over."""
        return POLLS_KEPT * self.interval_seconds

    def enough(self, seconds: float) -> float:
        """Return how long a streak has to be to count for so long, polls being never on time."""
        return seconds - JITTER * min(seconds, self.interval_seconds)
