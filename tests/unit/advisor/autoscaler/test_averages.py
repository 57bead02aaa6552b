"""Metrics of pods: the controller's cases, one by one, and what holds for all of them."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.autoscaler.decision import Course, decide
from advisor.autoscaler.proposal import Aim, Verdict
from advisor.autoscaler.readings import Readings

FIXTURES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def four(values):
    """Return four pods' values by name; None is a pod without one."""
    return {f"p{i}": v for i, v in enumerate(values) if v is not None}


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([80, 80], 2),
        ([100, 100], 3),
        ([10, 10], 1),
        ([87.9, 87.9], 2),
        ([88.1, 88.1], 3),
        ([72.1, 72.1], 2),
        ([71.9, 71.9, 71.9, 71.9, 71.9, 71.9, 71.9, 71.9, 71.9, 71.9], 9),
        # Missing pods: the table that is measured in the facts about the API.
        ([90, 90, None, None], 4),
        ([10, 10, None, None], 3),
        ([95, None, None, None], 4),
        ([95, 95, 0, 0], 3),
        ([90, 90, 0, 0], 3),
        ([10, 10, 0, 0], 1),
        ([95, 0, 0, 0], 2),
    ],
)
def test_replicas_by_the_values_of_pods_at_target_80(seen, pod, values, wanted):
    pods = [pod(f"p{i}") for i in range(len(values))]
    assert decide(seen(four(values), pods=pods)).proposals[0].replicas == wanted


def test_the_mean_is_truncated_to_thousandths(seen):
    (made,) = decide(seen({"a": 0.001, "b": 0.002})).proposals
    assert made.usage == 1


def test_values_of_pods_that_are_deleted_or_failed_are_dropped(seen, pod):
    """k8s #83561."""
    pods = [pod("a"), pod("b"), pod("gone", deleting=True), pod("dead", phase="Failed")]
    (made,) = decide(seen({"a": 100, "b": 100, "gone": 0, "dead": 0}, pods=pods)).proposals
    assert made.groups.ignored == ("dead", "gone")
    assert made.replicas == 3


def test_a_succeeded_pod_counts_as_missing_and_damps(seen, pod):
    """k8s #141298: so it is up to 1.36."""
    with_it = [pod("a"), pod("b"), pod("done", phase="Succeeded")]
    (made,) = decide(seen({"a": 100, "b": 100}, pods=with_it, replicas=2)).proposals
    assert made.groups.missing == ("done",)
    assert made.verdict is Verdict.REVERSED
    assert made.replicas == 2
    assert decide(seen({"a": 100, "b": 100})).proposals[0].replicas == 3


def test_a_pending_pod_counts_as_idle_when_scaling_up_and_not_at_all_when_down(seen, pod):
    pods = [pod("a"), pod("new", phase="Pending")]
    (up,) = decide(seen({"a": 100}, pods=pods)).proposals
    assert up.groups.unready == ("new",)
    assert (up.replicas, up.verdict) == (2, Verdict.REVERSED)
    (down,) = decide(seen({"a": 30}, pods=pods)).proposals
    assert down.replicas == 1


def test_an_unready_pod_counts_for_a_custom_metric(seen, pod):
    (made,) = decide(seen({"a": 100}, pods=[pod("a", ready=False)])).proposals
    assert made.replicas == 2


def test_values_of_pods_that_nobody_selected_count_in_the_mean_alone(seen, pod):
    (made,) = decide(seen({"a": 100, "b": 100, "ghost": 0}, pods=[pod("a"), pod("b")])).proposals
    assert made.usage == 66_666
    assert (made.replicas, made.pods) == (2, 2)


def test_only_pods_that_do_not_count_make_the_metric_unusable(seen, pod):
    decision = decide(seen({"a": 100}, pods=[pod("a", phase="Pending")]))
    assert decision.course is Course.UNREADABLE
    assert "pending" in decision.proposals[0].fault


def test_no_pods_make_the_metric_unusable(seen):
    decision = decide(seen({}, pods=[], replicas=2))
    assert decision.proposals[0].fault == "the selector matches no pods"
    assert decision.desired == 2


def test_a_mean_too_large_for_the_replicas_scales_down_as_it_does_there(seen, autoscaler, metric):
    """k8s #126892."""
    small = autoscaler(metric("100m"))
    decision = decide(seen({"a": 300e6}, autoscaler=small, replicas=1))
    assert decision.proposals[0].replicas < 0
    assert decision.desired == 1


def resource(**target):
    return {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "x"} | target}}


def cpu_pod(pod, name, **more):
    return pod(name, resources={"requests": {"cpu": "500m"}}, **more)


def test_utilization_is_of_the_sum_of_the_requests(seen, pod, autoscaler):
    pods = [cpu_pod(pod, "a"), cpu_pod(pod, "b")]
    scaled = autoscaler(resource(averageUtilization=50))
    (made,) = decide(seen({"a": 0.5, "b": 0.3}, pods=pods, autoscaler=scaled)).proposals
    assert (made.usage, made.aim, made.replicas) == (80, Aim.UTILIZATION, 4)


