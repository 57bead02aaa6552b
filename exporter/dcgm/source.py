"""What DCGM last said about each MIG instance, and why it said nothing.

Holds the last page. Does no I/O and never guesses: a value is given only for the very instance
that DCGM means, and only while pages keep coming.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from exporter.dcgm.page import FIELD, Page
from exporter.dcgm.profiles import same_profile
from slicewatch.wire.layout import Device

DEADLINE_SECONDS: Final = 10.0
# One lost page is no reason to withdraw values; after this many intervals they are not current.
INTERVALS_UNTIL_STALE: Final = 3


class Reason(StrEnum):
    """Why there is no value, in one word, as the layout's ``support`` has it."""

    NOT_READ = "dcgm_not_read"
    UNREACHABLE = "dcgm_unreachable"
    TOO_SLOW = "dcgm_too_slow"
    BAD_ANSWER = "dcgm_bad_answer"
    TOO_LARGE = "dcgm_too_large"
    OTHER_PAGE = "dcgm_other_page"
    NO_PROFILING = "dcgm_no_profiling"
    NO_INSTANCE = "dcgm_no_instance"
    OTHER_PROFILE = "dcgm_other_profile"
    PART_OF_INSTANCE = "dcgm_part_of_instance"
    NO_VALUE = "dcgm_no_value"


class DcgmSource:
    """The activity of MIG instances, by the last page of the node's dcgm-exporter.

    Args:
        interval_seconds: how often a page is meant to come.
        reject: called with the name of the field for each value that could not be true.
    """

    name = "dcgm"

    def __init__(self, *, interval_seconds: float, reject: Callable[[str], None]) -> None:
        self.interval_seconds = interval_seconds
        self.fault: Reason | None = Reason.NOT_READ
        """What is wrong with the source as a whole; None while it works."""
        self._stale_seconds = INTERVALS_UNTIL_STALE * interval_seconds + DEADLINE_SECONDS
        self._reject = reject
        self._page: Page | None = None
        self._at = 0.0

    def take(self, page: Page, at: float) -> None:
        """Remember a page that arrived ``at``, in seconds of the monotonic clock."""
        self._page, self._at = page, at
        self.fault = None
        if not page.of_dcgm:
            self.fault = Reason.OTHER_PAGE
        elif not page.profiled:
            self.fault = Reason.NO_PROFILING
        for _ in range(page.rejected):
            self._reject(FIELD)

    def fail(self, fault: Reason) -> None:
        """No page came. The last one stays until it is stale."""
        self.fault = fault

    def utilization(self, device: Device, now: float) -> tuple[float, float] | None:
        """Return how busy a MIG instance is in percent, and the age of that in seconds.

        None where ``reason`` has a word: DCGM measures GPU instances, so a compute instance that
        is only part of one has no value of its own, and neither have whole GPUs.
        """
        found = self._find(device, now)
        return None if isinstance(found, Reason) else (100 * found, now - self._at)

    def reason(self, device: Device, now: float) -> Reason | None:
        """Return why there is no value; None if there is one."""
        found = self._find(device, now)
        return found if isinstance(found, Reason) else None

    def _find(self, device: Device, now: float) -> float | Reason:
        if self._page is None or now - self._at > self._stale_seconds:
            return self.fault or Reason.NOT_READ
        if device.gpu_instance is None:
            return Reason.NO_INSTANCE
        # 1c.3g.20gb: one slice of the three that DCGM's value is about.
        if "c." in device.profile:
            return Reason.PART_OF_INSTANCE
        reported = self._page.instances.get((device.parent, device.gpu_instance))
        if reported is None:
            return self.fault or Reason.NO_INSTANCE
        for profile, ratio in reported.items():
            if same_profile(device.profile, profile):
                return Reason.NO_VALUE if ratio is None else ratio
        return Reason.OTHER_PROFILE
