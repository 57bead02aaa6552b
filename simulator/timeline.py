"""One GPU over time: how it is partitioned, who uses it, in what state it is.

Time is cut wherever something changes; between two cuts there is a stage, in which only loads
move, and those are known as functions. So any moment and any integral is at hand without
simulating what comes before it. The past never changes, so a moment that was read once reads the
same for ever. There is no clock in here: the GPU that reads it has one.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from simulator.load import IDLE, Signal, Times
from simulator.stage import GpuState, MigDevice, Stage, StageMaker
from simulator.tabulation import TABLE_SECONDS, Tabulated, summed
from simulator.tenancy import Tenancy
from slicewatch.hardware import GpuModel

__all__ = ["GpuState", "GpuTimeline", "MigDevice", "Picked", "Stage"]

# The way from a checkpoint to any moment before the next is a lookup in one table.
CHECKPOINT_SECONDS = TABLE_SECONDS

# Which signal of a stage is meant.
Picked = Callable[[Stage], Signal]


class GpuTimeline:
    """The history and, as far as it is known, the future of one GPU.

    Attributes:
        changed: the node's; it guards the timeline and is notified when the future changes.
    """

    def __init__(
        self,
        *,
        uuid: str,
        index: int,
        model: GpuModel,
        maker: StageMaker,
        changed: threading.Condition,
    ) -> None:
        self.changed = changed
        self.uuid = uuid
        self.index = index
        self.model = model
        self._maker = maker
        self._overrides: dict[str, float] = {}
        self._stages: list[Stage] = []
        self._sums: dict[Hashable, list[Times]] = {}
        self.rebuild(now=0.0)

    def set_load(self, device: str, level: float | None, *, now: float) -> None:
        """Keep a device at a load from now on; None gives it back to its tenants."""
        with self.changed:
            if self._overrides.get(device) == level:
                return
            self._number(now)  # Works out the past before the order counts.
            self._overrides.pop(device, None)
            if level is not None:
                self._overrides[device] = level
            self.rebuild(now=now)
            self.changed.notify_all()

    def rebuild(self, *, now: float) -> None:
        """Recompute the future, after something in it changed; what was before now stays."""
        with self.changed:
            if self._stages:
                del self._stages[self._number(now) + 1 :]
                current = self._stages.pop()
                if current.begin < now:
                    self._stages.append(replace(current, end=now))
            self._stages.append(self._made(now))
            for sums in self._sums.values():
                del sums[int(now // CHECKPOINT_SECONDS) + 1 :]

    def stage(self, at: float) -> Stage:
        """Return the stage that contains a moment."""
        with self.changed:
            return self._stages[self._number(at)]

    def busy_seconds(self, device: str, times: Sequence[float]) -> list[float]:
        """Return the seconds of full load of a device (or the GPU) from the first time to each.

        Args:
            device: uuid; while a device does not exist, it is not busy.
            times: ascending.
        """
        total = self.integral(lambda stage: self._busy(stage, device), times)
        return [float(seconds) for seconds in total]

    def tenant_seconds(self, device: str, times: Sequence[float]) -> dict[Tenancy, Times]:
        """Return what each tenant got of a device, likewise, for all that held it meanwhile."""
        got: dict[Tenancy, Times] = {}
        for stage, within in self.pieces(times):
            for tenant, share in stage.tenants.get(device, {}).items():
                got[tenant] = got.get(tenant, 0.0) + summed(share, within)
        return got

    def integral(self, picked: Picked, times: Sequence[float]) -> Times:
        """Return the integral of a signal of each stage from the first time to each.

        Args:
            picked: returns the signal of a stage.
            times: ascending.
        """
        total = np.zeros(len(times))
        for stage, within in self.pieces(times):
            total += summed(picked(stage), within)
        return total

    def pieces(self, times: Sequence[float]) -> Iterator[tuple[Stage, Times]]:
        """Yield each stage between the first time and the last, with the times moved into it.

        What a stage adds up to from the first of its times to each is its part of the integral.

        Args:
            times: ascending.
        """
        moments = np.array(times, dtype=float)
        with self.changed:
            first, last = self._number(times[0]), self._number(times[-1])
            stages = self._stages[first : last + 1]
        for stage in stages:
            yield stage, moments.clip(stage.begin, stage.end)

    def work_seconds(self, until: float) -> float:
        """Return the seconds of full load of the whole GPU since the beginning."""
        return self.cumulative("work", lambda stage: stage.work, until)

    def cumulative(self, key: Hashable, picked: Picked, until: float) -> float:
        """Return the integral of a signal of each stage since the beginning; see ``since_start``.

        Args:
            key: names the signal among those of this GPU.
            picked: returns it.
            until: the moment.
        """
        total = self.since_start(key, lambda *period: self.integral(picked, period)[-1:], until)
        return float(total[0])

    def since_start(
        self, key: Hashable, between: Callable[[float, float], Times], until: float
    ) -> Times:
        """Return amounts since the beginning.

        Sums along fixed checkpoints, so that neither its cost nor its last bit depends on when it
        was called before.

        Args:
            key: names what is added up, among all such things of this GPU.
            between: returns the amounts from one moment to another.
            until: the moment.
        """
        whole = int(until // CHECKPOINT_SECONDS)
        with self.changed:
            sums = self._sums.get(key)
            if sums is None:
                sums = self._sums[key] = [between(0.0, 0.0)]
            while len(sums) <= whole:
                end = len(sums) * CHECKPOINT_SECONDS
                sums.append(sums[-1] + between(end - CHECKPOINT_SECONDS, end))
            begin = whole * CHECKPOINT_SECONDS
            return sums[whole] + between(begin, until) if until > begin else sums[whole]

    def awake_since(self, at: float) -> float:
        """Return when the GPU last came back from a state in which it measured nothing."""
        with self.changed:
            for number in range(self._number(at), 0, -1):
                if self._stages[number - 1].halted:
                    return self._stages[number].begin
            return 0.0

    def _made(self, begin: float) -> Stage:
        """Return the stage that begins at a moment, with signals that are quick to ask."""
        stage = self._maker.stage(begin, self._overrides)

        def known(signal: Signal) -> Tabulated:
            return Tabulated(signal, begin=begin, end=stage.end)

        loads = {device: known(load) for device, load in stage.loads.items()}
        shares = stage.tenants.items()
        return replace(
            stage,
            work=loads.get(self.uuid) or known(stage.work),
            loads=loads,
            tenants={d: {one: known(got) for one, got in each.items()} for d, each in shares},
        )

    def _busy(self, stage: Stage, device: str) -> Signal:
        return stage.work if device == self.uuid else stage.loads.get(device, IDLE)

    def _number(self, at: float) -> int:
        """Return the number of the stage that contains a moment, however far away."""
        while self._stages[-1].end <= at:
            self._stages.append(self._made(self._stages[-1].end))
        return bisect_right(self._stages, at, key=lambda stage: stage.begin) - 1
