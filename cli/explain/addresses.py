"""Where the controller asks for each kind of metric, and the right that it takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from cli.explain.cluster import Reader, Right, api_group, encoded, resource_of
from slicewatch.kube.autoscaling import (
    ExternalMetric,
    MetricIdentifier,
    MetricSpec,
    ObjectMetric,
    PodsMetric,
)

CUSTOM: Final = "custom.metrics.k8s.io"
EXTERNAL: Final = "external.metrics.k8s.io"
RESOURCE: Final = "metrics.k8s.io"
# The versions that the controller knows.
_VERSIONS: Final = {CUSTOM: ("v1beta2", "v1beta1"), EXTERNAL: ("v1beta1",), RESOURCE: ("v1beta1",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the controller asks for a metric, and what that takes: ``path``, or else ``fault``."""

    group: str
    version: str = ""
    path: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    right: Right | None = None
    fault: str = ""

    @property
    def url(self) -> str:
        """Path and query."""
        return self.path + encoded(self.query)


async def address_of(reader: Reader, spec: MetricSpec, namespace: str, selector: str) -> Address:
    """Return where the controller asks for a metric.

    Raises:
        CannotExplainError: discovery does not work.
    """
    group = _group(spec)
    known = await api_group(reader, group)
    version = known.preferred(_VERSIONS[group]) if known else ""
    if not version:
        return Address(
            group=group, fault=f"no metrics server is registered for {group}: install one"
        )
    within = f"/apis/{group}/{version}/namespaces/{quote(namespace)}"
    if spec.pods is not None:
        return _pods_address(group, version, within, spec.pods, selector)
    if spec.external is not None:
        return _external_address(group, version, within, spec.external)
    if spec.object is not None:
        return await _object_address(reader, (group, version, within), spec.object)
    if spec.resource is None and spec.container_resource is None:
        return Address(group=group, fault=f"metrics of type {spec.type} are not known")
    right = Right(group=group, resource="pods", verb="list")
    path, query = f"{within}/pods", {"labelSelector": selector}
    return Address(group=group, version=version, path=path, query=query, right=right)


def _group(spec: MetricSpec) -> str:
    if spec.external is not None:
        return EXTERNAL
    return RESOURCE if spec.resource or spec.container_resource else CUSTOM


def _series(metric: MetricIdentifier) -> str:
    return metric.selector.text() if metric.selector else ""


def _segment(name: str) -> str:
    return quote(name, safe=":")


def _pods_address(
    group: str, version: str, within: str, pods: PodsMetric, selector: str
) -> Address:
    metric = pods.metric
    return Address(
        group=group,
        version=version,
        path=f"{within}/pods/*/{_segment(metric.name)}",
        query={"labelSelector": selector, "metricLabelSelector": _series(metric)},
        right=Right(group=group, resource=f"pods/{metric.name}", verb="get"),
    )


def _external_address(group: str, version: str, within: str, external: ExternalMetric) -> Address:
    # The controller's client lowers the name's case.
    name = external.metric.name.lower()
    return Address(
        group=group,
        version=version,
        path=f"{within}/{_segment(name)}",
        query={"labelSelector": _series(external.metric)},
        right=Right(group=group, resource=name, verb="list"),
    )


async def _object_address(
    reader: Reader, where: tuple[str, str, str], metric: ObjectMetric
) -> Address:
    group, version, within = where
    described, name = metric.described_object, metric.metric.name
    query = {"metricLabelSelector": _series(metric.metric)}
    if described.kind == "Namespace" and not described.group:
        # Always the autoscaler's own namespace, whatever name the reference has.
        return Address(
            group=group,
            version=version,
            path=f"{within}/metrics/{_segment(name)}",
            query=query,
            right=Right(group=group, resource="metrics", verb="get"),
        )
    resource = await resource_of(reader, described)
    if resource is None:
        kind = f"{described.kind} of {described.api_version or 'v1'}"
        return Address(group=group, version=version, fault=f"the cluster has no {kind}")
    return Address(
        group=group,
        version=version,
        path=f"{within}/{resource.qualified}/{quote(described.name)}/{_segment(name)}",
        query=query,
        right=Right(group=group, resource=f"{resource.plural}/{name}", verb="get"),
    )
