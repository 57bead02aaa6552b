"""What processes keep busy, as a driver samples it.

The driver does not meter processes. Some seven times a second it notes how busy the period was
and one process, the one that was active just then; of several in turns it is now one and now the
other. Here a process is noted with the probability of its share, drawn from a hash of the
sample's number, so that the past reads the same as often as one likes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from simulator import identity
from simulator.processes import ProcessTable
from simulator.tenancy import Tenancy
from simulator.timeline import GpuTimeline

# The perfmon ring of the open kernel modules (595.45.04): 72 samples that wrap after 10 s.
PROCESS_SAMPLES_KEPT: Final = 72
PROCESS_SAMPLE_PERIOD_SECONDS: Final = 10 / PROCESS_SAMPLES_KEPT

# Seen from real drivers and libraries: entries that nobody filled in, and a blank number.
UNWRITTEN_PERCENT: Final = 37_100
BLANK_PERCENT: Final = 2_147_483_632
EMPTY_ENTRIES: Final = 97
AN_HOUR_US: Final = 3_600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSample:
    """What a process kept busy, as the driver estimates it.

    Attributes:
        at_us: CPU time of its last sample, microseconds since 1970.
        sm_percent, memory_percent, encoder_percent, decoder_percent: of all the time that was
            asked about, truncated.
    """

    pid: int
    at_us: int
    sm_percent: int
    memory_percent: int
    encoder_percent: int
    decoder_percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedSample:
    """One sample of the ring: what the driver noted of one period.

    Attributes:
        at_us: CPU time of its end, microseconds since 1970.
        pid: the process that was active just then; 0 where nobody was.
        sm, memory, encoder, decoder: in hundredths of a percent of the period.
    """

    at_us: int
    pid: int = 0
    sm: int = 0
    memory: int = 0
    encoder: int = 0
    decoder: int = 0


class ProcessRing:
    """The samples of the processes of one GPU that its driver still has.

    Args:
        timeline: of the GPU.
        table: of its processes.
        epoch_us: CPU time of second 0.
    """

    def __init__(self, timeline: GpuTimeline, table: ProcessTable, *, epoch_us: int) -> None:
        self._timeline = timeline
        self._table = table
        self._epoch_us = epoch_us

    def samples(self, now: float, *, awake: float, since_us: int) -> tuple[ProcessSample, ...]:
        """Return what the ring says of each process since a moment, by rising pid.

        Args:
            now: second of the fleet.
            awake: when the ring began to fill anew.
            since_us: CPU time after which samples count; 0 for all that there are.
        """
        noted = [one for one in self.noted(now, awake=awake) if one.at_us > since_us]
        return (*_estimates(noted), *self.nonsense(now))

    def noted(self, now: float, *, awake: float) -> tuple[NotedSample, ...]:
        """Return the ring itself, oldest first, idle periods included.

        Args:
            now: second of the fleet.
            awake: when the ring began to fill anew.
        """
        numbers = () if self._timeline.stage(now).garbage else _ring(now, awake)
        if not numbers:
            return ()
        edges = [n * PROCESS_SAMPLE_PERIOD_SECONDS for n in (numbers[0] - 1, *numbers)]
        got = self._timeline.tenant_seconds(self._timeline.uuid, edges)
        if not got:
            return tuple(NotedSample(at_us=self._stamp(number)) for number in numbers)
        tenants, of_each = list(got), np.diff(np.stack(list(got.values())))
        return tuple(
            self._note(number, tenants, of_each[:, position])
            for position, number in enumerate(numbers)
        )

    def nonsense(self, now: float) -> tuple[ProcessSample, ...]:
        """Return the entries that stand beside the true ones, whatever one asks for."""
        stage = self._timeline.stage(now)
        if not stage.garbage and not stage.garbage_samples:
            return ()
        now_us = self._epoch_us + round(now * 1e6)
        return tuple(_nonsense(now_us, [process.pid for process in self._table.running(stage)]))

    def _note(
        self, number: int, tenants: Sequence[Tenancy], seconds: npt.NDArray[np.float64]
    ) -> NotedSample:
        upto = np.cumsum(seconds)
        if upto[-1] <= 0:
            return NotedSample(at_us=self._stamp(number))
        drawn = identity.draw(self._timeline.uuid, number) * upto[-1]
        by = tenants[int(np.searchsorted(upto, drawn, side="right"))]
        # The driver counts in hundredths of a percent, so full load is 100, whatever floats say.
        busy = 1e4 * float(upto[-1]) / PROCESS_SAMPLE_PERIOD_SECONDS
        return NotedSample(
            at_us=self._stamp(number),
            pid=self._one_of(self._table.sampled(by), number),
            sm=round(busy),
            memory=round(busy * by.mix.dram),
            encoder=round(busy * by.mix.encoder),
            decoder=round(busy * by.mix.decoder),
        )

    def _one_of(self, pids: Sequence[int], number: int) -> int:
        return pids[int(identity.draw(f"{self._timeline.uuid}/process", number) * len(pids))]

    def _stamp(self, number: int) -> int:
        return self._epoch_us + round(number * PROCESS_SAMPLE_PERIOD_SECONDS * 1e6)


def _ring(now: float, awake: float) -> range:
    # A nanosecond, so that a clock moved to a multiple of the period has reached it.
    last = int((now + 1e-9) / PROCESS_SAMPLE_PERIOD_SECONDS)
    first = -int(-awake // PROCESS_SAMPLE_PERIOD_SECONDS)
    return range(max(last - PROCESS_SAMPLES_KEPT, first) + 1, last + 1)


def _estimates(noted: Sequence[NotedSample]) -> Iterator[ProcessSample]:
    """Yield what samples say of each process that some of them are of, by rising pid."""
    of_all: dict[int, list[NotedSample]] = {}
    for sample in noted:
        of_all.setdefault(sample.pid, []).append(sample)
    of_all.pop(0, None)
    for pid, of_one in sorted(of_all.items()):
        yield ProcessSample(
            pid=pid,
            at_us=of_one[-1].at_us,
            sm_percent=_percent([s.sm for s in of_one], len(noted)),
            memory_percent=_percent([s.memory for s in of_one], len(noted)),
            encoder_percent=_percent([s.encoder for s in of_one], len(noted)),
            decoder_percent=_percent([s.decoder for s in of_one], len(noted)),
        )


def _percent(hundredths: Iterable[int], samples: int) -> int:
    return sum(hundredths) // (100 * samples)


def _nonsense(now_us: int, pids: Sequence[int]) -> Iterator[ProcessSample]:
    """Yield a hundred entries and more that a reader must not believe."""
    yield _entry(0, 0, UNWRITTEN_PERCENT)
    yield _entry(0, now_us, 1)
    for pid in pids:
        yield _entry(pid, 0, 1)
        yield _entry(pid, now_us + AN_HOUR_US, 1)
        yield _entry(pid, now_us, BLANK_PERCENT)
    for _ in range(EMPTY_ENTRIES):
        yield _entry(0, 0, 0)


def _entry(pid: int, at_us: int, percent: int) -> ProcessSample:
    return ProcessSample(
        pid=pid,
        at_us=at_us,
        sm_percent=percent,
        memory_percent=percent,
        encoder_percent=0,
        decoder_percent=0,
    )
