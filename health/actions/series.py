"""Which events are due: equal ones are one event that counts, and all together have a rate.

Pure, and bounded whatever comes: a GPU can report the same error a thousand times a second. What
is not due yet waits and is counted; what the API server has forgotten begins anew.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from health.conditions import cut
from slicewatch.kube.events import LONGEST_MESSAGE_BYTES, Involved

# Between two writes about the same.
APART_SECONDS: Final = 300.0
# The API server keeps an event for an hour after its last change, unless told otherwise.
KEPT_SECONDS: Final = 3000.0
MOST_PER_MINUTE: Final = 10
MOST_SERIES: Final = 512
_CUT: Final = " …"


class Severity(StrEnum):
    """Kubernetes' types of events."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What is one series: the object, what happened to it, and on which GPU (uuid, or none)."""

    involved: Involved
    reason: str
    gpu: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Equal events.

    Attributes:
        count: how often it happened, since the event that is written began.
        written: of these, how often the event says.
        name: of the event object; empty before it is written.
        first_wall, last_wall: seconds since 1970.
        said_at, written_at: seconds of a monotonic clock.
    """

    topic: Topic
    severity: Severity
    message: str
    count: int
    first_wall: float
    last_wall: float
    said_at: float
    written: int = 0
    name: str = ""
    written_at: float | None = None

    def due(self, now: float) -> bool:
        """Tell whether it says less than has happened, and may be written again."""
        return self.count > self.written and (
            self.written_at is None or now - self.written_at >= APART_SECONDS
        )

    def over(self, now: float) -> bool:
        """Tell whether the next of its kind begins a new event."""
        return self.written_at is not None and now - self.written_at >= KEPT_SECONDS


class Backlog:
    """All series of this monitor.

    Attributes:
        dropped: how many were given up unwritten, for there were too many.
    """

    def __init__(self) -> None:
        self._series: OrderedDict[Topic, Series] = OrderedDict()
        self._tokens = float(MOST_PER_MINUTE)
        self._filled_at: float | None = None
        self.dropped = 0

    def say(
        self, topic: Topic, severity: Severity, message: str, *, now: float, wall: float
    ) -> None:
        """Count that something happened."""
        old = self._series.pop(topic, None)
        if old is None or (old.over(now) and not old.due(now)):
            made = Series(
                topic=topic,
                severity=severity,
                message=bounded(message),
                count=1,
                first_wall=wall,
                last_wall=wall,
                said_at=now,
            )
        else:
            made = replace(
                old,
                severity=severity,
                message=bounded(message),
                count=old.count + 1,
                last_wall=wall,
                said_at=now,
            )
        self._series[topic] = made
        if len(self._series) > MOST_SERIES:
            self._forget()

    def due(self, now: float) -> Iterator[Series]:
        """Yield what is to be written now, in the order in which it was last said."""
        for series in tuple(self._series.values()):
            if series.due(now) and self._may_write(now):
                yield series

    def written(self, series: Series, name: str, now: float) -> None:
        """Note that a series is written, as the event of that name."""
        current = self._series.get(series.topic)
        if current is not None:
            self._series[series.topic] = replace(
                current, name=name, written=series.count, written_at=now
            )

    def begin_anew(self, series: Series) -> None:
        """Note that the API server has forgotten the event: what it did not say yet is another."""
        current = self._series.get(series.topic)
        if current is not None:
            rest = current.count - current.written
            self._series[series.topic] = replace(
                current, name="", written=0, count=rest, written_at=None,
                first_wall=current.last_wall,
            )  # fmt: skip

    def give_up(self, series: Series) -> None:
        """Note that it can never be written."""
        if self._series.pop(series.topic, None) is not None:
            self.dropped += series.count - series.written

    def _may_write(self, now: float) -> bool:
        """Take a token; they come back at the rate of ``MOST_PER_MINUTE``."""
        since = now - (now if self._filled_at is None else self._filled_at)
        self._filled_at = now
        self._tokens = min(MOST_PER_MINUTE, self._tokens + since * MOST_PER_MINUTE / 60)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _forget(self) -> None:
        """Drop a series of which all is written, or else the one that was said longest ago."""
        settled = (topic for topic, one in self._series.items() if one.count == one.written)
        topic = next(settled, next(iter(self._series)))
        self.give_up(self._series[topic])


def bounded(message: str) -> str:
    """Return a message that Kubernetes takes."""
    return cut(message, LONGEST_MESSAGE_BYTES, mark=_CUT)
