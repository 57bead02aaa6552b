"""What an autoscaler makes of our answers: the real answer, read and computed on as it does."""

import math
from collections.abc import Mapping
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.answers import answer
from adapter.api import request
from adapter.api.paths import MetricPath
from adapter.api.status import Refusal
from adapter.cluster.pods import Pods
from adapter.provider import Question
from adapter.query import check
from adapter.sources.fake import FakeSource
from adapter.sources.source import Target
from adapter.view import View
from slicewatch.wire.snapshot import encode
from testbed import fleet
from testbed.front_proxy import ManualClock

TOLERANCE = 0.1
PATH = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ml/pods/*/gpu_utilization"
SUFFIXES = {"m": Decimal("0.001"), "k": Decimal(1000), "M": Decimal(10**6)}


def milli(text: str) -> int:
    factor = SUFFIXES.get(text[-1])
    number = Decimal(text) if factor is None else Decimal(text[:-1]) * factor
    return math.ceil(number * 1000)


def read(body: bytes) -> dict[str, int]:
    """Read a list as the autoscaler's client does: by name, the last item wins."""
    items = msgspec.json.decode(body)["items"]
    by_name = {i["describedObject"]["name"]: milli(i["value"]) for i in items}
    assert len(by_name) == len(items), "two items for one pod"
    return by_name


def replicas(metrics: Mapping[str, int], pods: Mapping[str, str], target: int) -> int:
    """Return the replicas that an autoscaler wants by a metric of type Pods.

    Args:
        metrics: thousandths by pod.
        pods: phase by pod.
        target: thousandths.
    """
    current = len(pods)
    running = {n for n, phase in pods.items() if phase == "Running"}
    kept = {n: v for n, v in metrics.items() if n in running}
    unready = {n for n, phase in pods.items() if phase == "Pending"}
    missing = {n for n in pods if n not in kept and n not in unready and pods[n] != "Failed"}
    if not kept:
        return current
    ratio = sum(kept.values()) // len(kept) / target
    if not missing and not (unready and ratio > 1):
        return current if abs(1 - ratio) <= TOLERANCE else math.ceil(ratio * len(kept))
    if ratio < 1:
        kept |= dict.fromkeys(missing, target)
    else:
        kept |= dict.fromkeys(missing, 0) | dict.fromkeys(unready, 0)
    again = sum(kept.values()) // len(kept) / target
    if abs(1 - again) <= TOLERANCE or (ratio < 1) != (again < 1):
        return current
    return math.ceil(again * len(kept))


class Fleet:
    """Pods on nodes of one GPU each, and their autoscaler."""

    def __init__(self) -> None:
        self.clock = ManualClock(1000.0)
        self.pods, self.source = Pods(), FakeSource()
        self.view = View(
            self.pods, self.source, max_age_seconds=15.0, monotonic=self.clock, wall=self.clock
        )
        self.phases: dict[str, str] = {}

    def add(self, name: str, utilization: float | None, *, phase: str = "Running") -> None:
        if phase != "ghost":
            self.phases[name] = phase
            pod = fleet.pod(fleet.pod_json(name, node=f"node-{name}", phase=phase))
            self.pods.changed(None, pod)
        node = f"node-{name}"
        layout = fleet.layout(
            [fleet.gpu(0, node=node)], [fleet.tenant(f"GPU-{node}-0", name)], node=node
        )
        shot = fleet.snapshot(layout, {"gpu_utilization": [utilization]})
        line = encode(fleet.frame(layout, shot))
        self.source.receive(Target(f"http://{node}"), line, self.clock())

    def metrics(self) -> dict[str, int]:
        wanted = request.parse(PATH)
        assert isinstance(wanted.path, MetricPath)
        query = check(Question(path=wanted.path, objects=wanted.objects, series=wanted.series))
        try:
            return read(answer(self.view, query).body)
        except Refusal:
            return {}

    def wanted(self, target: float = 80.0) -> int:
        return replicas(self.metrics(), self.phases, int(target * 1000))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([90.0, 90.0, None, None], 4),
        ([10.0, 10.0, None, None], 3),
        ([95.0, None, None, None], 4),
        ([100.0, 100.0], 3),
        ([80.0, 80.0], 2),
        ([10.0, 10.0], 1),
        ([None, None], 2),
    ],
)
def test_unknown_values_hold_where_zeros_would_scale(
    values: list[float | None], expected: int
) -> None:
    made = Fleet()
    for number, value in enumerate(values):
        made.add(f"p{number}", value)
    assert made.wanted() == expected


def test_pods_that_do_not_exist_do_not_dilute_the_others() -> None:
    made = Fleet()
    for name in ("a", "b"):
        made.add(name, 95.0)
    for name in ("ghost-1", "ghost-2"):
        made.add(name, 0.0, phase="ghost")
    assert set(made.metrics()) == {"a", "b"}
    assert made.wanted() == 3


def test_a_stale_fleet_is_held() -> None:
    made = Fleet()
    for name in ("a", "b"):
        made.add(name, 5.0)
    assert made.wanted() == 1
    made.clock.at += 60
    assert made.wanted() == 2


def test_half_a_fleet_that_fell_silent_is_not_read_as_idle() -> None:
    made = Fleet()
    made.add("old", 95.0)
    made.clock.at += 60
    made.add("new", 95.0)
    assert made.metrics().keys() == {"new"}
    assert made.wanted() == 2


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=8),
    st.lists(st.sampled_from(["silent", "Succeeded", "Failed", "ghost"]), max_size=4),
)
def test_pods_without_a_value_never_turn_a_busy_fleet_down(
    busy: list[float], others: list[str]
) -> None:
    made = Fleet()
    for number, value in enumerate(busy):
        made.add(f"p{number}", value)
    alone = made.wanted()
    for number, what in enumerate(others):
        phase = "Running" if what == "silent" else what
        made.add(f"x{number}", None if what == "silent" else 0.0, phase=phase)
    assert set(made.metrics()) == {f"p{n}" for n in range(len(busy))}
    if alone > len(busy):
        assert made.wanted() >= len(busy)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=8))
def test_what_is_read_is_what_was_measured(values: list[float]) -> None:
    made = Fleet()
    for number, value in enumerate(values):
        made.add(f"p{number}", value)
    got = made.metrics()
    for number, value in enumerate(values):
        assert abs(got[f"p{number}"] - value * 1000) <= 0.5 + 1e-6
