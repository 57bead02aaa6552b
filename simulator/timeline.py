"""One GPU over time: how it is partitioned, who uses it, in what state it is.

Time is cut wherever something changes; between two cuts there is a stage, in which only loads
move, and those are known as functions. So any moment and any integral is at hand without
simulating what comes before it. The past never changes, so a moment that was read once reads the
same for ever. There is no clock in here: the GPU that reads it has one.
"""

import threading
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from simulator import identity
from simulator.faults import Story
from simulator.load import IDLE, Signal, Sum, constant, cumulated, together
from simulator.scenario import (
    DriverGone,
    Garbage,
    Hang,
    Lost,
    MigLayout,
    MigSlots,
    ResetRequired,
)
from simulator.tenancy import Tenancy
from slicewatch.hardware import GpuModel, MigProfile, Placement, placements_for

CHECKPOINT_SECONDS = 600.0


class GpuState(StrEnum):
    """How a GPU answers."""

    UP = "up"
    LOST = "lost"
    RESET_REQUIRED = "reset_required"
    HUNG = "hung"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigDevice:
    """A MIG device and its placement.

    Attributes:
        index: NVML's MIG index on the GPU; lower ones may be empty.
    """

    index: int
    uuid: str
    gpu_instance_id: int
    compute_instance_id: int
    profile: MigProfile
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """A period in which nothing but the loads changes.

    Attributes:
        devices: MIG devices, by rising index; empty without MIG.
        tenants: by uuid of the device that they hold.
        loads: by uuid, how busy each device is.
        work: how busy the whole GPU is; under MIG each device counts by its share of the SMs.
        halted: nothing runs, because the GPU or its driver is gone.
    """

    begin: float
    end: float
    state: GpuState
    halted: bool
    mig_enabled: bool
    devices: tuple[MigDevice, ...]
    tenants: Mapping[str, tuple[Tenancy, ...]]
    loads: Mapping[str, Signal]
    work: Signal
    garbage: bool


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
        slots: MigSlots | None,
        tenancies: Sequence[Tenancy],
        story: Story,
        changed: threading.Condition,
    ) -> None:
        self.changed = changed
        self.uuid = uuid
        self.index = index
        self.model = model
        self._tenancies = tuple(tenancies)
        self._slots = slots
        self._story = story
        self._overrides: dict[str, float] = {}
        self._stages: list[Stage] = []
        self._work_seconds = [0.0]
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
            self._stages.append(self._stage(now))
            del self._work_seconds[int(now // CHECKPOINT_SECONDS) + 1 :]

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
        with self.changed:
            last = self._number(times[-1])
            stages = self._stages[self._number(times[0]) : last + 1]
        moments = np.array(times, dtype=float)
        total = np.zeros(len(times))
        for stage in stages:
            signal = stage.work if device == self.uuid else stage.loads.get(device, IDLE)
            total += cumulated(signal, np.clip(moments, stage.begin, stage.end))
        return [float(seconds) for seconds in total]

    def work_seconds(self, until: float) -> float:
        """Return the seconds of full load since the beginning.

        Sums along fixed checkpoints, so that neither its cost nor its last bit depends on when it
        was called before.
        """
        whole = int(until // CHECKPOINT_SECONDS)
        with self.changed:
            while len(self._work_seconds) <= whole:
                end = len(self._work_seconds) * CHECKPOINT_SECONDS
                between = self.busy_seconds(self.uuid, (end - CHECKPOINT_SECONDS, end))[-1]
                self._work_seconds.append(self._work_seconds[-1] + between)
            rest = self.busy_seconds(self.uuid, (whole * CHECKPOINT_SECONDS, until))[-1]
            return self._work_seconds[whole] + rest

    def awake_since(self, at: float) -> float:
        """Return when the GPU last came back from a state in which it measured nothing."""
        with self.changed:
            for number in range(self._number(at), 0, -1):
                if self._stages[number - 1].halted:
                    return self._stages[number].begin
            return 0.0

    def _number(self, at: float) -> int:
        """Return the number of the stage that contains a moment, however far away."""
        while self._stages[-1].end <= at:
            self._stages.append(self._stage(self._stages[-1].end))
        return bisect_right(self._stages, at, key=lambda stage: stage.begin) - 1

    def _next_cut(self, after: float) -> float:
        cuts = [self._story.next_change(after, self.index)]
        for tenancy in self._tenancies:
            # How much one pod of a workload gets changes when another starts or ends.
            cuts += [time for span in tenancy.appetite.spans for time in span if time > after]
        return min(cuts)

    def _stage(self, begin: float) -> Stage:
        faults = self._story.current(begin, self.index)
        layouts = [fault.slots for fault in faults if isinstance(fault, MigLayout)]
        slots = layouts[-1] if layouts else self._slots
        devices = self._devices(slots)
        tenants = self._tenants(begin, devices, mig_enabled=slots is not None)
        halted = any(isinstance(fault, Lost | ResetRequired | DriverGone) for fault in faults)
        loads = {
            uuid: IDLE if halted else self._load(begin, uuid, tenants.get(uuid, ()))
            for uuid in ([d.uuid for d in devices] if slots is not None else [self.uuid])
        }
        return Stage(
            begin=begin,
            end=self._next_cut(begin),
            state=_state(faults),
            halted=halted,
            mig_enabled=slots is not None,
            devices=devices,
            tenants=tenants,
            loads=loads,
            work=self._work(devices, loads),
            garbage=any(isinstance(fault, Garbage) for fault in faults),
        )

    def _devices(self, slots: MigSlots | None) -> tuple[MigDevice, ...]:
        created = [(index, name) for index, name in enumerate(slots or ()) if name is not None]
        placed = placements_for(self.model, [name for _, name in created]) if created else ()
        return tuple(
            MigDevice(
                index=index,
                uuid=identity.mig_uuid(self.uuid, one.gpu_instance_id, 0),
                gpu_instance_id=one.gpu_instance_id,
                compute_instance_id=0,
                profile=one.profile,
                placement=one.placement,
            )
            for (index, _), one in zip(created, placed, strict=True)
        )

    def _tenants(
        self, at: float, devices: Sequence[MigDevice], *, mig_enabled: bool
    ) -> dict[str, tuple[Tenancy, ...]]:
        uuids: dict[int | None, str] = {device.index: device.uuid for device in devices}
        if not mig_enabled:
            uuids[None] = self.uuid
        held: dict[str, tuple[Tenancy, ...]] = {}
        for tenancy in self._tenancies:
            uuid = uuids.get(tenancy.holding.mig)
            if uuid is not None and tenancy.holds(at):
                held[uuid] = (*held.get(uuid, ()), tenancy)
        return held

    def _load(self, at: float, uuid: str, tenants: Iterable[Tenancy]) -> Signal:
        if uuid in self._overrides:
            return constant(self._overrides[uuid])
        return together([tenancy.appetite.of_one_pod(at) for tenancy in tenants])

    def _work(self, devices: Sequence[MigDevice], loads: Mapping[str, Signal]) -> Signal:
        if not devices:
            return loads.get(self.uuid, IDLE)
        shares = tuple((d.profile.sm_count / self.model.sm_count, loads[d.uuid]) for d in devices)
        return Sum(parts=shares)


def _state(faults: Iterable[object]) -> GpuState:
    kinds = {type(fault) for fault in faults}
    if Lost in kinds:
        return GpuState.LOST
    if ResetRequired in kinds:
        return GpuState.RESET_REQUIRED
    return GpuState.HUNG if Hang in kinds else GpuState.UP
