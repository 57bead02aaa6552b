"""A cluster of any number of nodes, for the curve of the adapter's cost over its size.

Eight GPUs a node and a pod on each. Pools of about twenty pods are spread over the whole cluster,
so that an autoscaler's question always concerns as many nodes as it has pods, if there are so many.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any, Final

from bench.population import GPUS_PER_NODE, NAMESPACE, Placed, node_name

POOL: Final = 20
ENDPOINTS_PER_SLICE: Final = 100  # as Kubernetes' own controller fills them
EXPORTERS_NAMESPACE: Final = "slicewatch"
SERVICE: Final = "slicewatch-exporter"
STAMPED: Final = "gpu_memory_used_bytes"
"""The metric whose value is the moment of its reading, on the machine's monotonic clock."""
LOOPBACK: Final = IPv4Network("127.10.0.0/15")
"""Where every exporter has an address of its own, on any machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """An API server that has all nodes, pods and exporters' endpoints.

    Attributes:
        kubeconfig: of the adapter.
        seconds: how long each step of making it took, by the words of the table.
    """

    kubeconfig: Path
    seconds: Mapping[str, float] = field(default_factory=dict)


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


def address(node: int, network: IPv4Network = LOOPBACK) -> str:
    """Return the address of a node's exporter; every node has one of its own."""
    return str(network[node])


def node_at(host: str) -> int:
    """Return the node whose exporter has an address, in whichever network of that size."""
    return int(IPv4Address(host)) & int(LOOPBACK.hostmask)


def node_manifest(node: int) -> dict[str, Any]:
    """Return a node as an API server has it."""
    offers = {"cpu": "192", "memory": "2Ti", "nvidia.com/gpu": str(GPUS_PER_NODE)}
    return {"metadata": {"name": node_name(node)}, "status": {"allocatable": offers}}


def slices(nodes: int, port: int, network: IPv4Network = LOOPBACK) -> Iterator[dict[str, Any]]:
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
                {
                    "addresses": [address(node, network)], "conditions": {},
                    "nodeName": node_name(node),
                }
                for node in members
            ],
        }  # fmt: skip


def path(pool: int) -> str:
    """Return what an autoscaler asks for a pool's pods."""
    return (
        f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{NAMESPACE}/pods/%2A/{STAMPED}"
        f"?labelSelector=app%3Dpool-{pool}"
    )
