"""An explanation as data: what the text shows and what JSON carries are the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from advisor.autoscaler.decision import Course, Decision, decide
from advisor.autoscaler.grouping import Groups
from advisor.autoscaler.proposal import Proposal
from cli.explain.asking import Asked, Item
from cli.explain.causes import causes
from cli.explain.evidence import Evidence
from cli.explain.wording import counted
from slicewatch.kube.autoscaling import ScaledPod
from slicewatch.kube.quantity import number

_PLAIN: Final = {
    "ValidMetricFound": "its metrics can be read",
    "ScalingDisabled": "it is off, since its target has no replicas",
    "FailedGetPodsMetric": "a metric of its pods cannot be read",
    "FailedGetObjectMetric": "a metric of an object cannot be read",
    "FailedGetExternalMetric": "an external metric cannot be read",
    "FailedGetResourceMetric": "cpu or memory of its pods cannot be read",
    "FailedGetContainerResourceMetric": "cpu or memory of a container cannot be read",
    "InvalidMetricSourceType": "a metric has no known type",
    "InvalidSelector": "its target's selector is missing or wrong",
    "AmbiguousSelector": "another HPA scales the same pods",
    "SucceededGetScale": "it can read how many replicas its target has",
    "FailedGetScale": "it cannot read how many replicas its target has",
    "FailedUpdateScale": "it cannot write how many replicas its target is to have",
    "SucceededRescale": "it has just changed the replicas",
    "ReadyForNewScale": "nothing holds it back",
    "ScaleDownStabilized": "a higher recommendation of the last minutes keeps the replicas up",
    "ScaleUpStabilized": "a lower recommendation of the last minutes keeps the replicas down",
    "DesiredWithinRange": "no limit was in the way",
    "TooManyReplicas": "maxReplicas is in the way",
    "TooFewReplicas": "minReplicas is in the way",
    "ScaleUpLimit": "the rate of scaling up is in the way",
    "ScaleDownLimit": "the rate of scaling down is in the way",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionRow:
    """A condition of the autoscaler, with its reason in plain words."""

    type: str
    status: str
    reason: str
    plain: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRow:
    """A pod and its value of one metric, or why there is none.

    Attributes:
        counts: as the controller takes it: counted, unready, missing, ignored or not selected.
        value: as the API sent it.
        why: there is no value, by the metrics server.
        devices: what the value was made of, by the metrics server.
    """

    name: str
    node: str = ""
    phase: str = ""
    ready: bool = False
    counts: str
    value: float | None = None
    age_seconds: float | None = None
    window_seconds: int | None = None
    why: str = ""
    devices: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow:
    """A value that belongs to no pod."""

    labels: Mapping[str, str]
    value: float
    age_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPart:
    """One metric: the question, the answer, and what follows from it."""

    path: str
    server: str
    code: int | None
    fault: str
    denied: str
    pods: tuple[PodRow, ...]
    series: tuple[SeriesRow, ...]
    proposal: Proposal
    tree: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why an autoscaler does what it does.

    Attributes:
        held: the controller says that earlier recommendations keep the replicas up.
        verdict: the last line: what happens, or why nothing can.
        works: it can scale by its metrics as things are.
        blind: something may be wrong that the caller may not see.
    """

    namespace: str
    name: str
    target: str
    selector: str
    matched_pods: int
    conditions: tuple[ConditionRow, ...]
    metrics: tuple[MetricPart, ...]
    decision: Decision
    held: bool
    hints: tuple[str, ...]
    verdict: str
    works: bool
    blind: bool


def explanation(evidence: Evidence) -> Explanation:
    """Return the explanation of an autoscaler."""
    decision = decide(evidence.situation())
    autoscaler = evidence.autoscaler
    target = autoscaler.spec.scale_target_ref
    hints = causes(evidence, decision)
    denied = next((asked.denied for asked in evidence.asked if asked.denied), "")
    held = _held(evidence, decision)
    parts = zip(evidence.asked, decision.proposals, strict=True)
    return Explanation(
        namespace=autoscaler.metadata.namespace,
        name=autoscaler.metadata.name,
        target=f"{target.kind} {target.name}",
        selector=evidence.scale.status.selector,
        matched_pods=len(evidence.pods),
        conditions=tuple(
            ConditionRow(type=c.type, status=c.status, reason=c.reason,
                         plain=_PLAIN.get(c.reason, ""), message=c.message)
            for c in autoscaler.status.conditions
        ),
        metrics=tuple(_part(evidence, asked, proposal) for asked, proposal in parts),
        decision=decision,
        held=held,
        hints=hints,
        verdict=denied or _verdict(decision, hints, f"{target.kind} {target.name}", held=held),
        works=decision.works,
        blind=bool(denied),
    )  # fmt: skip


