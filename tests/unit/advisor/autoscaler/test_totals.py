"""Metrics of an object or of none."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.autoscaler.decision import decide
from advisor.autoscaler.proposal import Aim, Verdict
from advisor.autoscaler.readings import Readings
from slicewatch.kube.quantity import LARGEST_INT64

FIXTURES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def external(**target):
    return {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "x"} | target}}  # fmt: skip


def on_object(**target):
    described = {"kind": "Service", "name": "web", "apiVersion": "v1"}
    return {"type": "Object", "object": {"describedObject": described, "metric": {"name": "queue"}, "target": {"type": "x"} | target}}  # fmt: skip


@pytest.fixture
def asked(seen, pod, autoscaler):
    def ask(spec, *values, ready=3, unready=0, **more):
        pods = [pod(f"r{i}") for i in range(ready)]
        pods += [pod(f"u{i}", ready=False) for i in range(unready)]
        readings = [Readings(values=tuple(round(v * 1000) for v in values))]
        return decide(seen(pods=pods, readings=readings, autoscaler=autoscaler(spec), **more))

    return ask


@pytest.mark.parametrize("spec", [external(value="10"), on_object(value="10")])
def test_a_value_scales_the_ready_pods(asked, spec):
    (made,) = asked(spec, 20, ready=3, unready=2).proposals
    assert (made.replicas, made.pods, made.aim) == (6, 3, Aim.TOTAL)


@pytest.mark.parametrize("spec", [external(averageValue="10"), on_object(averageValue="10")])
def test_an_average_value_is_shared_by_the_replicas(asked, spec):
    (made,) = asked(spec, 45, ready=0, replicas=3).proposals
    assert (made.replicas, made.usage, made.aim) == (5, 15_000, Aim.SHARED)


def test_an_average_within_the_tolerance_keeps_the_replicas_that_exist(asked):
    (made,) = asked(external(averageValue="10"), 29, replicas=4, existing=3).proposals
    assert (made.replicas, made.verdict) == (3, Verdict.WITHIN)


def test_external_values_are_summed(asked):
    (made,) = asked(external(value="10"), 10, 10, 10, ready=1).proposals
    assert (made.replicas, made.sources) == (3, 3)


def test_from_no_replicas_the_ratio_itself_is_the_number(seen, autoscaler):
    off = autoscaler(external(value="10"), least=0)
    readings = [Readings(values=(25_000,))]
    assert decide(seen(pods=[], readings=readings, autoscaler=off)).desired == 3


def test_no_existing_replicas_are_no_division_by_zero(asked):
    """k8s #140956."""
    (made,) = asked(external(averageValue="10"), 25, ready=0, replicas=1, existing=0).proposals
    assert (made.replicas, made.usage, made.ratio) == (3, None, None)


def test_a_value_without_pods_is_a_fault(asked):
    (made,) = asked(external(value="10"), 25, ready=0, replicas=2).proposals
    assert made.fault == "the selector matches no pods"


def test_sums_stop_at_the_largest_number(asked):
    (made,) = asked(
        external(averageValue="1"), LARGEST_INT64 / 1000, LARGEST_INT64 / 1000
    ).proposals
    assert made.replicas == 2**31 - 1


def test_a_target_without_a_value_is_a_fault(asked):
    (made,) = asked(external(averageUtilization=50), 25).proposals
    assert made.fault == "its target has neither value nor averageValue"


def test_a_target_of_zero_is_a_fault(asked):
    (made,) = asked(external(value="0"), 25).proposals
    assert "must be more than zero" in made.fault


@FIXTURES
@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(1, 20))
def test_a_larger_total_never_asks_for_fewer(asked, total, more, existing):
    def wanted(value):
        return asked(external(averageValue="7"), value, ready=0, replicas=existing).proposals[0]

    assert wanted(total + more).replicas >= wanted(total).replicas
