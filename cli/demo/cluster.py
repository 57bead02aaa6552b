"""What a simulated fleet needs around it: one kubelet per node, and an API server with pods."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from adapter.registration import api_services
from exporter.tenants.fake import FakeKubelet
from exporter.tenants.protocol import Allocation, Offer
from simulator import identity
from simulator.fleet import Fleet
from simulator.scenario import Pod, Workload
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import API_SERVICE, NODE, POD

ADAPTER_NAMESPACE = "slicewatch"


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
    made.offer(Offer(*offer) for offer in fleet.truth.offers(node, fleet.now))
    return made


async def api_server(fleet: Fleet) -> FakeKube:
    """Return an API server with the nodes and pods of the scenario."""
    kube = FakeKube()
    requests: dict[tuple[str, str, str], dict[str, str]] = {}
    for node in fleet.nodes:
        offered = Counter(resource for resource, _ in fleet.truth.offers(node.name, fleet.now))
        allocatable = {resource: str(count) for resource, count in offered.items()}
        body: dict[str, object] = {"metadata": {"name": node.name}}
        await kube.create(NODE, body | {"status": {"allocatable": allocatable}})
        for held in fleet.truth.allocations(node.name, fleet.now):
            wanted = requests.setdefault((held.namespace, held.pod, held.container), {})
            wanted[held.resource] = str(len(held.device_ids))
    for workload in fleet.scenario.workloads:
        # What runs on the host is in no pod.
        for pod in () if workload.host else workload.pods:
            body = _body(fleet.scenario.seed, workload, pod, requests)
            await kube.create(POD, body, workload.namespace)
    return kube


async def register(kube: FakeKube, service: str) -> None:
    """Let the metrics APIs be those of a Service, as an installation does."""
    where = {"namespace": ADAPTER_NAMESPACE, "name": service}
    for name in api_services(external=True):
        await kube.create(API_SERVICE, {"metadata": {"name": name}, "spec": {"service": where}})


def _body(
    seed: str,
    workload: Workload,
    pod: Pod,
    requests: Mapping[tuple[str, str, str], dict[str, str]],
) -> dict[str, object]:
    owner, _, _ = pod.name.rpartition("-")
    controller = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": owner,
        "uid": owner,
        "controller": True,
    }
    containers = [
        {
            "name": part.name,
            "resources": {
                "requests": requests.get((workload.namespace, pod.name, part.name), {}),
            },
        }
        for part in pod.parts()
    ]
    return {
        "metadata": {
            "name": pod.name,
            "uid": identity.pod_uid(seed, workload.namespace, pod.name),
            "labels": {"app": workload.name},
            "ownerReferences": [controller],
        },
        "spec": {"nodeName": pod.holdings()[0].node, "containers": containers},
        "status": {"phase": "Running"},
    }
