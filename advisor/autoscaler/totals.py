"""Metrics of an object or of none: one total against a target, whole or per replica."""

from collections.abc import Sequence
from dataclasses import replace

from advisor.autoscaler.arithmetic import capped_replicas, replicas, total
from advisor.autoscaler.averages import MetricError
from advisor.autoscaler.controller import Tolerance
from advisor.autoscaler.grouping import ready_count
from advisor.autoscaler.proposal import Aim, Proposal, Verdict
from slicewatch.kube.autoscaling import ScaledPod


def propose_whole(
    draft: Proposal,
    values: tuple[int, ...],
    target: int,
    tolerance: Tolerance,
    pods: Sequence[ScaledPod],
    current: int,
) -> Proposal:
    """Return the draft completed: the total over the target, times the ready pods.

    Raises:
        MetricError: the selector matches no pods.
    """
    usage = total(values)
    ratio = usage / target
    begun = replace(draft, aim=Aim.TOTAL, target=target, usage=usage, ratio=ratio)
    if current == 0:
        return replace(begun, replicas=replicas(ratio))
    if tolerance.holds(ratio):
        return replace(begun, replicas=current, verdict=Verdict.WITHIN)
    if not pods:
        raise MetricError("the selector matches no pods")
    ready = ready_count(pods)
    return replace(begun, replicas=capped_replicas(ratio * ready), pods=ready)


def propose_per_replica(
    draft: Proposal,
    values: tuple[int, ...],
    target: int,
    tolerance: Tolerance,
    existing: int,
) -> Proposal:
    """Return the draft completed: as many replicas as share the total at the target each.

    Args:
        draft: what is known before.
        values: in thousandths.
        target: of each replica, in thousandths.
        tolerance: around the target.
        existing: replicas that there are, by the scale's status.
    """
    usage = total(values)
    begun = replace(draft, aim=Aim.SHARED, target=target)
    if existing:
        ratio = usage / (target * existing)
        begun = replace(begun, usage=-(-usage // existing), ratio=ratio)
        if tolerance.holds(ratio):
            return replace(begun, replicas=existing, verdict=Verdict.WITHIN)
    return replace(begun, replicas=capped_replicas(usage / target))
