"""The nodes on which a tick is measured: as many devices as there can be, and as many pods.

Samples of what each process did exist on whole GPUs only, so that the two nodes cost an exporter
different things: one is wide, on the other it has to find out who used what.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from bench.crowd import Crowd, shares
from simulator.clock import RealTimeClock
from simulator.fleet import Fleet
from simulator.language import Bytes
from simulator.scenario import (
    GpuGroup,
    Holding,
    Node,
    Pod,
    Scenario,
    Sharing,
    SharingMode,
    Workload,
)

GPUS: Final = 8
INSTANCES: Final = 7
SHARED_PODS: Final = 60
REPLICAS: Final = 8
MODEL: Final = "H100-80GB"
NODE: Final = "gpu-bench"
MEMORY: Final = Bytes(2**30)


def dense(crowd: Crowd) -> Fleet:
    """Return 8 GPUs of 7 MIG instances, each held by a pod."""
    places = [
        Holding(node=NODE, gpu=gpu, mig=instance)
        for gpu in range(GPUS)
        for instance in range(INSTANCES)
    ]
    group = GpuGroup(model=MODEL, count=GPUS, mig=("1g.10gb",) * INSTANCES)
    return _fleet(group, places, crowd, load=0.5)


def shared(crowd: Crowd) -> Fleet:
    """Return 8 whole GPUs that 60 pods use in turns."""
    places = [
        Holding(node=NODE, gpu=number % GPUS, replica=number // GPUS)
        for number in range(SHARED_PODS)
    ]
    sharing = Sharing(mode=SharingMode.TIME_SLICING, replicas=REPLICAS)
    group = GpuGroup(model=MODEL, count=GPUS, sharing=sharing)
    return _fleet(group, places, crowd, load=0.1)


def _fleet(group: GpuGroup, places: list[Holding], crowd: Crowd, *, load: float) -> Fleet:
    pods = list(_pods(places, shares(crowd.pids, len(places))))
    sizes = sorted({len(pod.pids) for pod in pods})
    workloads = tuple(
        Workload(
            name=f"jobs-{size}", namespace="bench", load=load, memory=MEMORY, processes=size,
            pods=tuple(pod for pod in pods if len(pod.pids) == size),
        )
        for size in sizes
    )  # fmt: skip
    scenario = Scenario(seed="bench", nodes=(Node(name=NODE, gpus=(group,)),), workloads=workloads)
    crowd.settle(scenario)
    return Fleet(scenario, clock=RealTimeClock())


def _pods(places: Iterable[Holding], pids: Iterable[tuple[int, ...]]) -> Iterator[Pod]:
    for number, (place, own) in enumerate(zip(places, pids, strict=True)):
        yield Pod(name=f"job-{number:02}", devices=(place,), pids=own)
