"""Known reasons why an autoscaler does not do what its owner expects, with what to do about each.

A cause is declared once: a function from what was read and computed to sentences, none where it
does not apply.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from statistics import median
from typing import Final

from advisor.autoscaler.arithmetic import LARGEST_REPLICAS
from advisor.autoscaler.decision import Course, Decision
from advisor.autoscaler.proposal import Aim
from cli.explain.addresses import EXTERNAL, RESOURCE
from cli.explain.asking import Asked
from cli.explain.evidence import Evidence
from cli.explain.wording import counted, named
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Unit
from slicewatch.kube.autoscaling import MetricTarget
from slicewatch.kube.quantity import number

Cause = Callable[[Evidence, Decision], Iterator[str]]

SATURATED_PERCENT: Final = 98
# Metrics of others whose scale is known: DCGM's profiling fields are 0..1, its device fields 0..100.
_RATIOS: Final = re.compile(r"_ratio$|^DCGM_FI_PROF_.*_(ACTIVE|OCCUPANCY)$|_perc$", re.IGNORECASE)
_PERCENTS: Final = re.compile(r"^DCGM_FI_DEV_\w+_UTIL$", re.IGNORECASE)


def causes(evidence: Evidence, decision: Decision) -> tuple[str, ...]:
    """Return all sentences that apply, the most fundamental first."""
    return tuple(text for cause in _CAUSES for text in cause(evidence, decision))


def _turned_off(evidence: Evidence, decision: Decision) -> Iterator[str]:
    if decision.course is Course.DISABLED:
        target = evidence.autoscaler.spec.scale_target_ref
        least = max(evidence.autoscaler.min_replicas, 1)
        yield (
            f"{target.kind} {target.name} has spec.replicas=0, which turns its HPA off until "
            f"somebody sets it to 1 or more: kubectl scale {target.kind.lower()} {target.name} "
            f"--replicas={least} (where another controller, such as a Rollout that refers to the "
            "Deployment, keeps it at 0, let the HPA scale that one)"
        )


def _no_pods(evidence: Evidence, decision: Decision) -> Iterator[str]:  # noqa: ARG001 - a Cause
    if evidence.pods:
        return
    selector = evidence.scale.status.selector
    namespace = evidence.autoscaler.metadata.namespace
    yield (
        f"the selector {selector!r} of the scale matches no pods in namespace {namespace}: compare "
        "it with the labels of the pods"
    )
    if evidence.elsewhere:
        yield (
            f"pods with these labels are in namespace {', '.join(evidence.elsewhere)}: an HPA sees "
            "only its own namespace, so it must be there, beside what it scales"
        )


def _unregistered(evidence: Evidence, decision: Decision) -> Iterator[str]:  # noqa: ARG001 - a Cause
    for group, server in evidence.servers.items():
        if server.unavailable:
            yield (
                f"the APIService of {group} is not available ({server.unavailable}): requests do "
                f"not reach {server.server or 'its server'}; see kubectl describe apiservice"
            )
    for asked in evidence.asked:
        there = evidence.servers.get(asked.address.group)
        failed = asked.code is not None and asked.readings.fault and asked.tree is None
        if failed and there is not None and not there.unavailable:
            yield (
                f"{asked.address.group} is served by {there.server or 'kube-apiserver itself'}: if "
                "that is not the adapter that should know the metric, its APIService points to "
                "the wrong Service"
            )


def _half_blind(evidence: Evidence, decision: Decision) -> Iterator[str]:  # noqa: ARG001 - a Cause
    failed = [one.metric for one in decision.proposals if one.replicas is None]
    if failed and len(failed) < len(decision.proposals):
        yield (
            f"while {' and '.join(failed)} cannot be used, the HPA scales up by its other metrics, "
            "and never down"
        )


def _other_pods(evidence: Evidence, decision: Decision) -> Iterator[str]:  # noqa: ARG001 - a Cause
    for asked in evidence.asked:
        pods = asked.unselected
        if pods and asked.spec.pods is not None:
            yield (
                f"{asked.spec.pods.metric.name} exists on {counted(len(pods), 'pod')} that the HPA "
                f"does not scale ({named(pods)}): type Pods asks only for the pods of the scale target; to scale "
                "on the metric of others use type Object or External"
            )


def _succeeded(evidence: Evidence, decision: Decision) -> Iterator[str]:
    missing = {n for p in decision.proposals if p.groups for n in p.groups.missing}
    done = [p.metadata.name for p in evidence.pods if p.status.phase == "Succeeded"]
    if still := sorted(missing.intersection(done)):
        yield (
            f"{counted(len(still), 'pod')} that succeeded still counts as running without a value "
            f"({named(still)}), which damps every change up to Kubernetes 1.36: delete what has "
            "ended"
        )


def _wrong_scale(evidence: Evidence, decision: Decision) -> Iterator[str]:
    for asked, proposal in zip(evidence.asked, decision.proposals, strict=True):
        target, name = _target(asked), _name(asked)
        if target is None or proposal.aim in {None, Aim.UTILIZATION}:
            continue
        unit = _unit(asked)
        if unit == Unit.PERCENT and target <= 1:
            yield (
                f"the target {target} of {name} looks like a ratio of 0 to 1, but its values "
                f"are percent, 0 to 100: use {(target * 100).normalize():f}"
            )
        if unit == Unit.RATIO and target > 1:
            yield (
                f"the target {target} of {name} looks like percent, but its values are "
                f"ratios of 0 to 1: use {(target * 10).normalize():f}m"
            )


def _utilization_of_pods(evidence: Evidence, decision: Decision) -> Iterator[str]:  # noqa: ARG001 - a Cause
    for asked in evidence.asked:
        target = _targets(asked)
        if asked.address.group != RESOURCE and target and target.type == "Utilization":
            yield (
                f"the target of {_name(asked)} has type Utilization, which means percent of the "
                "requests of cpu or memory: use AverageValue with the metric's own unit"
            )


def _upper_case(evidence: Evidence, decision: Decision) -> Iterator[str]:  # noqa: ARG001 - a Cause
    for asked in evidence.asked:
        external = asked.spec.external
        if (
            external
            and asked.readings.fault
            and external.metric.name.lower() != external.metric.name
        ):
            yield (
                f"the controller asks for external metrics in lower case "
                f"({external.metric.name.lower()}): a server that knows this one only as "
                f"{external.metric.name} must offer it in lower case"
            )


def _saturated(evidence: Evidence, decision: Decision) -> Iterator[str]:
    most = evidence.autoscaler.spec.max_replicas
    for asked, proposal in zip(evidence.asked, decision.proposals, strict=True):
        if _unit(asked) != Unit.PERCENT or asked.spec.pods is None or not asked.items:
            continue
        typical = median(number(item.value) for item in asked.items)
        if typical >= SATURATED_PERCENT and (proposal.replicas or 0) >= most:
            yield (
                f"{_name(asked)} is at its end ({typical:f}) and asks for all {most} replicas: a "
                "GPU reads busy from its first request on, and cannot tell by how much the load "
                "is too large; scale on a queue, such as vllm:num_requests_waiting"
            )


def _overflow(evidence: Evidence, decision: Decision) -> Iterator[str]:
    for asked, proposal in zip(evidence.asked, decision.proposals, strict=True):
        replicas = proposal.replicas
        if replicas is not None and (replicas < 0 or replicas >= LARGEST_REPLICAS):
            yield (
                f"{_name(asked)} over its target does not fit the controller's numbers: correct "
                "the unit of the target"
            )
        if any(number(item.value) >= 10**15 for item in asked.items):
            yield f"{_name(asked)} has a value that the controller's numbers cannot hold"


def _summed(evidence: Evidence, decision: Decision) -> Iterator[str]:  # noqa: ARG001 - a Cause
    for asked in evidence.asked:
        if asked.address.group == EXTERNAL and len(asked.items) > 1:
            yield (
                f"{_name(asked)} has {len(asked.items)} series, and the controller takes their "
                "sum: if one is a total of the others, or they are shares, choose by "
                "metric.selector"
            )


def _unexplained(evidence: Evidence, decision: Decision) -> Iterator[str]:  # noqa: ARG001 - a Cause
    groups = {a.address.group for a in evidence.asked if a.items and a.tree is None}
    for group in sorted(groups):
        server = evidence.servers.get(group)
        who = f" ({server.server})" if server and server.server else ""
        yield f"the server of {group}{who} gave no explanation: only its values are shown"


def _name(asked: Asked) -> str:
    spec = asked.spec
    source = spec.pods or spec.object or spec.external
    if source is not None:
        return source.metric.name
    resource = spec.resource or spec.container_resource
    return resource.name if resource else spec.type


def _targets(asked: Asked) -> MetricTarget | None:
    spec = asked.spec
    source = spec.pods or spec.object or spec.external or spec.resource or spec.container_resource
    return source.target if source else None


def _target(asked: Asked) -> Decimal | None:
    target = _targets(asked)
    if target is None:
        return None
    wanted = target.value if target.average_value is None else target.average_value
    try:
        return None if wanted is None else number(wanted)
    except ValueError:
        return None


def _unit(asked: Asked) -> str:
    """Return the unit of a metric: as its server says, as we know it, or as its name tells."""
    said = (asked.tree or {}).get("unit")
    name = _name(asked)
    if isinstance(said, str) and said:
        return said
    if (known := _KNOWN.get(name)) is not None:
        return known
    if _RATIOS.search(name):
        return Unit.RATIO
    return Unit.PERCENT if _PERCENTS.search(name) else Unit.NONE


_KNOWN: Final[Mapping[str, Unit]] = {metric.name: metric.unit for metric in CATALOG.metrics}

_CAUSES: Final[tuple[Cause, ...]] = (
    _turned_off,
    _no_pods,
    _unregistered,
    _half_blind,
    _other_pods,
    _utilization_of_pods,
    _upper_case,
    _wrong_scale,
    _overflow,
    _succeeded,
    _saturated,
    _summed,
    _unexplained,
)
