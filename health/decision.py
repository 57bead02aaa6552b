"""What the engine says after a poll: which faults there are, and what it would have done about them.

A wish, not a deed: who owns the cordon, what a human decided and what the budget of the cluster
allows is weighed after it, against the node as it is at that moment.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from health.case import Since
from health.checks.model import Action, CheckId, Condition
from slicewatch.wire.evidence import Holder


class State(StrEnum):
    """How a check stands with a GPU; the value is a label."""

    HEALTHY = "healthy"
    SUSPECT = "suspect"
    UNHEALTHY = "unhealthy"
    RECOVERING = "recovering"
    UNKNOWN = "unknown"


class Wish(StrEnum):
    """What should become of the node. KEEP: as it is, for want of evidence."""

    CORDON = "cordon"
    RELEASE = "release"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A check that has found something, long enough.

    Attributes:
        gpu: uuid; empty for one of the node.
        index: NVML's, for people; None for one of the node.
        since: when it was raised.
        raises: how often it was raised within a day.
    """

    check: CheckId
    reason: str
    message: str
    action: Action
    since: Since
    gpu: str = ""
    index: int | None = None
    pci_bus_id: str = ""
    raises: int = 1

    @property
    def fingerprint(self) -> str:
        """Return what tells this fault from any other one, also of another time.

        A human who uncordons a node says that this one is no reason; the next one may be.
        """
        return f"{self.check}/{self.gpu or 'node'}/{self.since.at_seconds:.0f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCondition:
    """One of our conditions as it should be.

    Attributes:
        present: whether there is the problem; None for not known.
        message: at most 1,024 bytes; the same as long as nothing has changed.
    """

    present: bool | None
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A fault that was raised or is over, to be said in an event.

    Attributes:
        holders: the pods that held the GPU.
    """

    fault: Fault
    raised: bool
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """All that follows from what is known at one moment.

    Attributes:
        faults: those that there are, the strongest first.
        states: of each check and GPU (uuid, or empty for the node) that was judged.
        conditions: ours; one that is missing is to be left as it is, for nothing is known yet.
        wish: what should become of the node.
        changes: since the decision before.
        ignored: fingerprints of the faults that a human has decided are no reason to cordon.
        record: what has to be written to the node so that a restart changes nothing; empty while
            nothing may be written, since what the node has is not known or not understood.
        read_only: why nothing of the node may be touched, conditions excepted; empty usually.
        next_due_seconds: after which time to decide anew even if nothing is heard.
    """

    faults: tuple[Fault, ...] = ()
    states: Mapping[tuple[CheckId, str], State] = field(
        default_factory=lambda: MappingProxyType({})
    )
    conditions: Mapping[Condition, NodeCondition] = field(
        default_factory=lambda: MappingProxyType({})
    )
    wish: Wish = Wish.KEEP
    changes: tuple[Change, ...] = ()
    ignored: frozenset[str] = frozenset()
    record: str = ""
    read_only: str = ""
    next_due_seconds: float
