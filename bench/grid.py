"""A cluster of any number of nodes, for the curve of the adapter's cost over its size.

Eight GPUs a node and a pod on each. Pools of about twenty pods are spread over the whole cluster,
so that an autoscaler's question always concerns as many nodes as it has pods, if there are so many.
"""

from collections.abc import Iterator
from typing import Any, Final

from bench.population import GPUS_PER_NODE, NAMESPACE, Placed, node_name

POOL: Final = 20
ENDPOINTS_PER_SLICE: Final = 100  # as Kubernetes' own controller fills them
EXPORTERS_NAMESPACE: Final = "slicewatch"
SERVICE: Final = "slicewatch-exporter"
STAMPED: Final = "gpu_memory_used_bytes"
"""The metric whose value is the moment of its reading, on the machine's monotonic clock."""


def pools(nodes: int) -> int:
    """Return how many pools there are."""
    return nodes * GPUS_PER_NODE // POOL


def pods_on(node: int, nodes: int) -> list[Placed]:
    """Return the pods of a node."""
    spread = pools(nodes)
    positions = range(node * GPUS_PER_NODE, (node + 1) * GPUS_PER_NODE)
    return [
        Placed(pool=at % spread, name=f"pool-{at % spread}-{at:06}", node=node, gpu=gpu)
        for gpu, at in enumerate(positions)
    ]


def address(node: int) -> str:
    """Return the loopback address of a node's exporter; every node has one of its own."""
    return f"127.{10 + node // 65_536}.{node // 256 % 256}.{node % 256}"


def node_at(host: str) -> int:
    """Return the node whose exporter has an address."""
    _, upper, middle, lower = map(int, host.split("."))
    return (upper - 10) * 65_536 + middle * 256 + lower


def node_manifest(node: int) -> dict[str, Any]:
    """Return a node as an API server has it."""
    offers = {"cpu": "192", "memory": "2Ti", "nvidia.com/gpu": str(GPUS_PER_NODE)}
    return {"metadata": {"name": node_name(node)}, "status": {"allocatable": offers}}


def slices(nodes: int, port: int) -> Iterator[dict[str, Any]]:
    """Yield the EndpointSlices of the exporters' Service."""
    for first in range(0, nodes, ENDPOINTS_PER_SLICE):
        members = range(first, min(nodes, first + ENDPOINTS_PER_SLICE))
        yield {
            "metadata": {
                "name": f"{SERVICE}-{first}", "labels": {"kubernetes.io/service-name": SERVICE},
            },
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": port}],
            "endpoints": [
                {"addresses": [address(node)], "conditions": {}, "nodeName": node_name(node)}
                for node in members
            ],
        }  # fmt: skip


def path(pool: int) -> str:
    """Return what an autoscaler asks for a pool's pods."""
    return (
        f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{NAMESPACE}/pods/%2A/{STAMPED}"
        f"?labelSelector=app%3Dpool-{pool}"
    )
