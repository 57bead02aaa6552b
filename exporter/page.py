"""How a layout becomes the families of ``/metrics``: whose series carry which labels."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slicewatch.catalog import devices, tenants
from slicewatch.catalog.model import Derived, Label, Metric, Probe, Scope
from slicewatch.service.exposition import Family, Page, constant_text, labels_text
from slicewatch.wire.layout import Device, Layout, Tenant
from slicewatch.wire.snapshot import Column, Snapshot

Labels = tuple[tuple[str, str], ...]


def page_of(layout: Layout, metrics: Sequence[Metric[Any]]) -> Page:
    """Prepare the page of a layout with those of our families that are in ``metrics``."""
    identities = [_identity(layout, device) for device in layout.devices]
    texts = [labels_text(labels) for labels in identities]
    by_uuid = dict(zip((d.uuid for d in layout.devices), identities, strict=True))
    tenants = [_tenant_text(by_uuid, tenant) for tenant in layout.tenants]
    changing = [
        Family(metric, tenants if Scope.TENANT in metric.scopes else [
            text if _describes(metric, device) else None
            for device, text in zip(layout.devices, texts, strict=True)
        ])
        for metric in metrics
        if isinstance(metric.origin, Probe | Derived) and metric.origin not in _CONSTANT
    ]  # fmt: skip
    constant = [
        (Family(metric, texts), values)
        for metric in metrics
        for texts, values in (_constant(metric, layout, identities),)
        if texts
    ]
    return Page(families=tuple(changing), constant=constant_text(constant))


def columns_of(snapshot: Snapshot, passed_seconds: float) -> Mapping[str, Column]:
    """Return the columns that the changing families of a page are rendered from.

    Args:
        snapshot: what was published last.
        passed_seconds: how long ago that was.
    """
    ages = [None if age is None else round(age + passed_seconds, 3) for age in snapshot.ages]
    return {
        devices.UP.name: [1 if up else 0 for up in snapshot.up],
        devices.READING_AGE.name: ages,
        **snapshot.values,
        **snapshot.tenant_values,
    }


# Families whose values change with the layout only.
_CONSTANT = (devices.GPU, devices.MIG, devices.SUPPORT, tenants.TENANT)


def _describes(metric: Metric[Any], device: Device) -> bool:
    return (Scope.MIG if device.is_mig else Scope.GPU) in metric.scopes


def _identity(layout: Layout, device: Device) -> Labels:
    return (
        (Label.GPU, str(device.gpu)),
        (Label.UUID, device.uuid),
        (Label.MODEL, device.model),
        (Label.NODE, layout.node),
        (Label.GPU_INSTANCE, _text(device.gpu_instance)),
        (Label.COMPUTE_INSTANCE, _text(device.compute_instance)),
        (Label.PROFILE, device.profile),
        *layout.labels.items(),
    )


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _constant(
    metric: Metric[Any], layout: Layout, identities: Sequence[Labels]
) -> tuple[list[str | None], Column]:
    """Return the label texts and values of a family that changes with the layout only."""
    rows = list(zip(layout.devices, identities, strict=True))
    if metric.origin is devices.GPU:
        found = [i + _repair(d, layout.driver) for d, i in rows if not d.is_mig and d.uuid]
    elif metric.origin is devices.MIG:
        found = [(*i, (Label.PLACEMENT, _placement(d))) for d, i in rows if d.is_mig]
    elif metric.origin is tenants.TENANT:
        found = list(
            _tenants(layout, dict(zip((d.uuid for d, _ in rows), identities, strict=True)))
        )
    elif metric.origin is devices.SUPPORT:
        texts = [labels_text(labels) for labels in _unsupported(layout, identities)]
        return [*texts], [0.0] * len(texts)
    else:
        found = []
    return [labels_text(labels) for labels in found], [1.0] * len(found)


def _repair(device: Device, driver: str) -> Labels:
    return (
        (Label.PCI_BUS_ID, device.pci_bus_id),
        (Label.SERIAL, device.serial),
        (Label.BOARD, device.board),
        (Label.VBIOS, device.vbios),
        (Label.DRIVER, driver),
    )


def _placement(device: Device) -> str:
    if device.placement_start is None:
        return ""
    return f"{device.placement_start}:{device.placement_size}"


def _tenant_text(by_uuid: Mapping[str, Labels], tenant: Tenant) -> str | None:
    """Return the labels of what a tenant uses of a device; None where the device is gone."""
    identity = by_uuid.get(tenant.device)
    return None if identity is None else labels_text(identity + _container(tenant))


def _tenants(layout: Layout, by_uuid: Mapping[str, Labels]) -> Iterable[Labels]:
    for tenant in layout.tenants:
        # What runs outside of any pod has no name to tell.
        if tenant.device in by_uuid and tenant.pod:
            yield by_uuid[tenant.device] + _holder(tenant)


def _container(tenant: Tenant) -> Labels:
    return (
        (Label.NAMESPACE, tenant.namespace),
        (Label.POD, tenant.pod),
        (Label.CONTAINER, tenant.container),
    )


def _holder(tenant: Tenant) -> Labels:
    pod_labels = ((f"label_{_as_label(n)}", value) for n, value in tenant.labels.items())
    return (
        *_container(tenant),
        (Label.POD_UID, tenant.uid),
        (Label.RESOURCE, tenant.resource),
        (Label.REPLICA, tenant.replica),
        (Label.CLAIM_NAMESPACE, tenant.claim_namespace),
        (Label.CLAIM, tenant.claim),
        (Label.WORKLOAD_KIND, tenant.workload_kind),
        (Label.WORKLOAD, tenant.workload),
        (Label.SOURCE, tenants.ALLOCATED if tenant.allocated else tenants.SEEN),
        *pod_labels,
    )


def _as_label(name: str) -> str:
    """Return a pod label's name in the characters that Prometheus has, as kube-state-metrics does."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)


def _unsupported(layout: Layout, identities: Sequence[Labels]) -> Iterable[Labels]:
    for name, reasons in layout.support.items():
        for labels, reason in zip(identities, reasons, strict=True):
            if reason:
                yield (*labels, (Label.METRIC, name), (Label.REASON, reason))
