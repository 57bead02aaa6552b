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
    rows = [(device, _identity(layout, device)) for device in layout.devices]
    texts = [labels_text(identity) for _, identity in rows]
    by_uuid = {device.uuid: identity for device, identity in rows}
    of_tenants = [_tenant_text(by_uuid, tenant) for tenant in layout.tenants]
    constant = _constant(layout, rows, by_uuid)
    changing = [
        Family(metric, of_tenants if Scope.TENANT in metric.scopes else [
            text if _describes(metric, device) else None
            for device, text in zip(layout.devices, texts, strict=True)
        ])
        for metric in metrics
        if isinstance(metric.origin, Probe | Derived) and metric.origin not in constant
    ]  # fmt: skip
    return Page(
        families=tuple(changing),
        constant=constant_text(
            (Family(metric, list(map(labels_text, series))), [value] * len(series))
            for metric in metrics
            if isinstance(metric.origin, Derived) and metric.origin in constant
            for value, series in (constant[metric.origin],)
        ),
    )


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
    layout: Layout, rows: Sequence[tuple[Device, Labels]], by_uuid: Mapping[str, Labels]
) -> Mapping[Derived[Any], tuple[float, Sequence[Labels]]]:
    """Return the value and the series of what changes with the layout only."""
    gpus = [i + _repair(d, layout.driver) for d, i in rows if not d.is_mig and d.uuid]
    parts = [i + _slice(d) for d, i in rows if d.is_mig]
    return {
        devices.GPU: (1.0, gpus),
        devices.MIG: (1.0, parts),
        devices.SUPPORT: (0.0, list(_unsupported(layout, rows))),
        tenants.TENANT: (1.0, list(_tenants(layout, by_uuid))),
    }


def _repair(device: Device, driver: str) -> Labels:
    return (
        (Label.PCI_BUS_ID, device.pci_bus_id),
        (Label.SERIAL, device.serial),
        (Label.BOARD, device.board),
        (Label.VBIOS, device.vbios),
        (Label.DRIVER, driver),
    )


def _slice(device: Device) -> Labels:
    return ((Label.PLACEMENT, _placement(device)), (Label.SM_COUNT, _text(device.sm_count)))


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
    pod_labels = ((as_series_label(name), value) for name, value in tenant.labels.items())
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


def as_series_label(name: str) -> str:
    """Return what a pod's label is called on a series; by kube-state-metrics' rule."""
    return "label_" + re.sub(r"[^a-zA-Z0-9_]", "_", name)


def _unsupported(layout: Layout, rows: Sequence[tuple[Device, Labels]]) -> Iterable[Labels]:
    for name, reasons in layout.support.items():
        for (_, identity), reason in zip(rows, reasons, strict=True):
            if reason:
                yield (*identity, (Label.METRIC, name), (Label.REASON, reason))
