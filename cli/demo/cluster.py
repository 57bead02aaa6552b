"""What a simulated fleet needs around it: one kubelet per node, and an API server with pods."""

from pathlib import Path

from exporter.tenants.fake import FakeKubelet
from exporter.tenants.protocol import Allocation
from simulator.fleet import Fleet
from simulator.scenario import Pod, Workload
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import POD


def kubelet(fleet: Fleet, node: str, folder: Path) -> FakeKubelet:
    """Return a kubelet, not started, with the allocations of the scenario."""
    made = FakeKubelet(folder / f"{node}.sock")
    made.give(
        Allocation(
            namespace=held.namespace,
            pod=held.pod,
            container=held.container,
            resource=held.resource,
            device_id=device,
        )
        for held in fleet.truth.allocations(node, fleet.now)
        for device in held.device_ids
    )
    return made


async def api_server(fleet: Fleet) -> FakeKube:
    """Return an API server with the pods of the scenario."""
    kube = FakeKube()
    requests: dict[tuple[str, str], dict[str, str]] = {}
    for node in fleet.nodes:
        for held in fleet.truth.allocations(node.name, fleet.now):
            wanted = requests.setdefault((held.namespace, held.pod), {})
            wanted[held.resource] = str(len(held.device_ids))
    for workload in fleet.scenario.workloads:
        for pod in workload.pods:
            wanted = requests.get((workload.namespace, pod.name), {})
            await kube.create(POD, _body(workload, pod, wanted), workload.namespace)
    return kube


def _body(workload: Workload, pod: Pod, requests: dict[str, str]) -> dict[str, object]:
    owner, _, _ = pod.name.rpartition("-")
    controller = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": owner,
        "uid": owner,
        "controller": True,
    }
    return {
        "metadata": {
            "name": pod.name,
            "labels": {"app": workload.name},
            "ownerReferences": [controller],
        },
        "spec": {
            "nodeName": pod.devices[0].node,
            "containers": [{"name": pod.container, "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running"},
    }