def test_a_missing_pod_is_fully_used_when_cpu_scales_down(seen, pod, autoscaler):
    pods = [cpu_pod(pod, name) for name in "abcd"]
    scaled = autoscaler(resource(averageUtilization=50))
    values = {"a": 0.05, "b": 0.05, "c": 0.05}
    (made,) = decide(seen(values, pods=pods, autoscaler=scaled)).proposals
    assert made.assumed_ratio == pytest.approx(0.64)
    assert made.replicas == 3


def test_cpu_without_a_request_names_the_container(seen, pod, autoscaler):
    scaled = autoscaler(resource(averageUtilization=50))
    (made,) = decide(seen({"a": 1}, pods=[pod("a")], autoscaler=scaled)).proposals
    assert made.fault == "container main of pod a has no request for cpu"


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({}, True),
        ({"ready": False, "changed": "2026-09-20T10:14:00Z"}, True),
        ({"ready": False, "changed": "2026-09-20T08:59:20Z"}, False),
        ({"started": "2026-09-20T10:12:00Z", "changed": "2026-09-20T10:12:30Z"}, True),
        ({"started": "2026-09-20T10:14:00Z", "changed": "2026-09-20T10:14:30Z"}, False),
        ({"started": "2026-09-20T10:12:00Z", "ready": False}, False),
        ({"started": None}, False),
    ],
)
def test_cpu_of_a_starting_pod_does_not_count(seen, pod, autoscaler, more, counts):
    scaled = autoscaler(resource(averageValue="1"))
    pods = [cpu_pod(pod, "a"), cpu_pod(pod, "b", **more)]
    (made,) = decide(seen({"a": 1, "b": 1}, pods=pods, autoscaler=scaled)).proposals
    assert ("b" in made.groups.counted) == counts


def test_an_own_tolerance_replaces_that_of_the_controller(seen, autoscaler):
    fine = autoscaler(behavior={"scaleUp": {"tolerance": "10m"}, "scaleDown": {}})
    assert decide(seen({"a": 82, "b": 82}, autoscaler=fine)).desired == 3
    assert decide(seen({"a": 73, "b": 73}, autoscaler=fine)).desired == 2
    assert decide(seen({"a": 82, "b": 82})).desired == 2


values = st.lists(st.floats(0, 500), min_size=1, max_size=8)


@FIXTURES
@given(values, st.floats(0, 100))
def test_more_load_never_asks_for_fewer_replicas(seen, loads, more):
    before = decide(seen(four(loads))).proposals[0].replicas
    after = decide(seen(four([load + more for load in loads]))).proposals[0].replicas
    assert after >= before


@FIXTURES
@given(st.lists(st.floats(72.001, 88), min_size=1, max_size=8))
def test_nothing_changes_within_the_tolerance(seen, loads):
    decision = decide(seen(four(loads)))
    assert decision.desired == len(loads)
    assert decision.proposals[0].verdict is Verdict.WITHIN


@FIXTURES
@given(st.floats(0, 500), st.integers(1, 20))
def test_without_missing_pods_the_replicas_are_those_that_bring_the_mean_to_the_target(
    seen, load, count
):
    (made,) = decide(seen(four([load] * count))).proposals
    if made.verdict is Verdict.SCALED:
        milli = round(load * 1000)
        assert made.replicas == math.ceil(milli / 80_000 * count)


@FIXTURES
@given(
    values, st.lists(st.sampled_from(["missing", "Pending", "Succeeded", "Failed"]), max_size=6)
)
def test_pods_without_a_value_never_reverse_or_enlarge_a_change(seen, pod, loads, others):
    busy = four(loads)
    alone = decide(seen(busy)).proposals[0]
    pods = [pod(name) for name in busy]
    pods += [pod(f"x{i}", phase="Running" if o == "missing" else o) for i, o in enumerate(others)]
    (made,) = decide(seen(busy, pods=pods)).proposals
    if alone.ratio > 1:
        assert made.replicas >= len(busy)
        assert made.replicas <= max(alone.replicas, len(pods))
    if alone.ratio < 1:
        assert made.replicas <= len(pods)
        assert made.replicas >= min(alone.replicas, len(pods))


def test_a_fault_of_the_reading_is_the_fault_of_the_metric(seen):
    decision = decide(seen({}, readings=[Readings(fault="no metrics API")], replicas=3, pods=[]))
    assert decision.proposals[0].fault == "no metrics API"
    assert (decision.desired, decision.works) == (3, False)


def test_a_quantity_that_is_none_is_the_fault_of_its_metric(seen, autoscaler, metric):
    wrong = autoscaler(metric("80%"))
    (made,) = decide(seen({"a": 1}, autoscaler=wrong)).proposals
    assert "'80%' is not a quantity" in made.fault
