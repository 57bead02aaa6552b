"""What pods request, who waits for it, and what those who wait could take from others. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from adapter.cluster.asks import NEVER, Ask
from adapter.cluster.tally import Tally
from slicewatch.catalog.readings.cluster import Pending, Preemption, Requested
from slicewatch.kube.objects import PriorityClass

# Of the classes that Kubernetes itself creates, for what a cluster cannot run without.
_SYSTEM: Final = "system-"


class Demand:
    """Sums over the pods of the cluster; ``changed`` is a listener of ``Asks``.

    Attributes:
        held: devices of pods that have a node, by resource and priority.
    """

    def __init__(self) -> None:
        self._devices: Tally[tuple[str, ...]] = Tally()
        self._claiming: Tally[tuple[str, ...]] = Tally()
        self.held: Tally[tuple[str, int]] = Tally()

    def changed(self, old: Ask | None, new: Ask | None) -> None:
        """Apply one change; None is absence."""
        self._devices.replace(_requests(old), _requests(new))
        self._claiming.replace(_claims(old), _claims(new))
        self.held.replace(_holds(old), _holds(new))

    def requested(self) -> Requested:
        """Return what pods request."""
        return Requested(devices=dict(self._devices.sums), claiming_pods=dict(self._claiming.sums))


def _requests(ask: Ask | None) -> dict[tuple[str, ...], int]:
    if ask is None:
        return {}
    return {
        (ask.namespace, resource, ask.phase, ask.priority_class): number
        for resource, number in ask.devices
    }


def _claims(ask: Ask | None) -> dict[tuple[str, ...], int]:
    if ask is None or not ask.claims:
        return {}
    return {(ask.namespace, ask.phase, ask.priority_class): 1}


def _holds(ask: Ask | None) -> dict[tuple[str, int], int]:
    if ask is None or not ask.node:
        return {}
    return {(resource, ask.priority): number for resource, number in ask.devices}


def pending(waiting: Iterable[Ask], now: float) -> Pending:
    """Return who waits, for what, why and since when.

    Args:
        waiting: pods that ask for devices and have no node.
        now: in seconds since the epoch. Clocks that differ make an age wrong by as much, and one
            that would be negative is 0.
    """
    pods: Counter[tuple[str, ...]] = Counter()
    devices: Counter[tuple[str, ...]] = Counter()
    longest: dict[tuple[str, ...], float] = {}
    for ask in waiting:
        for resource, number in ask.devices:
            key = (ask.namespace, resource, ask.priority_class, str(ask.reason_of(resource)))
            pods[key] += 1
            devices[key] += number
            if ask.created_at is not None:
                whose = (ask.namespace, resource)
                longest[whose] = max(longest.get(whose, 0.0), now - ask.created_at)
    return Pending(pods=dict(pods), devices=dict(devices), longest_seconds=longest)


def preemption(
    held: Mapping[tuple[str, int], int],
    waiting: Iterable[Ask],
    classes: Iterable[PriorityClass],
) -> Preemption:
    """Return what may be taken from those who hold it.

    Args:
        held: devices by resource and the priority of the pod.
        waiting: pods that ask for devices and have no node.
        classes: of which the highest that may preempt, Kubernetes' own aside, is the measure.
    """
    highest = max((c.value for c in classes if _preempts(c)), default=None)
    strongest: dict[str, int] = {}
    for ask in waiting:
        if ask.schedulable and ask.preempts:
            for resource, _ in ask.devices:
                strongest[resource] = max(strongest.get(resource, ask.priority), ask.priority)
    totals: Counter[str] = Counter()
    exposed: Counter[str] = Counter()
    preemptible: Counter[str] = Counter()
    for (resource, priority), number in held.items():
        totals[resource] += number
        exposed[resource] += number * (priority < strongest.get(resource, priority))
        preemptible[resource] += number * (highest is not None and priority < highest)
    ratios: dict[tuple[str, ...], float] = {}
    if highest is not None:
        ratios = {(r,): preemptible[r] / total for r, total in totals.items()}
    return Preemption(
        exposed={(resource,): number for resource, number in exposed.items()},
        preemptible_ratio=ratios,
    )


def _preempts(priority_class: PriorityClass) -> bool:
    own = not priority_class.metadata.name.startswith(_SYSTEM)
    return own and priority_class.preemption_policy != NEVER
