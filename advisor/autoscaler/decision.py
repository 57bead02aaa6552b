"""One round of the controller: which metric wins, and how many replicas it writes."""

from dataclasses import dataclass
from enum import StrEnum

from advisor.autoscaler.behavior import Memory, Restraint, restrain
from advisor.autoscaler.metrics import Situation, propose
from advisor.autoscaler.proposal import Proposal


class Course(StrEnum):
    """What kind of decision it is; the text is for people."""

    METRICS = "the metrics decide"
    DISABLED = "the target has spec.replicas 0, which turns the autoscaler off"
    ABOVE_MOST = "the replicas are above maxReplicas, which comes before any metric"
    BELOW_FEWEST = "the replicas are below minReplicas, which comes before any metric"
    UNREADABLE = "no metric can be used, so the replicas stay"
    UNSAFE = "a metric cannot be used and the others ask for fewer, so the replicas stay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The replicas that the controller writes, and why.

    Attributes:
        desired: replicas; the current ones where it changes nothing.
        proposals: one for each metric, in the order of the autoscaler. They are computed even
            where bounds or a failed metric come first.
        winner: index of the proposal that counts, the largest; None without a usable one.
        restraint: what behavior and bounds made of it; None where no metric decides.
    """

    course: Course
    current: int
    desired: int
    proposals: tuple[Proposal, ...]
    winner: int | None = None
    restraint: Restraint | None = None

    @property
    def works(self) -> bool:
        """Tell whether the autoscaler can scale by its metrics as things are."""
        return self.course not in {Course.DISABLED, Course.UNREADABLE, Course.UNSAFE}


def decide(seen: Situation, memory: Memory | None = None) -> Decision:
    """Return what the controller does.

    Args:
        seen: what it sees.
        memory: of its last rounds; an empty one if it is not known.
    """
    metrics = zip(seen.autoscaler.spec.metrics, seen.readings, strict=True)
    proposals = tuple(propose(spec, readings, seen) for spec, readings in metrics)
    current = seen.scale.spec.replicas
    winner = _winner(proposals)
    course, desired = _course(seen, proposals, winner)
    if course is not Course.METRICS or winner is None:
        return Decision(
            course=course, current=current, desired=desired, proposals=proposals, winner=winner
        )
    restraint = restrain(
        seen.autoscaler,
        current=current,
        # The controller takes a negative number, which overflows make, for none at all.
        recommended=max(proposals[winner].replicas or 0, 0),
        controller=seen.controller,
        memory=memory,
    )
    return Decision(
        course=course,
        current=current,
        desired=restraint.desired,
        proposals=proposals,
        winner=winner,
        restraint=restraint,
    )


def _winner(proposals: tuple[Proposal, ...]) -> int | None:
    """Return the index of the largest proposal, the first of several."""
    best: int | None = None
    replicas = 0
    for index, one in enumerate(proposals):
        if one.replicas is not None and (best is None or replicas == 0 or one.replicas > replicas):
            best, replicas = index, one.replicas
    return best


def _course(
    seen: Situation, proposals: tuple[Proposal, ...], winner: int | None
) -> tuple[Course, int]:
    current = seen.scale.spec.replicas
    fewest, most = seen.autoscaler.min_replicas, seen.autoscaler.spec.max_replicas
    if current == 0 and fewest != 0:
        return Course.DISABLED, 0
    if current > most:
        return Course.ABOVE_MOST, most
    if current < fewest:
        return Course.BELOW_FEWEST, fewest
    if winner is None:
        return Course.UNREADABLE, current
    failed = any(one.replicas is None for one in proposals)
    if failed and (proposals[winner].replicas or 0) < current:
        return Course.UNSAFE, current
    return Course.METRICS, current
