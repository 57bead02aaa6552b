"""What is true of a GPU for a while: how it is partitioned, who uses it, in what state it is.

A stage lasts as long as nothing but loads changes. There is no memory in here: a stage follows
from the scenario, the faults and the loads that were set, and from no other stage.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from simulator import identity
from simulator.faults import NEVER, Story
from simulator.load import IDLE, Signal, Sum
from simulator.scenario import (
    DriverGone,
    Failing,
    Garbage,
    GarbageSamples,
    Hang,
    Heat,
    Lost,
    MigLayout,
    MigPending,
    MigSlots,
    ResetRequired,
    Slowdown,
)
from simulator.sharing import Rules, Shares, Use, no_use
from simulator.tenancy import Tenancy
from slicewatch.hardware import GpuModel, MigProfile, Placement, placements_for


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
        tenants: by uuid of the device that they hold, with what each of them gets of it.
        loads: by uuid, how busy each device is.
        work: how busy the whole GPU is; under MIG each device counts by its share of the SMs.
        halted: nothing runs, because the GPU or its driver is gone.
        slowdowns: reasons of the faults that hold the clocks down.
        least_celsius: the die is no colder, whatever runs.
        error: what every call answers, as NVML calls it; empty for none.
    """

    begin: float
    end: float
    state: GpuState
    halted: bool
    mig_enabled: bool
    mig_change_pending: bool
    devices: tuple[MigDevice, ...]
    tenants: Mapping[str, Shares]
    loads: Mapping[str, Signal]
    work: Signal
    garbage: bool
    garbage_samples: bool
    slowdowns: frozenset[str]
    least_celsius: int
    error: str


class StageMaker:
    """Knows what the scenario says about one GPU at any time."""

    def __init__(
        self,
        *,
        uuid: str,
        index: int,
        model: GpuModel,
        slots: MigSlots | None,
        tenancies: Sequence[Tenancy],
        rules: Rules,
        story: Story,
    ) -> None:
        self._uuid = uuid
        self._index = index
        self._model = model
        self._slots = slots
        self._tenancies = tuple(tenancies)
        self._starts_and_ends = _starts_and_ends(tenancies)
        self._rules = rules
        self._story = story

    def stage(self, begin: float, overrides: Mapping[str, float]) -> Stage:
        """Return the stage that begins at a moment.

        Args:
            begin: the moment.
            overrides: loads that devices have whatever their tenants ask for, by uuid.
        """
        faults = self._story.current(begin, self._index)
        layouts = [fault.slots for fault in faults if isinstance(fault, MigLayout)]
        slots = layouts[-1] if layouts else self._slots
        devices = self._devices(slots)
        halted = any(isinstance(fault, Lost | ResetRequired | DriverGone) for fault in faults)
        held = self._tenants(begin, devices, mig_enabled=slots is not None)
        uses = {
            uuid: self._use(held[uuid], begin, overrides.get(uuid), halted=halted) for uuid in held
        }
        loads = {uuid: one.load for uuid, one in uses.items()}
        return Stage(
            begin=begin,
            end=self._next_cut(begin),
            state=_state(faults),
            halted=halted,
            mig_enabled=slots is not None,
            mig_change_pending=any(isinstance(fault, MigPending) for fault in faults),
            devices=devices,
            tenants={uuid: one.shares for uuid, one in uses.items()},
            loads=loads,
            work=self._work(devices, loads),
            garbage=any(isinstance(fault, Garbage) for fault in faults),
            garbage_samples=any(isinstance(fault, GarbageSamples) for fault in faults),
            slowdowns=frozenset(fault.reason for fault in faults if isinstance(fault, Slowdown)),
            least_celsius=max((f.celsius for f in faults if isinstance(f, Heat)), default=0),
            error=_error(faults),
        )

    def _devices(self, slots: MigSlots | None) -> tuple[MigDevice, ...]:
        created = [(index, name) for index, name in enumerate(slots or ()) if name is not None]
        placed = placements_for(self._model, [name for _, name in created]) if created else ()
        return tuple(
            MigDevice(
                index=index,
                uuid=identity.mig_uuid(self._uuid, one.gpu_instance_id, 0),
                gpu_instance_id=one.gpu_instance_id,
                compute_instance_id=0,
                profile=one.profile,
                placement=one.placement,
            )
            for (index, _), one in zip(created, placed, strict=True)
        )

    def _tenants(
        self, at: float, devices: Sequence[MigDevice], *, mig_enabled: bool
    ) -> dict[str, list[Tenancy]]:
        """Return who holds each device that can have a load."""
        uuids: dict[int | None, str] = {device.index: device.uuid for device in devices}
        if not mig_enabled:
            uuids[None] = self._uuid
        held: dict[str, list[Tenancy]] = {uuid: [] for uuid in uuids.values()}
        for tenancy in self._tenancies:
            if tenancy.holding.mig in uuids and tenancy.holds(at):
                held[uuids[tenancy.holding.mig]].append(tenancy)
        return held

    def _use(
        self, tenants: Iterable[Tenancy], at: float, fixed: float | None, *, halted: bool
    ) -> Use:
        return no_use(tenants) if halted else self._rules.use(tenants, at, fixed=fixed)

    def _work(self, devices: Sequence[MigDevice], loads: Mapping[str, Signal]) -> Signal:
        if not devices:
            return loads.get(self._uuid, IDLE)
        shares = tuple((d.profile.sm_count / self._model.sm_count, loads[d.uuid]) for d in devices)
        return Sum(parts=shares)

    def _next_cut(self, after: float) -> float:
        times = self._starts_and_ends
        return min(self._story.next_change(after, self._index), times[bisect_right(times, after)])


def _starts_and_ends(tenancies: Iterable[Tenancy]) -> list[float]:
    times = {time for one in tenancies for time in (one.begin, one.end)}
    # How much one pod of a workload gets changes when another starts or ends, on any node.
    appetites = {one.appetite for one in tenancies}
    times |= {time for one in appetites for span in one.spans for time in span}
    return sorted(times | {NEVER})


def _error(faults: Iterable[object]) -> str:
    found = [fault.error.upper() for fault in faults if isinstance(fault, Failing)]
    return found[-1] if found else ""


def _state(faults: Iterable[object]) -> GpuState:
    kinds = {type(fault) for fault in faults}
    if Lost in kinds:
        return GpuState.LOST
    if ResetRequired in kinds:
        return GpuState.RESET_REQUIRED
    return GpuState.HUNG if Hang in kinds else GpuState.UP
