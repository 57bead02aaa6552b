"""A scenario for long runs: thousands of short-lived pods, new layouts and every fault, for hours.

What a process keeps of pods and devices that are gone shows after many of them. Nothing here is
left to chance: the same arguments make the same scenario.
"""

import math
from collections.abc import Iterator
from typing import Final

from simulator import identity
from simulator.language import Bytes, Seconds
from simulator.scenario import (
    DriverGone,
    Fault,
    Garbage,
    GarbageSamples,
    GpuGroup,
    Hang,
    Holding,
    Lost,
    MigLayout,
    Node,
    Pod,
    Scenario,
    Sharing,
    SharingMode,
    Workload,
    Xid,
)

NODE: Final = "gpu-soak"
SEED: Final = "soak"

SHORTEST_POD_SECONDS: Final = 2.0
LONGEST_POD_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 1.0

LOADS: Final = (0.02, 0.3, 0.95)

_GROUPS: Final = (
    GpuGroup(model="T4", count=2),
    GpuGroup(model="L40S", sharing=Sharing(mode=SharingMode.TIME_SLICING, replicas=4)),
    GpuGroup(model="A30", sharing=Sharing(mode=SharingMode.MPS, replicas=2)),
    GpuGroup(model="H100-80GB", mig=("3g.40gb", "1g.10gb", "1g.10gb")),
)

# What pods run on one after the other, each on its own row of pods.
_PLACES: Final = (
    *(Holding(node=NODE, gpu=gpu) for gpu in (0, 1)),
    *(Holding(node=NODE, gpu=2, replica=replica) for replica in range(4)),
    *(Holding(node=NODE, gpu=3, replica=replica) for replica in range(2)),
    *(Holding(node=NODE, gpu=4, mig=index) for index in range(3)),
)


def scenario(*, pods: int) -> Scenario:
    """Return a scenario with that many pods; faults and new layouts go on for ever."""
    rows: dict[float, list[Pod]] = {load: [] for load in LOADS}
    for number, pod in enumerate(_pods(pods)):
        rows[LOADS[number % len(LOADS)]].append(pod)
    workloads = tuple(
        Workload(
            name=f"jobs-{round(100 * load)}",
            namespace=SEED,
            load=load,
            memory=Bytes(2**30),
            pods=tuple(row),
        )
        for load, row in rows.items()
    )
    node = Node(name=NODE, gpus=_GROUPS)
    return Scenario(seed=SEED, nodes=(node,), workloads=workloads, faults=tuple(_faults()))


def length_seconds(soak: Scenario) -> float:
    """Return when the last pod of a scenario ends; infinite if one never does."""
    ends = (pod.until for workload in soak.workloads for pod in workload.pods)
    return max((math.inf if end is None else end for end in ends), default=0.0)


def _pods(count: int) -> Iterator[Pod]:
    free = dict.fromkeys(_PLACES, 0.0)
    for number in range(count):
        place = min(free, key=lambda one: free[one])
        spread = LONGEST_POD_SECONDS - SHORTEST_POD_SECONDS
        lasts = SHORTEST_POD_SECONDS + spread * identity.draw(SEED, number)
        begin = free[place]
        free[place] = begin + lasts + PAUSE_SECONDS
        yield Pod(
            name=f"job-{number:06}",
            begin=Seconds(begin),
            until=Seconds(begin + lasts),
            devices=(place,),
        )


def _faults() -> Iterator[Fault]:
    """Yield faults whose periods have no small common multiple, so that they meet in all ways."""
    yield Lost(node=NODE, gpu=0, **_times(lasts=20, every=907))
    yield Hang(node=NODE, gpu=1, **_times(lasts=15, every=1301))
    yield GarbageSamples(node=NODE, gpu=2, **_times(lasts=60, every=601))
    yield Garbage(node=NODE, gpu=3, **_times(lasts=30, every=1009))
    yield MigLayout(node=NODE, gpu=4, mig=("1g.10gb",) * 7, **_times(lasts=90, every=709))
    yield MigLayout(node=NODE, gpu=4, mig=False, **_times(lasts=90, every=1511))
    yield DriverGone(node=NODE, **_times(lasts=20, every=3607))
    yield Xid(node=NODE, gpu=0, xid=31, at=Seconds(100), every=Seconds(211))


def _times(*, lasts: float, every: float) -> dict[str, Seconds]:
    return {"at": Seconds(every / 2), "lasts": Seconds(lasts), "every": Seconds(every)}
