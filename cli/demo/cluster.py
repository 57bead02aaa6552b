"""What a simulated fleet needs around it: a kubelet per node, and the pods in an API server."""

from pathlib import Path

from exporter.tenants.fake import FakeKubelet
from exporter.tenants.protocol import Allocation
from simulator.fleet import Fleet
from simulator.scenario import Pod, Workload
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import POD


def kubelet(fleet: Fleet, node: str, folder: Path) -> FakeKubelet:
    """Return a kubelet that has given the devices out as the scenario says; not started."""
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
    """Return an API server that knows the scenario's pods."""
    kube = FakeKube()
    for workload in fleet.scenario.workloads:
        for pod in workload.pods:
            await kube.create(POD, _body(workload, pod), workload.namespace)
    return kube


def _body(workload: Workload, pod: Pod) -> dict[str, object]:
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
        "spec": {"nodeName": pod.devices[0].node, "containers": [{"name": pod.container}]},
        "status": {"phase": "Running"},
    }
