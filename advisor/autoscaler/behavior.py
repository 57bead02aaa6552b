"""What restrains a change: stabilisation windows, rates, and the fewest and most replicas.

The controller remembers its recommendations and changes of the last minutes, and nobody else can
read that memory. With an empty one the result is what it comes to once the windows have passed.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from advisor.autoscaler.arithmetic import LARGEST_REPLICAS
from advisor.autoscaler.controller import Controller
from slicewatch.kube.autoscaling import HorizontalPodAutoscaler, ScalingPolicy, ScalingRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A recommendation, or a change of the replicas (always positive), some time ago."""

    replicas: int
    age_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the controller did in its last rounds."""

    recommended: tuple[Remembered, ...] = ()
    added: tuple[Remembered, ...] = ()
    removed: tuple[Remembered, ...] = ()


class Limit(StrEnum):
    """Which limit changed the recommendation; the names are those of the condition's reasons."""

    NONE = "DesiredWithinRange"
    SCALE_UP_RATE = "ScaleUpLimit"
    SCALE_DOWN_RATE = "ScaleDownLimit"
    MOST = "TooManyReplicas"
    FEWEST = "TooFewReplicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restraint:
    """A recommendation and what is left of it.

    Attributes:
        stabilized: after the recommendations of the windows.
        desired: after rates and bounds; what the controller writes into the scale.
        fewest, most: the bounds that held, rates included.
        up_window_seconds, down_window_seconds: of the recommendations.
    """

    recommended: int
    stabilized: int
    desired: int
    fewest: int
    most: int
    limit: Limit
    up_window_seconds: int
    down_window_seconds: int


# What the API server fills in where an autoscaler has a behavior that leaves it out.
_UP_POLICIES: Final = (
    ScalingPolicy(type="Pods", value=4, period_seconds=15),
    ScalingPolicy(type="Percent", value=100, period_seconds=15),
)
_DOWN_POLICIES: Final = (ScalingPolicy(type="Percent", value=100, period_seconds=15),)
# Without a behavior: the replicas may double, or become four.
_UP_FACTOR: Final = 2
_UP_LEAST: Final = 4


def restrain(
    autoscaler: HorizontalPodAutoscaler,
    *,
    current: int,
    recommended: int,
    controller: Controller,
    memory: Memory | None = None,
) -> Restraint:
    """Return what is left of a recommendation.

    Args:
        autoscaler: with its bounds and behavior.
        current: replicas of the scale's spec.
        recommended: the largest proposal.
        controller: its flags.
        memory: the controller's; an empty one if it is not known.
    """
    known = memory or Memory()
    up, down = _rules(autoscaler, controller)
    windows = (up.stabilization_window_seconds or 0, down.stabilization_window_seconds or 0)
    stabilized = _stabilized(current, recommended, windows, known)
    if autoscaler.spec.behavior is None:
        # The older rule: the highest recommendation counts, even above a lower one to scale up.
        stabilized = max([recommended, *_recent(known, windows[1])])
    fewest, most = autoscaler.min_replicas, autoscaler.spec.max_replicas
    too_few, too_many = Limit.FEWEST, Limit.MOST
    slowest, fastest = _rates(autoscaler, up, down, current, known)
    if stabilized > current and fastest < most:
        most, too_many = fastest, Limit.SCALE_UP_RATE
    if stabilized < current and slowest > fewest:
        fewest, too_few = slowest, Limit.SCALE_DOWN_RATE
    desired = min(max(stabilized, fewest), most)
    limit = too_few if desired > stabilized else too_many
    return Restraint(
        recommended=recommended,
        stabilized=stabilized,
        desired=desired,
        fewest=fewest,
        most=most,
        limit=Limit.NONE if desired == stabilized else limit,
        up_window_seconds=windows[0],
        down_window_seconds=windows[1],
    )


def _rules(
    autoscaler: HorizontalPodAutoscaler, controller: Controller
) -> tuple[ScalingRules, ScalingRules]:
    """Return the rules for up and down, with all defaults."""
    behavior = autoscaler.spec.behavior
    up = (behavior.scale_up if behavior else None) or ScalingRules()
    down = (behavior.scale_down if behavior else None) or ScalingRules()
    window = down.stabilization_window_seconds
    return (
        _complete(up, up.stabilization_window_seconds or 0, _UP_POLICIES),
        _complete(
            down,
            controller.downscale_stabilization_seconds if window is None else window,
            _DOWN_POLICIES,
        ),
    )


def _complete(
    rules: ScalingRules, window_seconds: int, policies: tuple[ScalingPolicy, ...]
) -> ScalingRules:
    return ScalingRules(
        stabilization_window_seconds=window_seconds,
        select_policy=rules.select_policy or "Max",
        policies=policies if rules.policies is None else rules.policies,
    )


def _stabilized(current: int, recommended: int, windows: tuple[int, int], memory: Memory) -> int:
    """Return the number nearest to ``current`` that all recent recommendations agree on."""
    lowest = min([recommended, *_recent(memory, windows[0])])
    highest = max([recommended, *_recent(memory, windows[1])])
    return min(max(current, lowest), highest)


def _recent(memory: Memory, window_seconds: int) -> list[int]:
    return [one.replicas for one in memory.recommended if one.age_seconds < window_seconds]


def _rates(
    autoscaler: HorizontalPodAutoscaler,
    up: ScalingRules,
    down: ScalingRules,
    current: int,
    memory: Memory,
) -> tuple[int, int]:
    """Return the fewest and the most replicas that the rates allow now."""
    if autoscaler.spec.behavior is None:
        return 0, max(_UP_FACTOR * current, _UP_LEAST)
    most = _select(up, (_raised(p, _at_start(p, current, memory)) for p in up.policies or ()),
                   current, largest=up.select_policy != "Min")  # fmt: skip
    fewest = _select(down, (_lowered(p, _at_start(p, current, memory)) for p in down.policies or ()),
                     current, largest=down.select_policy == "Min")  # fmt: skip
    return min(fewest, current), max(most, current)


def _select(rules: ScalingRules, allowed: Iterable[int], current: int, *, largest: bool) -> int:
    """Return the bound that the policies make together: the largest or the smallest of theirs."""
    if rules.select_policy == "Disabled":
        return current
    choose = max if largest else min
    return choose(allowed, default=0 if largest else LARGEST_REPLICAS)


def _at_start(policy: ScalingPolicy, current: int, memory: Memory) -> int:
    """Return how many replicas there were when the policy's period began."""

    def changed(events: Iterable[Remembered]) -> int:
        return sum(e.replicas for e in events if e.age_seconds < policy.period_seconds)

    return current - changed(memory.added) + changed(memory.removed)


def _raised(policy: ScalingPolicy, start: int) -> int:
    if policy.type == "Pods":
        return start + policy.value
    return math.ceil(start * (1 + policy.value / 100))


def _lowered(policy: ScalingPolicy, start: int) -> int:
    if policy.type == "Pods":
        return start - policy.value
    return int(start * (1 - policy.value / 100))
