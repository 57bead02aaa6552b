"""The pods of the adapter's benchmark and where they run: one place, for all who play a part.

Inference pools of three sizes on nodes of eight GPUs, each pod with a GPU of its own, all in one
cluster: whatever the size of the pool that is asked for, the adapter follows every node.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from simulator import identity

NAMESPACE: Final = "inference"
CONTAINER: Final = "server"
POOLS: Final = (4, 100, 1000)
GPUS_PER_NODE: Final = 8
METRIC: Final = "gpu_utilization"
_REVISION: Final = "7c9d8b5f6d"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A pod and its GPU. ``node`` counts the nodes, ``gpu`` the GPUs of the node."""

    pool: int
    name: str
    node: int
    gpu: int

    @property
    def gpu_uuid(self) -> str:
        """The uuid of the GPU that it holds."""
        return gpu_uuid(self.node, self.gpu)

    def manifest(self) -> dict[str, Any]:
        """Return the pod as an API server has it."""
        deployment = f"pool-{self.pool}"
        owner = {"kind": "ReplicaSet", "name": f"{deployment}-{_REVISION}", "controller": True}
        container = {
            "name": CONTAINER,
            "resources": {"requests": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}},
        }
        return {
            "metadata": {
                "name": self.name,
                "labels": {"app": deployment, "pod-template-hash": _REVISION},
                "ownerReferences": [owner],
            },
            "spec": {"nodeName": node_name(self.node), "containers": [container]},
            "status": {"phase": "Running"},
        }


def accepted(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a pod as a real API server takes it: with what it insists on and ours does not read.

    Its status is left to whoever runs it.
    """
    (container,) = manifest["spec"]["containers"]
    requests = container["resources"]["requests"]
    whole = container | {
        "image": "server",
        "resources": {"requests": requests, "limits": requests},
    }
    (owner,) = manifest["metadata"]["ownerReferences"]
    owned = owner | {"apiVersion": "apps/v1", "uid": owner["name"]}
    return {
        "metadata": manifest["metadata"] | {"ownerReferences": [owned]},
        "spec": manifest["spec"] | {"containers": [whole]},
    }


def node_name(number: int) -> str:
    """Return the name of a node."""
    return f"gpu-node-{number:03}"


def gpu_uuid(node: int, gpu: int) -> str:
    """Return the uuid of a GPU of a node."""
    return identity.gpu_uuid("bench", node_name(node), gpu)


def pods() -> Iterator[Placed]:
    """Yield all pods, node after node."""
    numbers = ((pool, number) for pool in POOLS for number in range(pool))
    for position, (pool, number) in enumerate(numbers):
        node, gpu = divmod(position, GPUS_PER_NODE)
        yield Placed(
            pool=pool, name=f"pool-{pool}-{_REVISION}-{number:05}",
            node=node, gpu=gpu,
        )  # fmt: skip


def by_node() -> list[list[Placed]]:
    """Return the pods of each node, in the order of the nodes."""
    nodes: dict[int, list[Placed]] = {}
    for pod in pods():
        nodes.setdefault(pod.node, []).append(pod)
    return [nodes[number] for number in sorted(nodes)]


def path(pool: int, metric: str = METRIC) -> str:
    """Return what an autoscaler asks to know a metric of a pool's pods."""
    return question(metric, f"app=pool-{pool}")


def question(metric: str, selector: str) -> str:
    """Return what an autoscaler asks to know a metric of the pods that a selector takes.

    The star is escaped, as Go's clients do: the peer compares paths to the letter.
    """
    return (
        f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{NAMESPACE}/pods/%2A/{metric}"
        f"?labelSelector={quote(selector)}"
    )
