"""Who holds which device when, and how much they ask of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from simulator import identity
from simulator.faults import NEVER
from simulator.load import IDLE, Signal, Sum, constant
from simulator.scenario import Holding, Load, Pod, Scenario, Workload


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Appetite:
    """How much each pod of a workload asks for.

    Attributes:
        shared: the signal is of all pods together.
        spans: start and end of every pod of the workload, on any node.
    """

    signal: Signal
    shared: bool
    spans: tuple[tuple[float, float], ...]

    def of_one_pod(self, at: float) -> Signal:
        """Return what one running pod asks for, as long as no pod starts or ends after ``at``."""
        if not self.shared:
            return self.signal
        running = sum(begin <= at < end for begin, end in self.spans)
        return Sum(parts=((1 / max(1, running), self.signal),), limit=1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tenancy:
    """A container with one device of a GPU, or a replica of it."""

    namespace: str
    pod: str
    container: str
    holding: Holding
    begin: float
    end: float
    pid: int
    memory_bytes: int
    appetite: Appetite

    def holds(self, at: float) -> bool:
        """Tell whether the pod runs at that time."""
        return self.begin <= at < self.end


def tenancies(scenario: Scenario, node: str, gpu: int) -> list[Tenancy]:
    """Return the tenancies of one GPU."""
    return [
        tenancy
        for workload in scenario.workloads
        for tenancy in _of_workload(workload, scenario.seed)
        if (tenancy.holding.node, tenancy.holding.gpu) == (node, gpu)
    ]


def _of_workload(workload: Workload, seed: str) -> Iterator[Tenancy]:
    appetite = Appetite(
        signal=_signal(workload.demand if workload.load is None else workload.load),
        shared=workload.demand is not None,
        spans=tuple((pod.begin, _end(pod)) for pod in workload.pods),
    )
    for pod in workload.pods:
        for position, holding in enumerate(pod.devices):
            made_up = identity.pid(seed, workload.namespace, pod.name, position)
            yield Tenancy(
                namespace=workload.namespace,
                pod=pod.name,
                container=pod.container,
                holding=holding,
                begin=pod.begin,
                end=_end(pod),
                pid=pod.pids[position] if pod.pids else made_up,
                memory_bytes=workload.memory,
                appetite=appetite,
            )


def _signal(given: Load | float | None) -> Signal:
    if given is None:
        return IDLE
    return given.curve() if isinstance(given, Load) else constant(given)


def _end(pod: Pod) -> float:
    return NEVER if pod.until is None else pod.until
