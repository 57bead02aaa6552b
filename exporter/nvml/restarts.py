"""When NVML is to be restarted. Pure.

There are two occasions, each with its own rhythm: without a driver nothing works, so that it is
tried soon and often; for a GPU that is lost alone a new start is the only way to see it come
back, but it costs the others a part of a tick. A start that is planned is called off when the
reason for it goes away by itself.
"""

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
FIRST_PAUSE_FOR_LOST_SECONDS = 10.0
LONGEST_PAUSE_FOR_LOST_SECONDS = 300.0


class Occasion:
    """One reason to start NVML anew, with pauses that double while it persists.

    Attributes:
        at: monotonic seconds from which on a start is due; None while there is no reason.
    """

    def __init__(self, first_seconds: float, longest_seconds: float) -> None:
        self._first = first_seconds
        self._longest = longest_seconds
        self._pause = first_seconds
        self.at: float | None = None

    def arise(self, now: float) -> None:
        """Plan a start after the present pause; a start that is planned already stays."""
        if self.at is None:
            self.at = now + self._pause
            self._pause = min(2 * self._pause, self._longest)

    def is_due(self, now: float) -> bool:
        """Tell whether the planned start is due."""
        return self.at is not None and now >= self.at

    def settle(self) -> None:
        """The reason is gone: the next pause is the first one again."""
        self.at = None
        self._pause = self._first


class Restarts:
    """Both occasions of one driver; the first start is due at once."""

    def __init__(self, now: float) -> None:
        self._driver = Occasion(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        self._gpu = Occasion(FIRST_PAUSE_FOR_LOST_SECONDS, LONGEST_PAUSE_FOR_LOST_SECONDS)
        self._driver.at = now

    def is_due(self, now: float) -> bool:
        """Tell whether NVML should be started now."""
        return self._driver.is_due(now) or self._gpu.is_due(now)

    def begun(self) -> None:
        """A start was begun: it serves both occasions."""
        self._driver.at = None
        self._gpu.at = None

    def driver_gone(self, now: float) -> None:
        """NVML does not start, or answers that its driver is gone."""
        self._driver.arise(now)

    def gpu_missing(self, now: float) -> None:
        """A GPU is lost, fails, is new or cannot be identified, or none is there at all."""
        self._gpu.arise(now)

    def driver_works(self) -> None:
        """A GPU answered, so there is a driver."""
        self._driver.settle()

    def all_answer(self) -> None:
        """Every GPU that there is answered."""
        self._driver.settle()
        self._gpu.settle()
