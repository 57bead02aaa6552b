"""Whose cordon it is, and what may be done about it: what is wished meets what humans decided.

Pure. ``spec.unschedulable`` is one boolean that anybody sets and nobody signs, so a cordon of ours
carries a mark, written and removed with it in one patch; between the two there is no state. From
the mark and the boolean follows all the rest:

| mark | unschedulable | whose | what is done |
|---|---|---|---|
| no  | no  | nobody's | cordoned when that is wished |
| no  | yes | somebody else's, or a human took ours over | nothing, ever |
| yes | yes | ours | released when that is wished |
| yes | no  | a human ended ours | given up: the mark goes, the faults of then are no reason again |

A human who cordons a node that we have cordoned cannot be seen; ``hold`` is there to say it.
Whether the cluster can spare the node is not decided here, nor is anything written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from health.checks.model import Action
from health.decision import Decision, Fault, Wish
from health.names import CORDONED, HOLD

CONTROL_PLANE: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNow:
    """What is known of the Node at this moment, as just read from the API server.

    Attributes:
        unschedulable: it is cordoned, by whomever.
        tainted: it carries our taint.
    """

    unschedulable: bool = False
    tainted: bool = False
    annotations: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def marked(self) -> bool:
        """Tell whether it carries our mark, whatever the mark says."""
        return CORDONED in self.annotations

    @property
    def ours(self) -> bool:
        """Tell whether it is cordoned by us."""
        return self.marked and self.unschedulable

    @property
    def held(self) -> bool:
        """Tell whether a human wants it left as it is."""
        return self.annotations.get(HOLD, "").strip().lower() == "true"

    @property
    def control_plane(self) -> bool:
        """Tell whether the cluster's own control plane runs there."""
        return any(label in self.labels for label in CONTROL_PLANE)


class Why(StrEnum):
    """Why nothing is done; the value is a label."""

    HEALTHY = "healthy"
    UNCERTAIN = "uncertain"
    CORDONED = "cordoned"
    PREEXISTING = "preexisting"
    HELD = "held"
    CONTROL_PLANE = "control_plane"
    IGNORED = "ignored"
    READ_ONLY = "read_only"

    @property
    def sentence(self) -> str:
        """Return it in words, for logs, events and the command line."""
        return _SENTENCES[self]


_SENTENCES: Final = {
    Why.HEALTHY: "nothing speaks against the node, and no cordon of ours is on it",
    Why.UNCERTAIN: "there is not enough evidence to change anything",
    Why.CORDONED: "the node is cordoned by us, and the reason is still there",
    Why.PREEXISTING: "somebody else had cordoned the node; that cordon is left to them",
    Why.HELD: f"the annotation {HOLD} asks to leave the node as it is",
    Why.CONTROL_PLANE: "nodes of the control plane are not cordoned unless that is allowed",
    Why.IGNORED: "a human has uncordoned the node with these faults on it",
    Why.READ_ONLY: "the record on the node is of a newer version; this one only watches",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """Leave the node as it is."""

    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon:
    """Make it unschedulable and put our mark on it, in one patch.

    Attributes:
        grounds: the faults that ask for it, at least one, the strongest first.
    """

    grounds: tuple[Fault, ...]

    @property
    def mark(self) -> str:
        """Return the value of the mark: the fingerprint of the strongest fault."""
        return self.grounds[0].fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordon:
    """Make it schedulable and take our mark off, in one patch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """Take our mark off and touch nothing else: a human has ended our cordon.

    Attributes:
        ignored: fingerprints of the faults that are no reason to cordon again. To be told to the
            engine first (``Engine.ignore``), so that its record goes into the same patch.
    """

    ignored: tuple[str, ...]


Step = Nothing | Cordon | Uncordon | GiveUp


def decide(node: NodeNow, decision: Decision, *, allow_control_plane: bool = False) -> Step:
    """Return what to do with the node, given what became of it since the last time.

    To be asked with a node that was read just now, and again with a fresh one after a conflict.
    """
    if decision.read_only:
        return Nothing(why=Why.READ_ONLY)
    if (node.marked or node.tainted) and not node.unschedulable:
        return GiveUp(ignored=_seen(decision))
    if decision.wish is Wish.CORDON:
        return _cordon(node, decision, allow_control_plane=allow_control_plane)
    if decision.wish is Wish.RELEASE:
        return _release(node)
    return Nothing(why=Why.UNCERTAIN)


def _cordon(node: NodeNow, decision: Decision, *, allow_control_plane: bool) -> Step:
    grounds = tuple(
        fault
        for fault in decision.faults
        if fault.action is Action.CORDON and fault.fingerprint not in decision.ignored
    )
    if node.unschedulable:
        return Nothing(why=Why.CORDONED if node.marked else Why.PREEXISTING)
    if not grounds:
        return Nothing(why=Why.IGNORED)
    if node.held:
        return Nothing(why=Why.HELD)
    if node.control_plane and not allow_control_plane:
        return Nothing(why=Why.CONTROL_PLANE)
    return Cordon(grounds=grounds)


def _release(node: NodeNow) -> Step:
    if not node.ours:
        return Nothing(why=Why.PREEXISTING if node.unschedulable else Why.HEALTHY)
    return Nothing(why=Why.HELD) if node.held else Uncordon()


def _seen(decision: Decision) -> tuple[str, ...]:
    """Return the faults that whoever uncordoned can have known of.

    One that asks for a cordon only since this decision is not among them.
    """
    new = {
        (change.fault.fingerprint, change.fault.action, change.fault.reason)
        for change in decision.changes
        if change.raised
    }
    return tuple(
        fault.fingerprint
        for fault in decision.faults
        if fault.action is Action.CORDON
        and (fault.fingerprint, fault.action, fault.reason) not in new
    )
