"""One GPU over time: how it is partitioned, who uses it, in what state it is.

Time is cut wherever something changes; between two cuts lies a stage, in which only loads move,
and those are known as functions. So any moment and any integral is at hand without simulating
what lies before it. The past never changes, so a moment that was read once reads the same for
ever. There is no clock in here: the GPU that reads it has one.
"""

import math
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np

from simulator import identity
from simulator.faults import NEVER, Occurrence, Story
from simulator.load import (
    ZERO,
    Signal,
    Succession,
    WeightedSum,
    constant,
    cumulated,
    integral,
    together,
)
from simulator.scenario import (
    DriverGone,
    Fault,
    Garbage,
    GpuFault,
    Hang,
    Lost,
    MigLayout,
    MigSlots,
    ResetRequired,
)
from simulator.tenancy import Tenancy
from slicewatch.hardware import GpuModel, MigProfile, Placement, placements_for

FIRST_HORIZON_SECONDS = 86_400.0
CHECKPOINT_SECONDS = 3600.0


class GpuState(StrEnum):
    """How a GPU answers."""

    UP = "up"
    LOST = "lost"
    RESET_REQUIRED = "reset_required"
    HUNG = "hung"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigDevice:
    """A MIG device in its place.

    Attributes:
        index: NVML's MIG index on the GPU; there may be empty ones before it.
    """

    index: int
    uuid: str
    gpu_instance_id: int
    compute_instance_id: int
    profile: MigProfile
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """A stretch of time in which nothing but the loads changes.

    Attributes:
        devices: MIG devices, by rising index; empty without MIG.
        tenants: by uuid of the device that they hold.
        loads: by uuid, how busy each device is.
        work: how busy the whole GPU is; under MIG each device counts by its share of the SMs.
        halted: nothing runs: the GPU or its driver is away.
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
    garbage: tuple[Garbage, ...]


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
        self.tenancies = tuple(tenancies)
        self._slots = slots
        self._story = story
        self._overrides: dict[str, list[tuple[float, float | None]]] = {}
        self._horizon = FIRST_HORIZON_SECONDS
        self._stages: list[Stage] = []
        self._begins: list[float] = []
        self._signals: dict[str, Signal] = {}
        self._work_seconds = [0.0]
        self.rebuild(now=0.0)

    def set_load(self, device: str, level: float | None, *, now: float) -> None:
        """Hold a device at a load from now on; None gives it back to its tenants."""
        with self.changed:
            orders = self._overrides.setdefault(device, [(0.0, None)])
            if orders[-1][1] == level:
                return
            orders.append((now, level))
            self.rebuild(now=now)
            self.changed.notify_all()

    def rebuild(self, *, now: float) -> None:
        """Work out anew what is not over by ``now``, after something in it changed."""
        with self.changed:
            while self._stages and self._stages[-1].end > now:
                del self._stages[-1], self._begins[-1]
            since = self._stages[-1].end if self._stages else 0.0
            occurrences = [o for o in self._story.occurrences(self._horizon) if self._concerns(o)]
            begins = [since, *sorted(cut for cut in self._cuts(occurrences) if cut > since)]
            self._stages += self._staged(begins, occurrences)
            self._begins += begins
            self._signals = {}
            del self._work_seconds[int(now // CHECKPOINT_SECONDS) + 1 :]

    def stage(self, at: float) -> Stage:
        """Return the stage that a moment lies in."""
        with self.changed:
            self._look_ahead(at)
            return self._stages[bisect_right(self._begins, at) - 1]

    def signal(self, device: str, *, until: float) -> Signal:
        """Return how busy a device (or the GPU) is, from the beginning until some time."""
        with self.changed:
            self._look_ahead(until)
            if device not in self._signals:
                is_gpu = device == self.uuid
                parts = tuple(
                    s.work if is_gpu else s.loads.get(device, ZERO) for s in self._stages
                )
                self._signals[device] = Succession(begins=np.array(self._begins), signals=parts)
            return self._signals[device]

    def work_seconds(self, until: float) -> float:
        """Return the seconds of full load since the beginning.

        Sums up along fixed checkpoints, so that the result does not depend on when it was asked
        for before, to the last bit.
        """
        with self.changed:
            signal = self.signal(self.uuid, until=until)
            whole = int(until // CHECKPOINT_SECONDS)
            known = len(self._work_seconds) - 1
            if whole > known:
                times = np.arange(known, whole + 1) * CHECKPOINT_SECONDS
                for begin, end in pairwise(times):
                    self._work_seconds.append(
                        self._work_seconds[-1] + integral(signal, begin, end)
                    )
            rest = integral(signal, whole * CHECKPOINT_SECONDS, until)
            return self._work_seconds[whole] + rest

    def mean_loads(self, device: str, times: Sequence[float]) -> list[float]:
        """Return the mean load between each two neighbours of rising times."""
        edges = np.array(times, dtype=float)
        sums = cumulated(self.signal(device, until=times[-1]), edges)
        return [float(mean) for mean in np.diff(sums) / np.diff(edges)]

    def awake_since(self, at: float) -> float:
        """Return when the GPU last came back from where it could not measure anything."""
        with self.changed:
            self._look_ahead(at)
            for number in range(bisect_right(self._begins, at) - 1, 0, -1):
                if self._stages[number - 1].halted:
                    return self._begins[number]
            return 0.0

    def _look_ahead(self, at: float) -> None:
        if at >= self._horizon:
            known, self._horizon = self._horizon, 2 * at
            self.rebuild(now=known)

    def _concerns(self, occurrence: Occurrence) -> bool:
        fault = occurrence.fault
        return fault.gpu == self.index if isinstance(fault, GpuFault) else True

    def _cuts(self, occurrences: Iterable[Occurrence]) -> set[float]:
        cuts = {at for orders in self._overrides.values() for at, _ in orders}
        for occurrence in occurrences:
            cuts |= {occurrence.begin, occurrence.end}
        for tenancy in self.tenancies:
            cuts |= {tenancy.begin, tenancy.end, *tenancy.appetite.cuts()}
        return {cut for cut in cuts if math.isfinite(cut)}

    def _staged(
        self, begins: Sequence[float], occurrences: Sequence[Occurrence]
    ) -> Iterator[Stage]:
        coming = deque(occurrences)
        present: list[Occurrence] = []
        for begin, end in pairwise([*begins, NEVER]):
            while coming and coming[0].begin <= begin:
                present.append(coming.popleft())
            present = [occurrence for occurrence in present if occurrence.holds(begin)]
            yield self._stage(begin, end, [occurrence.fault for occurrence in present])

    def _stage(self, begin: float, end: float, faults: Sequence[Fault]) -> Stage:
        layouts = [fault.slots for fault in faults if isinstance(fault, MigLayout)]
        slots = layouts[-1] if layouts else self._slots
        devices = self._devices(slots)
        tenants = self._tenants(begin, devices, mig_enabled=slots is not None)
        halted = any(isinstance(fault, Lost | ResetRequired | DriverGone) for fault in faults)
        loads = {
            uuid: ZERO if halted else self._load(begin, uuid, tenants.get(uuid, ()))
            for uuid in ([d.uuid for d in devices] if slots is not None else [self.uuid])
        }
        return Stage(
            begin=begin,
            end=end,
            state=_state(faults),
            halted=halted,
            mig_enabled=slots is not None,
            devices=devices,
            tenants=tenants,
            loads=loads,
            work=self._work(devices, loads),
            garbage=tuple(fault for fault in faults if isinstance(fault, Garbage)),
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
        holders = {device.index: device.uuid for device in devices}
        held: dict[str, list[Tenancy]] = {}
        for tenancy in self.tenancies:
            mig = tenancy.holding.mig
            uuid = holders.get(mig) if mig is not None else None if mig_enabled else self.uuid
            if uuid is not None and tenancy.holds(at):
                held.setdefault(uuid, []).append(tenancy)
        return {uuid: tuple(tenants) for uuid, tenants in held.items()}

    def _load(self, at: float, uuid: str, tenants: Iterable[Tenancy]) -> Signal:
        orders = [level for since, level in self._overrides.get(uuid, ()) if since <= at]
        if orders and orders[-1] is not None:
            return constant(orders[-1])
        return together([tenancy.appetite.of_one_pod(at) for tenancy in tenants])

    def _work(self, devices: Sequence[MigDevice], loads: Mapping[str, Signal]) -> Signal:
        if not devices:
            return loads.get(self.uuid, ZERO)
        shares = tuple((d.profile.sm_count / self.model.sm_count, loads[d.uuid]) for d in devices)
        return WeightedSum(parts=shares)


def _state(faults: Iterable[object]) -> GpuState:
    kinds = {type(fault) for fault in faults}
    if Lost in kinds:
        return GpuState.LOST
    if ResetRequired in kinds:
        return GpuState.RESET_REQUIRED
    return GpuState.HUNG if Hang in kinds else GpuState.UP
