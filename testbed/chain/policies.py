"""What the policies of an HPA allow, to be held against the course that it took.

One policy of a percentage in each direction is understood, which is what the users' manifest has.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Self

UP: Final = "scaleUp"
DOWN: Final = "scaleDown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change of the replicas that are wanted, when it was noticed."""

    at_seconds: float
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One direction of an HPA's ``behavior``."""

    direction: str
    stabilization_seconds: float
    percent: float
    period_seconds: float

    @classmethod
    def of(cls, hpa: Mapping[str, Any], direction: str) -> Self:
        """Return the rules of a manifest.

        Raises:
            ValueError: they have another form than one policy of a percentage.
        """
        rules = hpa["spec"]["behavior"][direction]
        match rules["policies"]:
            case [{"type": "Percent", "value": percent, "periodSeconds": period}]:
                return cls(
                    direction=direction,
                    stabilization_seconds=rules["stabilizationWindowSeconds"],
                    percent=percent,
                    period_seconds=period,
                )
            case other:
                raise ValueError(f"{direction}: one policy of type Percent is known, not {other}")

    def furthest(self, replicas: int) -> int:
        """Return how far replicas may be changed within one period, as kube-controller-manager rounds."""
        if self.direction == UP:
            return math.ceil(replicas * (100 + self.percent) / 100)
        return int(replicas * (100 - self.percent) / 100)


def steps(wanted: Sequence[tuple[float, int]]) -> list[Step]:
    """Return the changes in a series of times and replicas wanted."""
    return [
        Step(at_seconds=at, before=before, after=after)
        for (_, before), (at, after) in pairwise(wanted)
        if before != after
    ]


def violations(
    taken: Sequence[Step], rules: Rules, *, since_seconds: float, late_seconds: float
) -> Iterator[str]:
    """Yield what steps in one direction did that its rules forbid.

    Args:
        taken: all steps since the load changed; in the other direction none is expected.
        rules: of the direction.
        since_seconds: before the load changed, when the HPA may have looked last.
        late_seconds: by how much a step may have been noticed later than another one.
    """
    for number, step in enumerate(taken):
        told = f"{step.before} -> {step.after} at {step.at_seconds:.0f} s"
        if (step.after > step.before) != (rules.direction == UP):
            yield f"{told}: against the load"
            continue
        waited = step.at_seconds - since_seconds + late_seconds
        if waited < rules.stabilization_seconds:
            yield f"{told}: before {rules.stabilization_seconds:g} s of stabilization were over"
        begun = step.at_seconds - rules.period_seconds + late_seconds
        first = next(one for one in taken[: number + 1] if one.at_seconds > begun)
        limit = rules.furthest(first.before)
        if (step.after > limit) if rules.direction == UP else (step.after < limit):
            yield f"{told}: further than {limit} within {rules.period_seconds:g} s"
