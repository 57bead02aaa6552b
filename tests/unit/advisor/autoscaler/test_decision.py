"""Several metrics, and what comes before any of them."""

import pytest

from advisor.autoscaler.decision import Course, decide
from advisor.autoscaler.readings import Readings, Sample


def read(*values):
    return Readings(by_pod={f"p{i}": Sample(value=v * 1000) for i, v in enumerate(values)})


@pytest.fixture
def two(seen, pod, autoscaler, metric):
    def decided(*readings):
        specs = [metric(name=f"m{i}") for i in range(len(readings))]
        pods = [pod("p0"), pod("p1")]
        return decide(seen(pods=pods, readings=list(readings), autoscaler=autoscaler(*specs)))

    return decided


def test_the_largest_proposal_wins(two):
    decision = two(read(20, 20), read(120, 120), read(100, 100))
    assert (decision.winner, decision.desired) == (1, 3)


def test_a_failed_metric_forbids_scaling_down_only(two):
    """k8s #61007."""
    broken = Readings(fault="503")
    down = two(broken, read(20, 20))
    assert (down.course, down.desired, down.works) == (Course.UNSAFE, 2, False)
    up = two(broken, read(120, 120))
    assert (up.course, up.desired, up.works) == (Course.METRICS, 3, True)


def test_failed_metrics_alone_hold(two):
    decision = two(Readings(fault="503"), Readings(fault="404"))
    assert (decision.course, decision.desired, decision.winner) == (Course.UNREADABLE, 2, None)


@pytest.mark.parametrize(
    ("replicas", "course", "desired"),
    [
        (0, Course.DISABLED, 0),
        (1, Course.BELOW_FEWEST, 2),
        (9, Course.ABOVE_MOST, 5),
    ],
)
def test_bounds_and_the_off_switch_come_first(seen, pod, autoscaler, replicas, course, desired):
    """kube-metrics-adapter #724: spec.replicas 0."""
    bounded = autoscaler(least=2, most=5)
    decision = decide(seen({"a": 80}, autoscaler=bounded, replicas=replicas))
    assert (decision.course, decision.desired) == (course, desired)
    assert decision.works == (course is not Course.DISABLED)
    assert decision.proposals[0].usage == 80_000


def test_a_metric_without_its_source_is_a_fault(seen, autoscaler):
    empty = autoscaler({"type": "Pods"})
    (made,) = decide(seen({"a": 1}, autoscaler=empty)).proposals
    assert made.fault == "metrics of type Pods are not known"
