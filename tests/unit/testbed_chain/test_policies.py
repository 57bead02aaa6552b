"""What the policies of an HPA allow: the way up and down of the users' manifest, and its breaches."""

from itertools import accumulate, pairwise, repeat

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from testbed.chain.policies import DOWN, UP, Rules, Step, steps, violations
from testbed.chain.pools import MANIFEST

HPA = yaml.safe_load(MANIFEST.read_text())
RULES = {direction: Rules.of(HPA, direction) for direction in (UP, DOWN)}
UP_PERIOD, DOWN_PERIOD = 120, 300


def way(direction: str, begin: int, end: int) -> list[int]:
    """Return the sizes that an HPA in a hurry passes through."""
    rules = RULES[direction]
    nearest = min if direction == UP else max
    sizes = accumulate(repeat(end, 20), lambda now, last: nearest(rules.furthest(now), last),
                       initial=begin)  # fmt: skip
    return list(dict.fromkeys(sizes))


def taken(sizes: list[int], *, first: float, every: float) -> list[Step]:
    return [
        Step(at_seconds=first + every * number, before=before, after=after)
        for number, (before, after) in enumerate(pairwise(sizes))
    ]


def found(direction: str, made: list[Step], *, late_seconds: float = 0) -> list[str]:
    return list(violations(made, RULES[direction], since_seconds=0, late_seconds=late_seconds))


def test_up_is_rounded_up_and_down_is_rounded_down_as_the_controller_does() -> None:
    assert way(UP, 2, 20) == [2, 3, 5, 8, 12, 18, 20]
    assert way(DOWN, 20, 2) == [20, 15, 11, 8, 6, 4, 3, 2]


@pytest.mark.parametrize(
    ("direction", "sizes", "every"), [(UP, (2, 20), UP_PERIOD), (DOWN, (20, 2), DOWN_PERIOD)]
)
def test_a_step_per_period_after_the_stabilization_is_allowed(direction, sizes, every) -> None:
    first = RULES[direction].stabilization_seconds
    assert found(direction, taken(way(direction, *sizes), first=first, every=every)) == []


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_step_before_the_stabilization_is_over_is_named(direction) -> None:
    rules = RULES[direction]
    sizes = way(direction, 8, rules.furthest(8))
    (fault,) = found(direction, taken(sizes, first=rules.stabilization_seconds - 1, every=1))
    assert fault.endswith(f"before {rules.stabilization_seconds:g} s of stabilization were over")


def test_two_steps_of_one_period_count_together() -> None:
    (fault,) = found(UP, taken([8, 12, 13], first=100, every=UP_PERIOD - 1))
    assert fault == "12 -> 13 at 219 s: further than 12 within 120 s"
    assert found(UP, taken([8, 10, 12], first=100, every=30)) == []


def test_a_step_that_is_too_far_is_named() -> None:
    assert found(UP, taken([2, 4], first=60, every=1)) == [
        "2 -> 4 at 60 s: further than 3 within 120 s"
    ]
    assert found(DOWN, taken([20, 14], first=300, every=1)) == [
        "20 -> 14 at 300 s: further than 15 within 300 s"
    ]


def test_a_step_against_the_load_is_named() -> None:
    (fault,) = found(UP, taken([5, 4], first=400, every=1))
    assert fault == "5 -> 4 at 400 s: against the load"


def test_steps_that_were_noticed_late_are_not_taken_for_early_ones() -> None:
    made = taken([2, 3, 5], first=52, every=UP_PERIOD - 8)
    assert len(found(UP, made)) == 2
    assert found(UP, made, late_seconds=10) == []


@given(st.lists(st.integers(0, 20), max_size=30))
def test_steps_lead_from_the_first_size_to_the_last_one(sizes) -> None:
    made = steps([(float(at), size) for at, size in enumerate(sizes)])
    assert all(step.before != step.after for step in made)
    assert sum(step.after - step.before for step in made) == (sizes[-1] - sizes[0] if sizes else 0)
    assert all(one.after == next_one.before for one, next_one in pairwise(made))


def test_rules_of_another_form_are_refused() -> None:
    pods = [{"type": "Pods", "value": 4, "periodSeconds": 60}]
    behavior = {UP: {"stabilizationWindowSeconds": 0, "policies": pods}}
    with pytest.raises(ValueError, match="scaleUp: one policy of type Percent"):
        Rules.of({"spec": {"behavior": behavior}}, UP)
