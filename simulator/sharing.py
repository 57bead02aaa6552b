"""How the tenants of one device share it: what each of them gets of it at any time.

Processes run in turns, so a tenant weighs as much as it has processes. Every device is shared
like that, except by a vGPU scheduler that gives fixed parts; MPS and the hardware decide
otherwise in the small, but nobody can tell in what way.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from simulator.load import IDLE, Signal, Sum, constant, fair_shares, together
from simulator.tenancy import Tenancy
from simulator.virtualization import SchedulerPolicy, Vgpu
from slicewatch.hardware import GpuModel

Shares = Mapping[Tenancy, Signal]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Use:
    """How busy a device is, and by whom: the shares add up to the load if there are any."""

    load: Signal
    shares: Shares


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a GPU is shared; the policy matters to vGPUs only."""

    model: GpuModel
    policy: SchedulerPolicy

    def use(self, tenants: Iterable[Tenancy], at: float, *, fixed: float | None) -> Use:
        """Return the use of a device, as long as nobody starts or ends after ``at``.

        Args:
            tenants: of the device.
            at: when they hold it.
            fixed: how busy it is whatever they ask for, or None.
        """
        everyone = tuple(tenants)
        if fixed is not None:
            total = sum(one.weight for one in everyone)
            parts = {one: constant(fixed * one.weight / total) for one in everyone}
            return Use(load=constant(fixed), shares=parts)
        demands = [one.appetite.of_one_pod(at) for one in everyone]
        shares = dict(zip(everyone, self._shares(everyone, demands), strict=True))
        # With limits, less may be granted than there is.
        limited = self.policy is not SchedulerPolicy.BEST_EFFORT
        return Use(load=together(list(shares.values()) if limited else demands), shares=shares)

    def _shares(self, tenants: Sequence[Tenancy], demands: Sequence[Signal]) -> Sequence[Signal]:
        if self.policy is SchedulerPolicy.BEST_EFFORT:
            weights = [one.weight for one in tenants]
            return fair_shares(list(zip(weights, demands, strict=True)))
        limits = [
            1 / len(tenants)
            if self.policy is SchedulerPolicy.EQUAL_SHARE or one.vgpu is None
            else part_of(one.vgpu, self.model)
            for one in tenants
        ]
        limited = zip(demands, limits, strict=True)
        return [Sum(parts=((1.0, demand),), limit=limit) for demand, limit in limited]


def part_of(vgpu: Vgpu, model: GpuModel) -> float:
    """Return the part of a GPU that a vGPU takes: how many of its type fit on one."""
    # A type is named after its part of the nominal memory, which is a little more than there is.
    return 1 / max(1, round(model.memory_bytes / vgpu.memory))


def no_use(tenants: Iterable[Tenancy]) -> Use:
    """Return the use of a device on which nothing runs."""
    return Use(load=IDLE, shares=dict.fromkeys(tenants, IDLE))
