"""HorizontalPodAutoscalers of ``autoscaling/v2``, what they scale, and their pods.

The fields are those that decide about replicas. Optional ones are None where Kubernetes fills in
a default only when it computes.
"""

from datetime import datetime
from typing import Final

import msgspec

from slicewatch.kube.label_selector import LabelSelector
from slicewatch.kube.objects import Container, Kind, Metadata, Object
from slicewatch.kube.quantity import Quantity


class CrossVersionObjectReference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An object of the autoscaler's own namespace."""

    kind: str
    name: str
    api_version: str = ""

    @property
    def group(self) -> str:
        """The API group; empty for the core."""
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""


class MetricIdentifier(msgspec.Struct, frozen=True, kw_only=True):
    """A metric's name, and which of its series."""

    name: str
    selector: LabelSelector | None = None


class MetricTarget(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The value to keep. ``type`` is Value, AverageValue or Utilization (of requests)."""

    type: str
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: int | None = None


class PodsMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of each pod."""

    metric: MetricIdentifier
    target: MetricTarget


class ObjectMetric(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A metric of one other object."""

    described_object: CrossVersionObjectReference
    metric: MetricIdentifier
    target: MetricTarget


class ExternalMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric that belongs to no object."""

    metric: MetricIdentifier
    target: MetricTarget


class ResourceMetric(msgspec.Struct, frozen=True, kw_only=True):
    """CPU or memory; ``container`` is empty for the whole pod."""

    name: str
    target: MetricTarget
    container: str = ""


class MetricSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One metric to scale on. The field that ``type`` names is set."""

    type: str
    pods: PodsMetric | None = None
    object: ObjectMetric | None = None
    external: ExternalMetric | None = None
    resource: ResourceMetric | None = None
    container_resource: ResourceMetric | None = None


class ScalingPolicy(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The most change in a period: ``type`` is Pods or Percent."""

    type: str
    value: int
    period_seconds: int


class ScalingRules(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What restrains one direction. ``select_policy`` is Max, Min or Disabled."""

    stabilization_window_seconds: int | None = None
    select_policy: str | None = None
    policies: tuple[ScalingPolicy, ...] | None = None
    tolerance: Quantity | None = None


class Behavior(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Rules for both directions. The API server fills in both where one is given."""

    scale_up: ScalingRules | None = None
    scale_down: ScalingRules | None = None


class AutoscalerSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is wanted."""

    scale_target_ref: CrossVersionObjectReference
    max_replicas: int
    min_replicas: int | None = None
    metrics: tuple[MetricSpec, ...] = ()
    behavior: Behavior | None = None


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """What the controller says about itself. ``status`` is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class AutoscalerStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the controller did last."""

    current_replicas: int = 0
    desired_replicas: int = 0
    last_scale_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()


class HorizontalPodAutoscaler(Object, frozen=True, kw_only=True):
    """An autoscaler."""

    spec: AutoscalerSpec
    status: AutoscalerStatus = AutoscalerStatus()

    @property
    def min_replicas(self) -> int:
        """The fewest replicas, with Kubernetes' default."""
        return 1 if self.spec.min_replicas is None else self.spec.min_replicas

    def condition(self, kind: str) -> Condition | None:
        """Return a condition by its type."""
        return next((one for one in self.status.conditions if one.type == kind), None)


class ScaleSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The replicas wanted; absent is none."""

    replicas: int = 0


class ScaleStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The replicas that exist, and the label selector that finds their pods, as text."""

    replicas: int = 0
    selector: str = ""


class Scale(Object, frozen=True, kw_only=True):
    """The scale subresource of what an autoscaler scales."""

    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()


class MortalMetadata(Metadata, frozen=True, kw_only=True, rename="camel"):
    """Metadata that tells when an object began to be deleted."""

    deletion_timestamp: datetime | None = None


class PodCondition(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One condition of a pod."""

    type: str
    status: str
    last_transition_time: datetime | None = None


class ScaledPodStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where a pod is in its life."""

    phase: str = ""
    start_time: datetime | None = None
    conditions: tuple[PodCondition, ...] = ()


class ScaledPodSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where a pod runs and what its containers request."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()


class ScaledPod(Object, frozen=True, kw_only=True):
    """A pod with what the controller looks at."""

    metadata: MortalMetadata
    spec: ScaledPodSpec = ScaledPodSpec()
    status: ScaledPodStatus = ScaledPodStatus()

    @property
    def ready_condition(self) -> PodCondition | None:
        """The Ready condition, once the kubelet has set it."""
        return next((one for one in self.status.conditions if one.type == "Ready"), None)

    @property
    def ready(self) -> bool:
        """Tell whether it is running and takes traffic."""
        condition = self.ready_condition
        return (
            self.status.phase == "Running" and condition is not None and condition.status == "True"
        )


HORIZONTAL_POD_AUTOSCALER: Final = Kind(
    type=HorizontalPodAutoscaler,
    name="HorizontalPodAutoscaler",
    plural="horizontalpodautoscalers",
    group="autoscaling",
    version="v2",
)
SCALED_POD: Final = Kind(type=ScaledPod, name="Pod", plural="pods")
