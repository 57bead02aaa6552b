"""Small fleets built by hand: pods as Kubernetes writes them, frames as an exporter sends them.

For tests of what lies between the two; load that changes over time is the simulator's job.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from slicewatch.kube.objects import Pod
from slicewatch.wire.layout import Device, Layout, Tenant
from slicewatch.wire.snapshot import Column, Frame, Snapshot

Json = dict[str, Any]

READINGS: Mapping[str, float] = {
    "gpu_utilization": 40.0,
    "gpu_memory_utilization": 25.0,
    "gpu_memory_used_bytes": 20_000_000_000.0,
    "gpu_power_usage_watts": 250.5,
}
"""What a device reads unless a test says otherwise."""


def pod_json(
    name: str,
    *,
    namespace: str = "ml",
    node: str = "n1",
    labels: Mapping[str, str] | None = None,
    phase: str = "Running",
    owner: tuple[str, str] | None = None,
    gpus: int = 1,
    claims: Sequence[str] = (),
) -> Json:
    """Return a pod as the API server writes it, without what the server itself fills in."""
    metadata: Json = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    if owner is not None:
        kind, owner_name = owner
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": owner_name, "uid": f"uid-{owner_name}",
             "controller": True}
        ]  # fmt: skip
    resources = {"requests": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    container = {"name": "main", "image": "registry.invalid/main", "resources": resources}
    if gpus:
        resources["limits"] = dict(resources["requests"])
    spec: Json = {"containers": [container]} | ({"nodeName": node} if node else {})
    if claims:
        spec["resourceClaims"] = [{"name": name} for name in claims]
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def pod(body: Json, *, uid: str = "") -> Pod:
    """Return a pod of ``pod_json`` as our struct."""
    identity = {"uid": uid or f"uid-{body['metadata']['name']}"}
    return msgspec.convert(body | {"metadata": body["metadata"] | identity}, Pod)


def gpu(index: int, *, node: str = "n1", mig_enabled: bool = False) -> Device:
    """Return a whole GPU whose uuid is ``GPU-<node>-<index>``."""
    return Device(
        uuid=f"GPU-{node}-{index}", gpu=index, model="NVIDIA H200", mig_enabled=mig_enabled
    )


def mig(index: int, instance: int, *, node: str = "n1", profile: str = "1g.18gb") -> Device:
    """Return a MIG device on a GPU of ``gpu``."""
    return Device(
        uuid=f"MIG-{node}-{index}-{instance}",
        gpu=index,
        model="NVIDIA H200",
        parent=f"GPU-{node}-{index}",
        gpu_instance=instance,
        compute_instance=0,
        profile=profile,
    )


def tenant(
    device: str,
    name: str,
    *,
    namespace: str = "ml",
    container: str = "main",
    replica: str = "",
    uid: str = "",
) -> Tenant:
    """Return a container that holds a device."""
    return Tenant(
        device=device, namespace=namespace, pod=name, container=container, replica=replica, uid=uid
    )


def layout(
    devices: Sequence[Device],
    tenants: Iterable[Tenant] = (),
    *,
    node: str = "n1",
    number: int = 1,
    run: str = "run-1",
    tenants_known: bool = True,
    support: Mapping[str, tuple[str | None, ...]] | None = None,
) -> Layout:
    """Return the layout of a node, with means over 15 s."""
    return Layout(
        run=run,
        number=number,
        node=node,
        window_seconds=15.0,
        devices=tuple(devices),
        tenants=tuple(tenants),
        tenants_known=tenants_known,
        support=dict(support or {}),
    )


def snapshot(
    rows: Layout,
    means: Mapping[str, Column] | None = None,
    *,
    sequence: int = 1,
    up: Sequence[bool] | None = None,
    ages: Column | None = None,
    tenant_values: Mapping[str, Column] | None = None,
    shares: str = "",
) -> Snapshot:
    """Return a snapshot in which every device is fresh and reads ``READINGS`` or ``means``."""
    count = len(rows.devices)
    columns: dict[str, Column] = {name: [value] * count for name, value in READINGS.items()}
    columns |= means or {}
    return Snapshot(
        run=rows.run,
        layout=rows.number,
        sequence=sequence,
        up=[True] * count if up is None else list(up),
        ages=[0.5] * count if ages is None else ages,
        values=columns,
        means=columns,
        tenant_values=dict(tenant_values or {}),
        shares=shares,
    )


def frame(rows: Layout, of: Snapshot | None = None) -> Frame:
    """Return a frame that includes its layout."""
    return Frame(layout=rows, snapshot=of or snapshot(rows))


def web(name: str, node: str, phase: str = "Running") -> Pod:
    """Return a pod in namespace ml with the label app=web that requests a GPU."""
    return pod(pod_json(name, node=node, phase=phase, labels={"app": "web"}))


def node_frame(
    node: str,
    holder: str,
    utilization: float | None,
    *,
    up: bool = True,
    age: float = 0.5,
) -> Frame:
    """Return a frame of a node whose only GPU is held by a pod."""
    rows = layout([gpu(0, node=node)], [tenant(f"GPU-{node}-0", holder)], node=node)
    return frame(rows, snapshot(rows, {"gpu_utilization": [utilization]}, up=[up], ages=[age]))


def blind_frame(node: str) -> Frame:
    """Return a frame of a node whose exporter does not know who holds its GPU."""
    return frame(layout([gpu(0, node=node)], node=node, tenants_known=False))
