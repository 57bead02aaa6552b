"""How busy a GPU was, from the driver's buffered samples."""

import msgspec

MICROSECONDS = 1_000_000

# NVML documents a sampling period of 1/6 s to 1 s by product. Two samples further apart than
# this have others between them that the driver's buffer no longer held: that time is unknown.
LONGEST_PERIOD_US = 1_500_000


class Utilization(msgspec.Struct, frozen=True, gc=False):
    """Buffered utilization samples that are newer than the ones of the previous read.

    A sample tells how busy the GPU was in the period that ends at its timestamp, so it covers the
    time since the previous sample. ``since_us`` is the last sample's timestamp of the previous
    read; the first read of a session has none and gives its first sample no weight.

    Where the driver has no such samples, as under MIG, there is one at most, whose percentage comes
    from counters and is exact over its whole period.

    Attributes:
        samples: pairs of (timestamp in microseconds, percent 0-100), oldest first; the clock is
            the CPU's, or for counters one that never goes back.
        since_us: where the first sample's period begins, or None.
        current_percent: the driver's own current rate, read only when ``samples`` is empty: on
            some boards the buffer runs dry while a GPU idles.
        longest_period_us: a longer time between two samples is unknown.
    """

    samples: tuple[tuple[int, float], ...]
    since_us: int | None
    current_percent: int | None = None
    longest_period_us: int = LONGEST_PERIOD_US

    def consistent(self) -> bool:
        """Tell whether every rate is a percentage; a driver in trouble reports anything."""
        now = self.current_percent
        return (now is None or 0 <= now <= 100) and all(0 <= p <= 100 for _, p in self.samples)

    def covered_seconds(self) -> float:
        """Return how much time the samples cover; 0 if none."""
        covered, _ = self._sums()
        return covered / MICROSECONDS

    def busy_seconds(self) -> float:
        """Return how much of the covered time at least one kernel ran."""
        _, busy = self._sums()
        return busy / (100 * MICROSECONDS)

    def percent(self) -> float | None:
        """Return the mean over the covered time, or the driver's current rate, 0-100."""
        covered, busy = self._sums()
        if covered:
            # In whole numbers: by way of seconds a busy GPU comes to 100.00000000000001 percent
            # in one of fifteen cases, which is out of range.
            return busy / covered
        return None if self.current_percent is None else float(self.current_percent)

    def _sums(self) -> tuple[int, float]:
        """Return the microseconds that samples cover, and their sum weighted by the percentages."""
        covered: int = 0
        busy: float = 0
        before = self.since_us
        for at, percent in self.samples:
            if before is not None and 0 < at - before <= self.longest_period_us:
                covered += at - before
                busy += (at - before) * percent
            before = at
        return covered, busy


class EngineRate(msgspec.Struct, frozen=True, gc=False):
    """How busy one engine was, by the driver's own sampling period (1/6 s to 1 s by product)."""

    percent: int
