"""What each pod asks of the scheduler, as far as it is about devices.

Most changes of a pod change none of it, and cost a comparison.
"""

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final

import msgspec

from adapter.cluster.requests import of_pod
from slicewatch.kube.objects import Pod, PodCondition

NEVER: Final = "Never"
"""The preemption policy of a pod, or a priority class, that evicts nobody."""

# A dot or a comma that follows is the sentence's, not the resource's.
_INSUFFICIENT: Final = re.compile(r"\bInsufficient (nvidia\.com/\S*[A-Za-z0-9])")


class Reason(StrEnum):
    """Why a pod has no node. The values are Kubernetes' own words where it has one."""

    INSUFFICIENT = "InsufficientDevices"
    UNSCHEDULABLE = "Unschedulable"
    GATED = "SchedulingGated"
    FAILED = "SchedulerError"
    NOT_YET = "NotScheduledYet"
    OTHER = "Other"


_WORDS: Final = {str(r): r for r in (Reason.UNSCHEDULABLE, Reason.GATED, Reason.FAILED)}


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod that has not ended asks for.

    Attributes:
        node: empty while it has none.
        devices: pairs of resource and number.
        claims: it has resource claims; of what kind they are, it does not say.
        selector: pairs of label and value that its node must have.
        preempts: pods of a lower priority may be evicted for it.
        created_at: in seconds since the epoch, by the API server's clock; None if unknown.
        reason: why it has no node; ``lacking`` names the resources that are short.
    """

    namespace: str
    name: str
    node: str
    phase: str
    devices: tuple[tuple[str, int], ...]
    claims: bool
    selector: tuple[tuple[str, str], ...]
    priority_class: str
    priority: int
    preempts: bool
    created_at: float | None
    reason: Reason
    lacking: tuple[str, ...]

    @property
    def waiting(self) -> bool:
        """Tell whether it asks for devices and has no node."""
        return not self.node and bool(self.devices)

    @property
    def schedulable(self) -> bool:
        """Tell whether the scheduler may give it a node if there is one: no gate holds it back."""
        return self.waiting and self.reason is not Reason.GATED

    def reason_of(self, resource: str) -> Reason:
        """Return why it waits, as far as one of its resources is concerned."""
        return Reason.INSUFFICIENT if resource in self.lacking else self.reason


def ask_of(pod: Pod) -> Ask | None:
    """Return what a pod asks for; None if that is nothing, or it has ended."""
    devices = tuple(sorted((r, n) for r, n in of_pod(pod).items() if n))
    claims = bool(pod.spec.resource_claims)
    if pod.finished or not (devices or claims):
        return None
    spec, created = pod.spec, pod.metadata.creation_timestamp
    reason, lacking = _why(pod.status.conditions)
    return Ask(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        node=spec.node_name,
        phase=pod.status.phase or "Unknown",
        devices=devices,
        claims=claims,
        selector=tuple(sorted(spec.node_selector.items())),
        priority_class=spec.priority_class_name,
        priority=spec.priority,
        preempts=spec.preemption_policy != NEVER,
        created_at=None if created is None else created.timestamp(),
        reason=reason,
        lacking=lacking,
    )


def _why(conditions: Iterable[PodCondition]) -> tuple[Reason, tuple[str, ...]]:
    """Return what the scheduler last said; what it says of preemption repeats it."""
    for condition in conditions:
        said = condition.message.partition(" preemption:")[0]
        reason = _WORDS.get(condition.reason, Reason.OTHER)
        return reason, tuple(sorted(set(_INSUFFICIENT.findall(said))))
    return Reason.NOT_YET, ()


Listener = Callable[[Ask | None, Ask | None], None]


class Asks:
    """What all pods ask for; ``changed`` is the listener of a cache of pods.

    Attributes:
        waiting: those that ask for devices and have no node, by namespace and name.
    """

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = listeners
        self._asks: dict[tuple[str, str], Ask] = {}
        self.waiting: dict[tuple[str, str], Ask] = {}

    def changed(self, old: Pod | None, new: Pod | None) -> None:
        """Apply one change; None is absence."""
        pod = new or old
        if pod is None:
            return
        before = self._asks.pop(pod.key, None)
        after = None if new is None else ask_of(new)
        if after is not None:
            self._asks[pod.key] = after
        if before == after:
            return
        self.waiting.pop(pod.key, None)
        if after is not None and after.waiting:
            self.waiting[pod.key] = after
        for listener in self._listeners:
            listener(before, after)
