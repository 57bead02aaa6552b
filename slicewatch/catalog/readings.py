"""What one NVML read returns, as plain data.

Units are part of the field names and are NVML's own: the catalog converts to what we publish, so
that a reading can be compared with ``nvidia-smi`` digit by digit. No reading carries a sentinel:
a value that NVML marks as not available is an ``Unsupported`` outcome, or ``None`` where the
field allows it.

They are structs because hundreds are created in every tick, and a frozen dataclass takes several
times as long to create; they never go over a wire.
"""

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

    Attributes:
        samples: pairs of (CPU timestamp in microseconds, percent 0-100), oldest first.
        since_us: where the first sample's period begins, or None.
        current_percent: the driver's own current rate, read only when ``samples`` is empty: on
            some boards the buffer runs dry while a GPU idles.
    """

    samples: tuple[tuple[int, int], ...]
    since_us: int | None
    current_percent: int | None = None

    def consistent(self) -> bool:
        """Tell whether every rate is a percentage; a driver in trouble reports anything."""
        now = self.current_percent
        return (now is None or 0 <= now <= 100) and all(0 <= p <= 100 for _, p in self.samples)

    def covered_seconds(self) -> float:
        """Return how much time the samples cover; 0 if none."""
        return sum(period for period, _ in self._periods()) / MICROSECONDS

    def busy_seconds(self) -> float:
        """Return how much of the covered time at least one kernel ran."""
        return sum(period * percent for period, percent in self._periods()) / (100 * MICROSECONDS)

    def percent(self) -> float | None:
        """Return the mean over the covered time, or the driver's current rate, 0-100."""
        periods = self._periods()
        if periods:
            # In whole numbers: by way of seconds a busy GPU comes to 100.00000000000001 percent
            # in one of fifteen cases, which is out of range.
            busy = sum(period * percent for period, percent in periods)
            return busy / sum(period for period, _ in periods)
        return None if self.current_percent is None else float(self.current_percent)

    def _periods(self) -> list[tuple[int, int]]:
        """Return (length in microseconds, percent) of every period that a sample covers."""
        periods = []
        before = self.since_us
        for at, percent in self.samples:
            if before is not None and 0 < at - before <= LONGEST_PERIOD_US:
                periods.append((at - before, percent))
            before = at
        return periods


class Memory(msgspec.Struct, frozen=True, gc=False):
    """Frame buffer of a GPU or a MIG instance (nvmlMemory_v2_t).

    ``used_bytes`` is what is allocated, excluding ``reserved_bytes``, which the driver keeps.
    """

    total_bytes: int
    free_bytes: int
    used_bytes: int
    reserved_bytes: int

    def consistent(self) -> bool:
        """Tell whether the parts fit into the whole."""
        parts = (self.free_bytes, self.used_bytes, self.reserved_bytes)
        if min(parts) < 0 or self.total_bytes <= 0 or self.reserved_bytes > self.total_bytes:
            return False
        return self.free_bytes + self.used_bytes <= self.total_bytes


class Power(msgspec.Struct, frozen=True, gc=False):
    """Power draw of the whole board."""

    draw_milliwatts: int


class Energy(msgspec.Struct, frozen=True, gc=False):
    """Energy used by the board since the driver was loaded (not since boot)."""

    used_millijoules: int


class Temperature(msgspec.Struct, frozen=True, gc=False):
    """Temperature of the GPU die."""

    celsius: int


class Clock(msgspec.Struct, frozen=True, gc=False):
    """Current frequency of one clock domain."""

    megahertz: int
