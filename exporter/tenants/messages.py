"""PodResources v1 on the wire: encodes and decodes the kubelet's list of allocations.

``podresources_pb2.py`` and its ``.pyi`` are generated from ``podresources.proto``; in the
repository's root::

    python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. exporter/tenants/podresources.proto
    sed -i '1i # mypy: disable-error-code=type-arg' exporter/tenants/podresources_pb2.pyi

The second line is for protoc's bare ``Mapping``, which strict type checking rejects.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from google.protobuf.message import DecodeError

from exporter.tenants import podresources_pb2 as pb
from exporter.tenants.protocol import Allocation

SERVICE = "v1.PodResourcesLister"
LIST = "List"

REQUEST = pb.ListPodResourcesRequest().SerializeToString()


class MessageError(ValueError):
    """Bytes that are not a valid answer to ``List``."""


class ContainerName(NamedTuple):
    """A container of a node."""

    namespace: str
    pod: str
    container: str


def decode(answer: bytes) -> tuple[Allocation, ...]:
    """Return the device ids of an answer to ``List``, in the kubelet's order.

    Raises:
        MessageError: the bytes are truncated or another message.
    """
    try:
        message = pb.ListPodResourcesResponse.FromString(answer)
    except DecodeError as error:
        raise MessageError(f"{len(answer)} bytes are not a ListPodResourcesResponse") from error
    return tuple(
        allocation
        for pod in message.pod_resources
        for container in pod.containers
        for allocation in _held(ContainerName(pod.namespace, pod.name, container.name), container)
    )


def _held(name: ContainerName, container: pb.ContainerResources) -> Iterator[Allocation]:
    namespace, pod, own = name
    for devices in container.devices:
        resource = devices.resource_name
        for device_id in devices.device_ids:
            yield Allocation(
                namespace=namespace, pod=pod, container=own, resource=resource, device_id=device_id
            )
    for claim in container.dynamic_resources:
        for device in claim.claim_resources:
            yield Allocation(
                namespace=namespace,
                pod=pod,
                container=own,
                resource=device.driver_name,
                device_id=device.device_name,
                share=device.share_id,
            )


def encode(allocations: Iterable[Allocation], idle: Iterable[ContainerName] = ()) -> bytes:
    """Return what a kubelet answers to ``List`` where containers hold ``allocations``.

    Args:
        allocations: held devices, in the order in which to list them.
        idle: containers that are listed without holding anything.
    """
    held: dict[ContainerName, list[Allocation]] = {}
    for a in allocations:
        held.setdefault(ContainerName(a.namespace, a.pod, a.container), []).append(a)
    pods: dict[tuple[str, str], pb.PodResources] = {}
    for name in dict.fromkeys((*held, *idle)):
        pod = pods.setdefault(name[:2], pb.PodResources(name=name.pod, namespace=name.namespace))
        pod.containers.append(_container(name, held.get(name, [])))
    return pb.ListPodResourcesResponse(pod_resources=pods.values()).SerializeToString()


def _container(name: ContainerName, held: list[Allocation]) -> pb.ContainerResources:
    by_plugin: dict[str, list[str]] = defaultdict(list)
    claims: list[pb.DynamicResource] = []
    for a in held:
        if "/" in a.resource:
            by_plugin[a.resource].append(a.device_id)
        else:
            claims.append(_claim(name, a, len(claims)))
    devices = [
        pb.ContainerDevices(resource_name=resource, device_ids=ids)
        for resource, ids in by_plugin.items()
    ]
    return pb.ContainerResources(name=name.container, devices=devices, dynamic_resources=claims)


def _claim(name: ContainerName, a: Allocation, number: int) -> pb.DynamicResource:
    device = pb.ClaimResource(
        driver_name=a.resource, device_name=a.device_id, share_id=a.share or None
    )
    return pb.DynamicResource(
        claim_name=f"{name.pod}-{name.container}-{number}",
        claim_namespace=name.namespace,
        claim_resources=[device],
    )
