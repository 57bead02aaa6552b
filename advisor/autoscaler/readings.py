"""What the metrics APIs gave the controller for one metric."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The value of one pod, in thousandths.

    Attributes:
        read_at: when it was measured; only CPU depends on it.
        window_seconds: over how long.
    """

    value: int
    read_at: datetime | None = None
    window_seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """All that was answered for one metric; ``fault`` says why there is nothing.

    Attributes:
        by_pod: of metrics of pods and of resources.
        values: of metrics of an object (one) or of none (any number), in thousandths.
    """

    by_pod: Mapping[str, Sample] = field(default_factory=dict)
    values: tuple[int, ...] = ()
    fault: str = ""
