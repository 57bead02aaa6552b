"""Rates, windows and bounds."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.autoscaler.behavior import Limit, Memory, Remembered, restrain
from advisor.autoscaler.controller import Controller

FIXTURES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def ago(replicas, age_seconds):
    return Remembered(replicas=replicas, age_seconds=age_seconds)


@pytest.fixture
def left(autoscaler):
    def restrained(current, recommended, *, memory=None, **spec):
        return restrain(
            autoscaler(**spec),
            current=current,
            recommended=recommended,
            controller=Controller(),
            memory=memory,
        )

    return restrained


@pytest.mark.parametrize(
    ("current", "recommended", "desired", "limit"),
    [
        (1, 20, 4, Limit.SCALE_UP_RATE),
        (3, 20, 6, Limit.SCALE_UP_RATE),
        (30, 200, 50, Limit.MOST),
        (4, 1, 2, Limit.FEWEST),
        (4, 6, 6, Limit.NONE),
        (4, 4, 4, Limit.NONE),
        (40, 3, 3, Limit.NONE),
    ],
)
def test_without_a_behavior(left, current, recommended, desired, limit):
    found = left(current, recommended, least=2, most=50)
    assert (found.desired, found.limit) == (desired, limit)


def test_a_recent_higher_recommendation_keeps_the_replicas_for_five_minutes(left):
    recent = Memory(recommended=(ago(5, 299), ago(9, 301)))
    found = left(5, 2, memory=recent)
    assert (found.stabilized, found.desired, found.down_window_seconds) == (5, 5, 300)
    assert left(5, 2, memory=Memory(recommended=(ago(5, 301),))).desired == 2


def test_the_behavior_of_the_documentation_adds_four_or_doubles(left):
    assert left(2, 30, behavior={"scaleUp": {}}).desired == 6
    assert left(10, 30, behavior={"scaleUp": {}}).desired == 20


def test_what_was_added_in_the_period_counts_against_the_policy(left):
    rules = {"scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}}
    added = Memory(added=(ago(3, 30),))
    found = left(5, 30, behavior=rules, memory=added)
    assert (found.desired, found.limit) == (6, Limit.SCALE_UP_RATE)
    assert left(5, 30, behavior=rules, memory=Memory(added=(ago(3, 61),))).desired == 9


def test_what_was_removed_in_the_period_counts_too(left):
    rules = {"scaleDown": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}}
    found = left(5, 1, behavior=rules, memory=Memory(removed=(ago(1, 10),)))
    assert (found.desired, found.limit) == (4, Limit.SCALE_DOWN_RATE)


@pytest.mark.parametrize(("select", "desired"), [("Max", 20), ("Min", 11), ("Disabled", 10)])
def test_the_policy_that_is_selected_counts(left, select, desired):
    policies = [
        {"type": "Pods", "value": 1, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ]
    rules = {"scaleUp": {"selectPolicy": select, "policies": policies}}
    assert left(10, 30, behavior=rules).desired == desired


def test_percent_rounds_so_that_something_is_added_and_removed(left):
    policies = [{"type": "Percent", "value": 10, "periodSeconds": 60}]
    assert left(1, 5, behavior={"scaleUp": {"policies": policies}}).desired == 2
    assert left(5, 1, behavior={"scaleDown": {"policies": policies}}).desired == 4


def test_a_window_up_waits_for_the_lowest_recent_recommendation(left):
    rules = {"scaleUp": {"stabilizationWindowSeconds": 60}}
    recent = Memory(recommended=(ago(3, 30),))
    assert left(2, 5, behavior=rules, memory=recent).desired == 3
    assert left(2, 5, behavior=rules, memory=Memory(recommended=(ago(3, 61),))).desired == 5


def test_a_window_of_zero_scales_down_at_once(left):
    rules = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    assert left(5, 2, behavior=rules, memory=Memory(recommended=(ago(5, 1),))).desired == 2


counts = st.integers(1, 60)


@FIXTURES
@given(counts, st.integers(0, 200), st.sampled_from([None, {"scaleUp": {}}]))
def test_the_result_is_within_the_bounds_and_between_now_and_the_recommendation(
    left, current, recommended, behavior
):
    found = left(current, recommended, least=1, most=60, behavior=behavior)
    assert 1 <= found.desired <= 60
    low, high = sorted((current, recommended))
    assert low <= found.desired <= high or found.desired == 1
    assert (found.limit is Limit.NONE) == (found.desired == found.stabilized)


@FIXTURES
@given(counts, st.integers(0, 200), st.integers(0, 50))
def test_a_higher_recommendation_never_leaves_fewer(left, current, recommended, more):
    lower = left(current, recommended, most=60).desired
    assert left(current, recommended + more, most=60).desired >= lower