def _held(evidence: Evidence, decision: Decision) -> bool:
    able = evidence.autoscaler.condition("AbleToScale")
    stabilized = able is not None and able.reason == "ScaleDownStabilized"
    return stabilized and decision.desired < decision.current


def _verdict(decision: Decision, hints: Sequence[str], target: str, *, held: bool) -> str:
    if not decision.works:
        faults = [one.fault for one in decision.proposals if one.fault]
        known = decision.course is Course.DISABLED or not faults
        cause = hints[0] if known and hints else "; ".join(faults) or decision.course.value
        return f"{target} cannot be scaled as it is: {cause}"
    current, desired = decision.current, decision.desired
    if desired == current:
        return f"{target} stays at {counted(current, 'replica')}"
    if held:
        return (
            f"{target} stays at {counted(current, 'replica')} for now, and then goes to {desired}"
        )
    return f"{target} goes from {current} to {counted(desired, 'replica')}"


def _part(evidence: Evidence, asked: Asked, proposal: Proposal) -> MetricPart:
    server = evidence.servers.get(asked.address.group)
    of_pods = asked.spec.object is None and asked.spec.external is None
    return MetricPart(
        path=asked.address.url,
        server=server.server if server else "",
        code=asked.code,
        fault=asked.readings.fault,
        denied=asked.denied,
        pods=_pod_rows(evidence, asked, proposal) if of_pods else (),
        series=() if of_pods else tuple(_series(item, evidence.now) for item in asked.items),
        proposal=proposal,
        tree=asked.tree,
    )


def _series(item: Item, now: datetime) -> SeriesRow:
    labels = item.metric_labels or ({"object": item.name} if item.name else {})
    return SeriesRow(
        labels=labels, value=float(number(item.value)), age_seconds=_age(item.timestamp, now)
    )


def _age(at: datetime | None, now: datetime) -> float | None:
    return None if at is None else round(max((now - at).total_seconds(), 0.0), 1)


def _pod_rows(evidence: Evidence, asked: Asked, proposal: Proposal) -> tuple[PodRow, ...]:
    counts = _counts(proposal.groups)
    pods = {pod.metadata.name: pod for pod in evidence.pods}
    names = sorted({*pods, *asked.readings.by_pod})
    told = _told(asked.tree)
    items = {item.name: item for item in asked.items}
    return tuple(
        _pod_row(
            name, pods.get(name), asked, items.get(name), told.get(name, {}), evidence.now,
            counts=counts.get(name, "selected" if name in pods else "not selected"),
        )
        for name in names
    )  # fmt: skip


def _pod_row(
    name: str,
    pod: ScaledPod | None,
    asked: Asked,
    item: Item | None,
    told: Mapping[str, Any],
    now: datetime,
    *,
    counts: str,
) -> PodRow:
    sample = asked.readings.by_pod.get(name)
    age = told.get("ageSeconds")
    if not isinstance(age, int | float):
        age = _age(sample.read_at if sample else None, now)
    window = None
    if item is not None:
        window = item.window if item.window_seconds is None else item.window_seconds
    return PodRow(
        name=name,
        node=pod.spec.node_name if pod else "",
        phase=_phase(pod) if pod else "",
        ready=pod is not None and pod.ready,
        counts=counts,
        value=None if sample is None else sample.value / 1000,
        age_seconds=age,
        window_seconds=window,
        why=str(told.get("why", "")),
        devices=tuple(one for one in told.get("devices") or () if isinstance(one, dict)),
    )


def _phase(pod: ScaledPod) -> str:
    return "Terminating" if pod.metadata.deletion_timestamp else pod.status.phase


def _counts(groups: Groups | None) -> dict[str, str]:
    if groups is None:
        return {}
    sorted_out = {
        "counted": groups.counted,
        "unready": groups.unready,
        "missing": groups.missing,
        "ignored": groups.ignored,
    }
    return {name: kind for kind, names in sorted_out.items() for name in names}


def _told(tree: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    """Return what the server says of each object; other servers' trees have other shapes."""
    items = (tree or {}).get("items")
    listed = items if isinstance(items, list) else []
    return {str(one.get("name", "")): one for one in listed if isinstance(one, dict)}
