"""Asks the metrics APIs what the controller asks them, and once more for an explanation."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import msgspec

from advisor.autoscaler.readings import Readings, Sample
from cli.explain.addresses import RESOURCE, Address, address_of
from cli.explain.cluster import Reader, encoded, forbidden
from slicewatch.kube.autoscaling import MetricSpec, ResourceMetric
from slicewatch.kube.errors import ForbiddenError, KubeError
from slicewatch.kube.quantity import Quantity, thousandths

_LISTS: Final = {"MetricValueList", "ExternalMetricValueList"}


class _Described(msgspec.Struct, frozen=True):
    name: str


class Item(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A value as one of the APIs sends it."""

    value: Quantity
    timestamp: datetime | None = None
    window: int | None = None
    window_seconds: int | None = None
    described_object: _Described | None = None
    metric_labels: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The object's name; empty for external metrics."""
        return self.described_object.name if self.described_object else ""


class _Items(msgspec.Struct, frozen=True):
    items: tuple[Item, ...] = ()


class _Usage(msgspec.Struct, frozen=True):
    name: str
    usage: dict[str, Quantity] = {}


class _Name(msgspec.Struct, frozen=True):
    name: str


class _PodUsage(msgspec.Struct, frozen=True):
    metadata: _Name
    containers: tuple[_Usage, ...] = ()
    timestamp: datetime | None = None


class _PodUsages(msgspec.Struct, frozen=True):
    items: tuple[_PodUsage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one metric of an autoscaler was answered.

    Attributes:
        code: HTTP status; None if nobody was asked or nobody answered.
        items: as sent, of custom and external metrics.
        readings: what the controller takes from the answer.
        denied: what the caller may not do, which says nothing about the controller; or empty.
        tree: the metrics server's own explanation; None if it does not explain.
        unselected: pods that have the metric, though the selector does not match them.
    """

    spec: MetricSpec
    address: Address
    code: int | None = None
    items: tuple[Item, ...] = ()
    readings: Readings
    denied: str = ""
    tree: dict[str, Any] | None = None
    unselected: tuple[str, ...] = ()


async def ask(reader: Reader, spec: MetricSpec, namespace: str, selector: str) -> Asked:
    """Return what a metric is answered.

    Raises:
        CannotExplainError: discovery does not work.
    """
    address = await address_of(reader, spec, namespace, selector)
    if address.fault:
        return Asked(spec=spec, address=address, readings=Readings(fault=address.fault))
    try:
        items, readings = await _read(reader, spec, address)
    except KubeError as error:
        denied = ""
        if isinstance(error, ForbiddenError) and address.right:
            denied = forbidden("the metric", address.right, error)
        fault = error.said or str(error)
        asked = Asked(spec=spec, address=address, code=error.code, readings=Readings(fault=fault),
                      denied=denied)  # fmt: skip
    except ValueError as error:
        fault = f"an item of the answer is none: {error}"
        asked = Asked(spec=spec, address=address, code=200, readings=Readings(fault=fault))
    else:
        asked = Asked(spec=spec, address=address, code=200, items=items, readings=readings)
    return await _explained(reader, asked)


async def _read(
    reader: Reader, spec: MetricSpec, address: Address
) -> tuple[tuple[Item, ...], Readings]:
    if (resource := spec.resource or spec.container_resource) is not None:
        usages = await reader.read(address.url, _PodUsages)
        return (), _resource_readings(usages, resource)
    items = (await reader.read(address.url, _Items)).items
    if spec.pods is not None:
        return items, _pods_readings(items)
    values = tuple(thousandths(item.value) for item in items)
    if not values:
        return items, Readings(fault="the answer has no items")
    if spec.object is not None and len(values) != 1:
        fault = f"the answer has {len(values)} items, and the controller takes exactly one"
        return items, Readings(fault=fault)
    return items, Readings(values=values)


def _pods_readings(items: tuple[Item, ...]) -> Readings:
    if not items:
        return Readings(fault="the answer has no items: no pod that is selected has the metric")
    return Readings(
        by_pod={
            item.name: Sample(value=thousandths(item.value), read_at=item.timestamp)
            for item in items
        }
    )


def _resource_readings(usages: _PodUsages, resource: ResourceMetric) -> Readings:
    samples: dict[str, Sample] = {}
    for pod in usages.items:
        chosen = [c for c in pod.containers if resource.container in {"", c.name}]
        if chosen and all(resource.name in c.usage for c in chosen):
            value = sum(thousandths(c.usage[resource.name]) for c in chosen)
            samples[pod.metadata.name] = Sample(value=value, read_at=pod.timestamp)
    if not samples:
        return Readings(fault=f"no pod that is selected has a value of {resource.name}")
    return Readings(by_pod=samples)


async def _explained(reader: Reader, asked: Asked) -> Asked:
    """Return the same with the server's explanation, and who else has the metric."""
    if asked.denied or asked.address.group == RESOURCE:
        return asked
    unselected: tuple[str, ...] = ()
    if asked.spec.pods is not None and asked.readings.fault:
        query = {**asked.address.query, "labelSelector": ""}
        found = await _optional(reader, asked.address.path + encoded(query), _Items)
        unselected = tuple(sorted(item.name for item in found.items)) if found else ()
    url = asked.address.path + encoded({**asked.address.query, "explain": "true"})
    tree: dict[str, Any] | None = await _optional(reader, url, dict)
    if tree is not None and tree.get("kind") in _LISTS:
        tree = None  # It ignores the parameter.
    return replace(asked, tree=tree, unselected=unselected)


async def _optional(reader: Reader, url: str, form: type[Any]) -> Any:  # noqa: ANN401 - as the form says
    try:
        return await reader.read(url, form)
    except KubeError:
        return None
