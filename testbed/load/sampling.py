"""The samples that a driver keeps of a GPU's processes, taken in turns.

A driver notes in each period how busy the GPU was and one process, the one that was active just
then. Chance would make a test of shares wait for a minute; here each process is noted as often as
its share says, as evenly as possible, so that ten seconds suffice. Samples are also finer than a
driver's, several to a period: which of them a reader misses, as it asks in between, is chance too.
"""

from collections import deque
from collections.abc import Mapping

from simulator.process_samples import PROCESS_SAMPLES_KEPT, NotedSample

HUNDREDTHS_OF_PERCENT = 10_000
SAMPLES_OF_PERIOD = 6


class Sampling:
    """The ring of one GPU."""

    def __init__(self) -> None:
        self._ring: deque[NotedSample] = deque(maxlen=PROCESS_SAMPLES_KEPT)
        self._due: dict[int, float] = {}

    @property
    def ring(self) -> tuple[NotedSample, ...]:
        """The samples, oldest first."""
        return tuple(self._ring)

    def note(self, at_us: int, shares: Mapping[int, float]) -> None:
        """End a period.

        Args:
            at_us: CPU time, microseconds since 1970.
            shares: of the period, by PID; together at most 1, or they are cut to that.
        """
        busy = min(1.0, sum(shares.values()))
        for _ in range(SAMPLES_OF_PERIOD):
            pid = self._turn(shares) if busy else 0
            sample = NotedSample(at_us=at_us, pid=pid, sm=round(HUNDREDTHS_OF_PERCENT * busy))
            self._ring.append(sample)

    def _turn(self, shares: Mapping[int, float]) -> int:
        """Return whose turn it is: the process that is furthest behind its share."""
        self._due = {pid: self._due.get(pid, 0.0) + share for pid, share in shares.items()}
        pid = max(self._due, key=self._due.__getitem__)
        self._due[pid] -= sum(shares.values())
        return pid
