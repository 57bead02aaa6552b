"""Who holds which device when, with which processes, and how much they ask of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, pairwise
from typing import NamedTuple

from simulator import identity
from simulator.faults import NEVER
from simulator.language import Load, Mix
from simulator.load import IDLE, Signal, Sum, constant
from simulator.scenario import GpuGroup, Holding, Pod, Scenario, Workload
from simulator.virtualization import Vgpu


class Owner(NamedTuple):
    """The container that a process belongs to, and the uid of its pod."""

    namespace: str
    pod: str
    container: str
    uid: str


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
    """Processes that hold one device of a GPU, or a replica of it.

    Those of a container, from one start of it to the next, or of the host.

    Attributes:
        owner: the container; None for processes of the host.
        memory_bytes: of all processes together.
        weight: of its turns, against those of others.
        vgpu: whose only process is the one that drives this vGPU for its machine.
    """

    owner: Owner | None
    holding: Holding
    begin: float
    end: float
    pids: tuple[int, ...]
    memory_bytes: int
    graphics: bool
    mix: Mix
    appetite: Appetite
    weight: float
    vgpu: Vgpu | None = None

    def holds(self, at: float) -> bool:
        """Tell whether the processes run at that time."""
        return self.begin <= at < self.end


def tenancies(scenario: Scenario, node: str) -> list[Tenancy]:
    """Return the tenancies of the workloads on a node."""
    return [
        tenancy
        for workload in scenario.workloads
        for tenancy in _of_workload(workload, scenario.seed, node)
    ]


def vgpu_tenancies(group: GpuGroup, gpu: str, index: int, node: str) -> list[Tenancy]:
    """Return the tenancies of the vGPUs of a GPU, in the order of the scenario."""
    return [
        Tenancy(
            owner=None,
            holding=Holding(node=node, gpu=index),
            begin=vgpu.begin,
            end=_end(vgpu),
            pids=(identity.pid(gpu, "", f"vgpu/{vgpu.vm}", number),),
            memory_bytes=int(vgpu.memory),
            graphics=False,
            mix=vgpu.mix,
            appetite=Appetite(signal=_signal(vgpu.load), shared=False, spans=()),
            weight=float(vgpu.weight),
            vgpu=vgpu,
        )
        for number, vgpu in enumerate(group.vgpus)
    ]


def _of_workload(workload: Workload, seed: str, node: str) -> Iterator[Tenancy]:
    shared = workload.demand is not None
    appetite = Appetite(
        signal=_signal(workload.demand if workload.load is None else workload.load),
        shared=shared,
        spans=tuple((pod.begin, _end(pod)) for pod in workload.pods) if shared else (),
    )
    for pod in workload.pods:
        # A pod runs on one node only.
        if pod.holdings()[0].node == node:
            yield from _of_pod(workload, pod, appetite, seed)


def _of_pod(workload: Workload, pod: Pod, appetite: Appetite, seed: str) -> Iterator[Tenancy]:
    made_up = (identity.pid(seed, workload.namespace, pod.name, number) for number in count())
    uid = identity.pod_uid(seed, workload.namespace, pod.name)
    for part in pod.parts():
        owner = Owner(workload.namespace, pod.name, part.name, uid)
        for begin, end in pairwise((pod.begin, *part.restarts, _end(pod))):
            pids = iter(part.pids if begin == pod.begin and part.pids else made_up)
            for holding in part.devices:
                yield Tenancy(
                    owner=None if workload.host else owner,
                    holding=holding,
                    begin=begin,
                    end=end,
                    pids=tuple(next(pids) for _ in range(workload.processes)),
                    memory_bytes=int(workload.memory),
                    graphics=workload.graphics,
                    mix=workload.mix,
                    appetite=appetite,
                    weight=float(workload.processes),
                )


def _signal(given: Load | float | None) -> Signal:
    if given is None:
        return IDLE
    return given.curve() if isinstance(given, Load) else constant(given)


def _end(pod: Pod | Vgpu) -> float:
    return NEVER if pod.until is None else pod.until
