"""From a metric of an autoscaler and what was read for it to the replicas that it asks for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from advisor.autoscaler import averages, totals
from advisor.autoscaler.averages import Gauge, MetricError, PlainGauge, UtilizationGauge
from advisor.autoscaler.controller import Controller, Tolerance, tolerance
from advisor.autoscaler.grouping import group
from advisor.autoscaler.proposal import Proposal, Verdict
from advisor.autoscaler.readings import Readings
from slicewatch.kube.autoscaling import (
    HorizontalPodAutoscaler,
    MetricSpec,
    MetricTarget,
    ResourceMetric,
    Scale,
    ScaledPod,
)
from slicewatch.kube.quantity import Quantity, thousandths


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the controller sees in one of its rounds.

    Attributes:
        pods: that the scale's selector matches.
        readings: one for each metric of the autoscaler.
        now: with a time zone.
    """

    autoscaler: HorizontalPodAutoscaler
    scale: Scale
    pods: Sequence[ScaledPod]
    readings: Sequence[Readings]
    now: datetime
    controller: Controller = field(default_factory=Controller)


def title(spec: MetricSpec) -> str:
    """Return what people call a metric."""
    if spec.pods is not None:
        return f"pods metric {spec.pods.metric.name}"
    if spec.object is not None:
        whose = spec.object.described_object
        return f"{whose.kind} {whose.name} metric {spec.object.metric.name}"
    if spec.external is not None:
        return f"external metric {spec.external.metric.name}"
    if (resource := spec.resource or spec.container_resource) is not None:
        return f"{resource.name} of {resource.container or 'the pods'}"
    return f"metric of unknown type {spec.type}"


def propose(spec: MetricSpec, readings: Readings, seen: Situation) -> Proposal:
    """Return what one metric asks for; its ``fault`` says why if it asks for nothing."""
    draft = Proposal(
        metric=title(spec),
        verdict=Verdict.SCALED,
        tolerance=tolerance(seen.autoscaler, seen.controller),
        sources=len(readings.by_pod) or len(readings.values),
    )
    if readings.fault:
        return replace(draft, verdict=Verdict.FAILED, fault=readings.fault)
    try:
        return _proposed(draft, spec, readings, seen)
    except ValueError as error:  # Of the metric, or a quantity that is none.
        return replace(draft, verdict=Verdict.FAILED, fault=str(error))


def _proposed(draft: Proposal, spec: MetricSpec, readings: Readings, seen: Situation) -> Proposal:
    if spec.pods is not None:
        target = _target(spec.pods.target.average_value, "averageValue")
        return _of_pods(draft, lambda: PlainGauge(target=target), readings, seen)
    if spec.object is not None:
        return _of_total(draft, spec.object.target, readings, seen)
    if spec.external is not None:
        return _of_total(draft, spec.external.target, readings, seen)
    if (resource := spec.resource or spec.container_resource) is not None:
        return _of_pods(
            draft, lambda: _resource_gauge(resource, seen), readings, seen, resource.name == "cpu"
        )
    raise MetricError(f"metrics of type {spec.type} are not known")


def _of_pods(
    draft: Proposal,
    gauge: Callable[[], Gauge],
    readings: Readings,
    seen: Situation,
    cpu: bool = False,
) -> Proposal:
    if not seen.pods:
        raise MetricError("the selector matches no pods")
    groups = group(seen.pods, readings.by_pod, cpu=cpu, now=seen.now, controller=seen.controller)
    sorted_out = replace(draft, groups=groups)
    try:
        return averages.propose(
            sorted_out, gauge(), groups, readings.by_pod, seen.scale.spec.replicas
        )
    except ValueError as error:
        return replace(sorted_out, verdict=Verdict.FAILED, fault=str(error))


def _resource_gauge(resource: ResourceMetric, seen: Situation) -> Gauge:
    target = resource.target
    if target.average_value is not None:
        return PlainGauge(target=_target(target.average_value, "averageValue"))
    if target.average_utilization is None:
        raise MetricError("its target has neither averageUtilization nor averageValue")
    asked = averages.requests(seen.pods, resource.name, resource.container)
    return UtilizationGauge(target=target.average_utilization, requests=asked)


def _of_total(
    draft: Proposal, target: MetricTarget, readings: Readings, seen: Situation
) -> Proposal:
    within: Tolerance = tolerance(seen.autoscaler, seen.controller)
    if target.average_value is not None:
        each = _target(target.average_value, "averageValue")
        existing = seen.scale.status.replicas
        return totals.propose_per_replica(draft, readings.values, each, within, existing)
    if target.value is not None:
        whole = _target(target.value, "value")
        current = seen.scale.spec.replicas
        return totals.propose_whole(draft, readings.values, whole, within, seen.pods, current)
    raise MetricError("its target has neither value nor averageValue")


def _target(quantity: Quantity | None, name: str) -> int:
    if quantity is None:
        raise MetricError(f"its target has no {name}")
    found = thousandths(quantity)
    if found <= 0:
        raise MetricError(f"its target {name} {quantity} must be more than zero")
    return found
