"""Who holds which device from when to when, and how much they ask of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from simulator import identity
from simulator.faults import NEVER
from simulator.load import ZERO, Signal, WeightedSum, constant, together
from simulator.scenario import Holding, Load, Pod, Scenario, Workload


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Appetite:
    """How much each pod of a workload asks for.

    Attributes:
        shared: the signal is of all pods together.
        spans: begin and end of every pod of the workload, on whatever node.
    """

    signal: Signal
    shared: bool
    spans: tuple[tuple[float, float], ...]

    def of_one_pod(self, at: float) -> Signal:
        """Return what one running pod asks for, as long as no pod starts or ends after ``at``."""
        if not self.shared:
            return self.signal
        running = sum(begin <= at < end for begin, end in self.spans)
        return together([WeightedSum(parts=((1 / max(1, running), self.signal),))])

    def cuts(self) -> Iterator[float]:
        """Yield the times at which the number of running pods changes."""
        for span in self.spans:
            yield from span


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


def tenancies(scenario: Scenario) -> dict[tuple[str, int], list[Tenancy]]:
    """Return the tenancies of each GPU, by the name of its node and its index."""
    found: dict[tuple[str, int], list[Tenancy]] = {}
    for workload in scenario.workloads:
        appetite = _appetite(workload)
        for pod in workload.pods:
            for position, holding in enumerate(pod.devices):
                found.setdefault((holding.node, holding.gpu), []).append(
                    Tenancy(
                        namespace=workload.namespace,
                        pod=pod.name,
                        container=pod.container,
                        holding=holding,
                        begin=pod.begin,
                        end=_end(pod),
                        pid=_pid(scenario.seed, workload, pod, position),
                        memory_bytes=workload.memory,
                        appetite=appetite,
                    )
                )
    return found


def _appetite(workload: Workload) -> Appetite:
    given = workload.demand if workload.load is None else workload.load
    return Appetite(
        signal=_signal(given),
        shared=workload.demand is not None,
        spans=tuple((pod.begin, _end(pod)) for pod in workload.pods),
    )


def _signal(given: Load | float | None) -> Signal:
    if given is None:
        return ZERO
    return given.curve() if isinstance(given, Load) else constant(given)


def _end(pod: Pod) -> float:
    return NEVER if pod.until is None else pod.until


def _pid(seed: str, workload: Workload, pod: Pod, position: int) -> int:
    if pod.pids:
        return pod.pids[position]
    return identity.pid(seed, workload.namespace, pod.name, position)
