"""What becomes of a metric of one pod: a value, or the reason why there is none."""

from dataclasses import dataclass
from enum import StrEnum


class Absence(StrEnum):
    """Why there is no value. The text completes 'no value, since …'."""

    FINISHED = "it has finished"
    NOT_OFFERED = "it does not offer its metrics"
    UNUSABLE = "its annotations cannot be used"
    NO_ADDRESS = "it has no address yet"
    CROWDED = "the adapter scrapes as many pods as it may"
    NOT_READ = "its page has not been read yet"
    UNREADABLE = "its page cannot be read"
    NO_SERIES = "its page has no such series"
    SEVERAL = "several series match, and combine is not set"
    WRONG = "its series cannot be used"
    ONE_PAGE = "growth needs a second scrape"
    IDLE = "it had nothing to measure, and idle is absent"
    STALE = "the last value is too old"

    @property
    def passing(self) -> bool:
        """Tell a state that may end by itself from one that somebody has to end."""
        return self not in {
            Absence.FINISHED,
            Absence.NOT_OFFERED,
            Absence.UNUSABLE,
            Absence.NO_SERIES,
            Absence.SEVERAL,
            Absence.WRONG,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of one metric and one page: ``value``, or else ``absence``.

    Attributes:
        window_seconds: time that the value is of; 0 for an instant.
        detail: what ``absence`` alone does not say.
        series: number of series that it is made of.
    """

    value: float | None = None
    window_seconds: float = 0.0
    absence: Absence | None = None
    detail: str = ""
    series: int = 0
