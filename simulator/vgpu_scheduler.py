"""The scheduler of the vGPUs of one GPU, and its log.

The log has one entry for each time slice in which anything ran, of one vGPU that ran in it, drawn
by its share as process samples are. The totals in an entry are exact, so that two entries of a
vGPU tell how long it ran and waited in between.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from simulator import identity
from simulator.clock import Clock
from simulator.load import IDLE, Signal, Times, Waiting
from simulator.stage import Stage
from simulator.tenancy import Tenancy
from simulator.timeline import GpuTimeline, Picked
from simulator.virtualization import Scheduler

LOG_ENTRIES_KEPT: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A time slice in the scheduler's log; times are nanoseconds.

    Attributes:
        timestamp_ns: end of the slice, since 1970.
        runlist_id: the instance that ran.
        time_run_total_ns, cumulative_preemption_ns: how long it has run, and waited with work to
            do, since it was started.
    """

    timestamp_ns: int
    time_run_total_ns: int
    time_run_ns: int
    runlist_id: int
    target_time_slice_ns: int
    cumulative_preemption_ns: int
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    """How long a vGPU had run and waited at each edge of some slices, in nanoseconds."""

    instance: int
    weight: int
    run_ns: Times
    waited_ns: Times


class SchedulerLog:
    """What the scheduler has written down. Everything is computed when read.

    Args:
        instances: ids of the vGPUs.
        scheduler: whose log it is.
        timeline: of the GPU.
        clock: of the fleet.
    """

    def __init__(
        self,
        instances: Mapping[Tenancy, int],
        *,
        scheduler: Scheduler,
        timeline: GpuTimeline,
        clock: Clock,
    ) -> None:
        self._instances = instances
        self._slice_seconds = scheduler.time_slice
        self._timeline = timeline
        self._clock = clock

    def entries(self) -> tuple[LogEntry, ...]:
        """Return the newest entries, oldest first.

        Entries of 200 slices are kept: read it several times a second.
        """
        last = int((self._clock.now() + 1e-9) / self._slice_seconds)
        numbers = range(max(0, last - LOG_ENTRIES_KEPT), last + 1)
        accounts = self._accounts([number * self._slice_seconds for number in numbers])
        if not accounts:
            return ()
        return tuple(self._written(numbers, accounts))

    def _accounts(self, edges: list[float]) -> list[_Account]:
        return [
            _Account(
                instance=self._instances[one],
                weight=int(one.weight),
                run_ns=self._totals_ns(one, "run", edges),
                waited_ns=self._totals_ns(one, "wait", edges),
            )
            for one in self._timeline.tenant_seconds(self._timeline.uuid, edges)
        ]

    def _totals_ns(self, one: Tenancy, what: str, edges: list[float]) -> Times:
        picked = running(one, self._timeline) if what == "run" else waiting(one, self._timeline)
        before = self._timeline.cumulative((one, what), picked, edges[0])
        return np.rint(1e9 * (before + self._timeline.integral(picked, edges)))

    def _written(self, numbers: range, accounts: list[_Account]) -> Iterator[LogEntry]:
        ran = np.diff(np.stack([account.run_ns for account in accounts]))
        for position, number in enumerate(numbers[1:]):
            upto = np.cumsum(ran[:, position])
            if upto[-1] <= 0:
                continue
            drawn = identity.draw(f"{self._timeline.uuid}/slice", number) * upto[-1]
            account = accounts[int(np.searchsorted(upto, drawn, side="right"))]
            slice_ns = round(1e9 * self._slice_seconds)
            yield LogEntry(
                timestamp_ns=1000 * self._clock.epoch_us + number * slice_ns,
                time_run_total_ns=int(account.run_ns[position + 1]),
                time_run_ns=int(upto[-1]),
                runlist_id=account.instance,
                target_time_slice_ns=slice_ns,
                cumulative_preemption_ns=int(account.waited_ns[position + 1]),
                weight=account.weight,
            )


def running(one: Tenancy, timeline: GpuTimeline) -> Picked:
    """Return which signal of a stage says how much a vGPU runs."""
    return lambda stage: stage.tenants.get(timeline.uuid, {}).get(one, IDLE)


def waiting(one: Tenancy, timeline: GpuTimeline) -> Picked:
    """Return which signal of a stage says how much a vGPU waits."""

    def picked(stage: Stage) -> Signal:
        got = stage.tenants.get(timeline.uuid, {}).get(one)
        # While the GPU is gone, nothing counts.
        return (
            IDLE if got is None or stage.halted else Waiting(demand=one.appetite.signal, got=got)
        )

    return picked
