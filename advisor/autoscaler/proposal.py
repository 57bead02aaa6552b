"""What one metric asks for, with all that led to it."""

from dataclasses import dataclass
from enum import StrEnum

from advisor.autoscaler.controller import Tolerance
from advisor.autoscaler.grouping import Groups


class Verdict(StrEnum):
    """How the replicas follow from the ratio; the text is for people."""

    WITHIN = "the ratio is within the tolerance: the replicas stay"
    SCALED = "the ratio times the pods that count, rounded up"
    REVERSED = "with missing and pending pods counted in, nothing is left of the change"
    FAILED = "the metric cannot be used"


class Aim(StrEnum):
    """What the target is a target of."""

    AVERAGE = "average value"
    TOTAL = "value"
    SHARED = "value per replica"
    UTILIZATION = "average utilization of the requests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The replicas that one metric asks for: ``replicas``, or else ``fault``.

    Attributes:
        metric: which, as the controller names it.
        target: in thousandths; in percent for utilization.
        usage: what the controller compares with the target, in the same unit.
        ratio: usage to target.
        assumed_ratio: the ratio again, with assumed values for missing and pending pods.
        pods: by what the ratio is multiplied; None where it is not.
        groups: of metrics of pods.
        sources: how many values were read.
    """

    metric: str
    verdict: Verdict
    aim: Aim | None = None
    replicas: int | None = None
    fault: str = ""
    target: int | None = None
    usage: int | None = None
    ratio: float | None = None
    assumed_ratio: float | None = None
    pods: int | None = None
    tolerance: Tolerance | None = None
    groups: Groups | None = None
    sources: int = 0
