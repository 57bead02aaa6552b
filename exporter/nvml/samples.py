"""How far the driver's buffered samples were read, of devices, processes and vGPUs.

The driver keeps the samples of some ten or twenty seconds and hands out those after a timestamp.
Percentages are passed on as they are, and gaps are left to the reading: here only timestamps are
judged, because a wrong one would hide the samples that come after it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from exporter.nvml.vgpu_waits import WaitCursor
from slicewatch.catalog.readings.processes import ProcessShare, ProcessUtilization
from slicewatch.catalog.readings.utilization import LONGEST_PERIOD_US, Utilization
from slicewatch.catalog.readings.vgpu import VgpuRate, VgpuUtilization

# Stamps come from the CPU's clock. One that is further ahead than this is garbage, or the clock
# was set back: as a cursor it would keep out every sample until the clock is there again.
AHEAD_US: Final = 1_000_000


class _Newest:
    """The timestamp of the newest sample that was read."""

    def __init__(self) -> None:
        self._seen_us = 0

    def since_us(self, now_us: int) -> int:
        """Return the timestamp after which to ask; 0 for whatever there is."""
        if self._seen_us > now_us + AHEAD_US:
            self._seen_us = 0
        return self._seen_us


class SampleCursor(_Newest):
    """The last sample taken of one GPU.

    It outlives sessions and restarts of NVML: the samples between two of them are in the driver's
    buffer, and count.
    """

    def is_dry(self, now_us: int) -> bool:
        """Tell whether samples have stopped, as on some boards while they idle.

        Until then a read without a new sample says nothing: the next sample speaks of that time.
        """
        return now_us - self._seen_us > LONGEST_PERIOD_US

    def take(self, samples: Iterable[tuple[int, int]], now_us: int) -> Utilization:
        """Return the reading of the samples that are new, and move on behind them.

        Args:
            samples: pairs of (CPU timestamp in microseconds, percent), in any order.
            now_us: the CPU's clock.
        """
        before = self._seen_us
        until = now_us + AHEAD_US
        new = sorted(sample for sample in samples if before < sample[0] <= until)
        if not new:
            return Utilization((), before or None)
        self._seen_us = new[-1][0]
        if not before:
            # The first read finds the whole buffer: what was before the session is not counted.
            return Utilization((new[-1],), None)
        return Utilization(tuple(new), before)


class ProcessCursor:
    """Up to when the shares of one GPU's processes were read."""

    def __init__(self) -> None:
        self._until_us: int | None = None

    def since_us(self, now_us: int) -> int:
        """Return the timestamp after which to ask; at first, now: what was before is not ours."""
        if self._until_us is None or self._until_us > now_us:
            return now_us
        return self._until_us

    def take(self, entries: Iterable[tuple[int, int, int]], now_us: int) -> ProcessUtilization:
        """Return the reading of the entries, and move on to now.

        Args:
            entries: triples of (pid, CPU timestamp in microseconds, percent).
            now_us: the CPU's clock.
        """
        # A clock that was set back begins a new span.
        since = None if self._until_us is None or self._until_us > now_us else self._until_us
        self._until_us = now_us
        shares, rejected = [], 0
        for pid, at, percent in entries:
            # Drivers were seen to fill the rest of the buffer with whatever lay there.
            if pid > 0 and percent <= 100 and (since or 0) < at <= now_us + AHEAD_US:
                shares.append(ProcessShare(pid, at, percent))
            else:
                rejected += 1
        return ProcessUtilization(tuple(shares), since, now_us, rejected)


# Instance id, CPU timestamp in microseconds; percent of SMs, memory, encoder and decoder.
VgpuRow = tuple[int, int, float, float, float, float]


class VgpuCursor(_Newest):
    """The newest sample of vGPUs that was read of one GPU."""

    def take(
        self, rows: Iterable[VgpuRow], running: Mapping[int, str], now_us: int
    ) -> VgpuUtilization:
        """Return the reading of the rows that are new, and move on behind them.

        Args:
            rows: one for each vGPU that has new samples.
            running: uuid of each vGPU, by its instance id.
            now_us: the CPU's clock.
        """
        new = [row for row in rows if self._seen_us < row[1] <= now_us + AHEAD_US]
        self._seen_us = max((at for _, at, *_ in new), default=self._seen_us)
        rates = (
            VgpuRate(running[number], *percents)
            for number, _, *percents in new
            if number in running
        )
        return VgpuUtilization(tuple(rates))


@dataclass(frozen=True, slots=True)
class Cursors:
    """How far one GPU was read. Outlives sessions and restarts of NVML."""

    samples: SampleCursor = field(default_factory=SampleCursor)
    processes: ProcessCursor = field(default_factory=ProcessCursor)
    vgpus: VgpuCursor = field(default_factory=VgpuCursor)
    vgpu_waits: WaitCursor = field(default_factory=WaitCursor)


class CursorsByGpu:
    """The cursors of all GPUs of a process, by uuid. For threads that each have their own GPU."""

    def __init__(self) -> None:
        self._by_uuid: dict[str, Cursors] = {}

    def of(self, uuid: str) -> Cursors:
        """Return the cursors of a GPU, the same ones each time."""
        return self._by_uuid.setdefault(uuid, Cursors())
