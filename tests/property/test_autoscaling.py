"""What the values of pods make of an autoscaler, whatever the load and the number of replicas.

The loop is closed: a model of the GPUs gives readings, the real join gives each pod its value, and
the replicas follow as the controller for a metric of type Pods computes them, once all pods have a
value and none is being started.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.allocation import Allocation
from adapter.join import Join
from adapter.query import SERVED
from slicewatch.kube.objects import Pod
from slicewatch.wire.snapshot import Column
from testbed import fleet

UTILIZATION = SERVED["gpu_utilization"]
TARGET, TOLERANCE = 70.0, 0.1
# From one replica to a hundred it is 13 steps of 10/7, and some more to come back.
MOST_STEPS = 40

LOADS = st.floats(0.05, 40.0)
REPLICAS = st.integers(1, 60)


def wanted(values: list[float], target: float = TARGET) -> int:
    """Return the replicas that a controller wants; values are read in whole thousandths."""
    ratio = sum(math.ceil(value * 1000) for value in values) // len(values) / (target * 1000)
    if abs(ratio - 1) <= TOLERANCE:
        return len(values)
    return max(1, math.ceil(ratio * len(values)))


def pool(name: str) -> Pod:
    body = fleet.pod_json(name, owner=("ReplicaSet", "web-7d9"), labels={"app": "web"})
    body["metadata"]["labels"]["pod-template-hash"] = "7d9"
    return fleet.pod(body)


def stranger(name: str) -> Pod:
    return fleet.pod(fleet.pod_json(name))


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A GPU and how busy each pod keeps it; those of the pool are called web."""

    busy: Mapping[str, float]

    def values(self) -> list[float]:
        """Return what each pod of the pool gets."""
        pods = [pool(n) if n.startswith("web") else stranger(n) for n in self.busy]
        layout = fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", n) for n in self.busy])
        shares: Column = list(self.busy.values())
        shot = fleet.snapshot(
            layout, {"gpu_utilization": [100 * min(1.0, sum(self.busy.values()))]},
            tenant_values={"gpu_tenant_busy_ratio": shares}, shares="processes",
        )  # fmt: skip
        join = Join(Allocation(layout, {pod.key: pod for pod in pods}), shot)
        outcomes = [join.pod(pod.key, UTILIZATION).value for pod in pods if pod in _web(pods)]
        return [value for value in outcomes if value is not None]


def _web(pods: list[Pod]) -> list[Pod]:
    return [pod for pod in pods if pod.metadata.name.startswith("web")]


def exclusive(load: float, replicas: int) -> list[float]:
    """Return the values of a pool whose replicas have a GPU each and share a load evenly."""
    each = min(1.0, load / replicas)
    return Gpu(busy={"web": each}).values() * replicas


def beside(load: float, replicas: int, other: float) -> list[float]:
    """Return them where each GPU also has a stranger that wants so much of it."""
    each = load / replicas
    # What both want does not fit: each gets at least its half, and what the other leaves.
    mine = min(each, max(0.5, 1 - other))
    theirs = min(other, 1 - mine)
    return Gpu(busy={"web": mine, "x": theirs}).values() * replicas


@given(LOADS, REPLICAS)
def test_a_pool_alone_on_its_gpus_comes_to_rest_at_the_target(load: float, replicas: int) -> None:
    seen = [replicas]
    for _ in range(MOST_STEPS):
        seen.append(wanted(exclusive(load, seen[-1])))
        if seen[-1] == seen[-2]:
            break
    rest = seen[-1]
    assert wanted(exclusive(load, rest)) == rest
    busy = exclusive(load, rest)[0]
    assert busy <= TARGET * (1 + TOLERANCE) + 0.001
    # One replica fewer would be above the target, or there is only one, or it is within tolerance.
    fewer = math.inf if rest == 1 else 100 * load / (rest - 1)
    assert fewer > TARGET - 0.001 or busy >= TARGET * (1 - TOLERANCE) - 0.001


@given(LOADS, REPLICAS)
def test_it_does_not_flap_at_constant_load(load: float, replicas: int) -> None:
    """Once it has gone down, it never goes up again."""
    seen = [replicas]
    for _ in range(MOST_STEPS):
        seen.append(wanted(exclusive(load, seen[-1])))
    steps = [after - before for before, after in pairwise(seen)]
    fell = next((i for i, step in enumerate(steps) if step < 0), len(steps))
    assert all(step <= 0 for step in steps[fell:])
    assert steps[-1] == 0


@given(st.integers(2, 6), st.integers(0, 3))
def test_saturated_strangers_scale_out_however_many_share_a_device(
    tenants: int, idle: int
) -> None:
    busy = {"web": 1 / tenants} | {f"x{n}": 1 / tenants for n in range(tenants - 1)}
    values = Gpu(busy=busy | {f"idle{n}": 0.0 for n in range(idle)}).values()
    assert values == [pytest.approx(100.0)]
    assert wanted(values * 4) > 4


@given(st.integers(1, 4), st.integers(1, 5), st.floats(0.0, 0.02))
def test_an_idle_pool_beside_busy_strangers_never_scales_out(
    mine: int, others: int, used: float
) -> None:
    busy = {f"web{n}": used / mine for n in range(mine)}
    busy |= {f"x{n}": (1 - used) / others for n in range(others)}
    values = Gpu(busy=busy).values()
    assert len(values) == mine
    assert max(values) < TARGET * (1 - TOLERANCE)
    assert wanted(values) <= mine


@given(st.floats(0.05, 0.45), st.integers(2, 30), st.floats(0.0, 1.0), st.integers(1, 30))
def test_beside_a_stranger_the_value_falls_in_proportion_as_replicas_take_load(
    each: float, replicas: int, other: float, more: int
) -> None:
    load = each * replicas
    before = beside(load, replicas, other)[0]
    after = beside(load, replicas + more, other)[0]
    assert after * (replicas + more) == pytest.approx(before * replicas, rel=1e-6)


@given(st.floats(0.05, 10.0), REPLICAS, st.floats(0.0, 1.0))
def test_beside_strangers_a_pool_comes_to_rest_too(
    load: float, replicas: int, other: float
) -> None:
    seen = [replicas]
    for _ in range(MOST_STEPS):
        seen.append(wanted(beside(load, seen[-1], other)))
    assert seen[-1] == seen[-2]
    assert beside(load, seen[-1], other)[0] <= TARGET * (1 + TOLERANCE) + 0.001


@given(LOADS, st.integers(2, 20))
def test_the_raw_value_of_the_device_would_scale_an_idle_pool_out(
    load: float, replicas: int
) -> None:
    """Why it is not what a pod gets: it does not fall when replicas take the load."""
    layout = fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", n) for n in ("web", "x")])
    busy: Column = [min(0.02, load / replicas / 100), 0.97]
    shot = fleet.snapshot(
        layout, {"gpu_utilization": [99.0]}, tenant_values={"gpu_tenant_busy_ratio": busy},
        shares="processes",
    )  # fmt: skip
    pods = {pod.key: pod for pod in (pool("web"), stranger("x"))}
    join = Join(Allocation(layout, pods), shot)
    raw = join.pod(("ml", "web"), SERVED["gpu_device_utilization"]).value
    own = join.pod(("ml", "web"), UTILIZATION).value
    assert raw is not None
    assert own is not None
    assert wanted([raw] * replicas) > replicas >= wanted([own] * replicas)
