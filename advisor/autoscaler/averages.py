"""Metrics of each pod: their mean against a target, careful about pods without a value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from advisor.autoscaler.arithmetic import quotient, replicas
from advisor.autoscaler.grouping import Groups
from advisor.autoscaler.proposal import Aim, Proposal, Verdict
from advisor.autoscaler.readings import Sample
from slicewatch.kube.autoscaling import ScaledPod
from slicewatch.kube.quantity import thousandths


class MetricError(ValueError):
    """No replicas follow from a metric; the message says why."""


class Gauge(Protocol):
    """How values are held against the target."""

    @property
    def aim(self) -> Aim:
        """What the target is a target of."""
        ...

    @property
    def target(self) -> int:
        """The target, in the unit of the usage."""
        ...

    def ratio(self, values: Mapping[str, int]) -> tuple[float, int]:
        """Return the ratio to the target, and the usage that it was made of.

        Raises:
            MetricError: there is none.
        """
        ...

    def at_target(self, pod: str) -> int:
        """Return the value of a pod that is exactly as busy as it should be."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainGauge:
    """The mean of the values against a value, both in thousandths."""

    target: int
    aim: Aim = Aim.AVERAGE

    def ratio(self, values: Mapping[str, int]) -> tuple[float, int]:
        """See ``Gauge.ratio``."""
        usage = quotient(sum(values.values()), len(values))
        return usage / self.target, usage

    def at_target(self, pod: str) -> int:  # noqa: ARG002 - the same for all pods
        """See ``Gauge.at_target``."""
        return self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilizationGauge:
    """The sum of the values in percent of the sum of the requests."""

    target: int
    requests: Mapping[str, int]
    aim: Aim = Aim.UTILIZATION

    def ratio(self, values: Mapping[str, int]) -> tuple[float, int]:
        """See ``Gauge.ratio``."""
        known = values.keys() & self.requests.keys()
        requested = sum(self.requests[name] for name in known)
        if requested == 0:
            raise MetricError("none of the values is of a pod with a request")
        percent = quotient(sum(values[name] for name in known) * 100, requested)
        return percent / self.target, percent

    def at_target(self, pod: str) -> int:
        """See ``Gauge.at_target``."""
        return self.requests[pod] * max(100, self.target) // 100


def requests(pods: Sequence[ScaledPod], resource: str, container: str = "") -> dict[str, int]:
    """Return what each pod requests, in thousandths, sidecars included.

    Raises:
        MetricError: a container has no request, or a pod not that container.
    """
    return {pod.metadata.name: _request(pod, resource, container) for pod in pods}


def _request(pod: ScaledPod, resource: str, container: str) -> int:
    sidecars = (one for one in pod.spec.init_containers if one.restart_policy == "Always")
    chosen = [c for c in (*pod.spec.containers, *sidecars) if container in {"", c.name}]
    if container and not chosen:
        raise MetricError(f"pod {pod.metadata.name} has no container {container}")
    lacking = next((c.name for c in chosen if resource not in c.resources.requests), None)
    if lacking is not None:
        raise MetricError(
            f"container {lacking} of pod {pod.metadata.name} has no request for {resource}"
        )
    return sum(thousandths(c.resources.requests[resource]) for c in chosen)


def propose(
    draft: Proposal, gauge: Gauge, groups: Groups, samples: Mapping[str, Sample], current: int
) -> Proposal:
    """Return the draft completed by the replicas that the pods' values ask for.

    Raises:
        MetricError: no pod that counts has a value.
    """
    values = groups.keeps(samples)
    if not values:
        raise MetricError(
            "none of the pods that count has a value (pods that are pending, failed or being "
            "deleted do not count)"
        )
    ratio, usage = gauge.ratio(values)
    begun = replace(
        draft, aim=gauge.aim, target=gauge.target, usage=usage, ratio=ratio, groups=groups
    )
    pending = groups.unready if ratio > 1 else ()
    if pending or groups.missing:
        return _assuming(begun, gauge, values | _assumed(gauge, groups, ratio), current)
    if _holds(begun, ratio):
        return replace(begun, replicas=current, verdict=Verdict.WITHIN)
    count = len(groups.counted)
    return replace(begun, replicas=replicas(ratio * count), pods=count)


def _assumed(gauge: Gauge, groups: Groups, ratio: float) -> dict[str, int]:
    """Return values for pods without one that make the change smaller."""
    if ratio > 1:
        return dict.fromkeys((*groups.missing, *groups.unready), 0)
    return {name: gauge.at_target(name) for name in groups.missing} if ratio < 1 else {}


def _assuming(begun: Proposal, gauge: Gauge, values: Mapping[str, int], current: int) -> Proposal:
    before = begun.ratio or 0.0
    ratio, _ = gauge.ratio(values)
    found = replace(begun, assumed_ratio=ratio)
    if _holds(begun, ratio):
        return replace(found, replicas=current, verdict=Verdict.WITHIN)
    wanted = replicas(ratio * len(values))
    crossed = (before < 1 < ratio) or (ratio < 1 < before)
    opposite = (ratio < 1 and wanted > current) or (ratio > 1 and wanted < current)
    if crossed or opposite:
        return replace(found, replicas=current, verdict=Verdict.REVERSED)
    return replace(found, replicas=wanted, pods=len(values))


def _holds(begun: Proposal, ratio: float) -> bool:
    return begun.tolerance is not None and begun.tolerance.holds(ratio)
