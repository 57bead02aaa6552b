"""PodResources v1 on the wire: encodes and decodes the kubelet's lists of allocations and offers.

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
from exporter.tenants.protocol import Allocation, Offer

SERVICE = "v1.PodResourcesLister"
LIST = "List"

ALLOCATABLE = "GetAllocatableResources"

# Both questions are empty messages.
REQUEST = pb.ListPodResourcesRequest().SerializeToString()


class MessageError(ValueError):
    """Bytes that are not a valid answer to the question."""


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


def decode_offers(answer: bytes) -> tuple[Offer, ...]:
    """Return the device ids of an answer to ``GetAllocatableResources``, in the kubelet's order.

    Raises:
        MessageError: the bytes are truncated or another message.
    """
    try:
        message = pb.AllocatableResourcesResponse.FromString(answer)
    except DecodeError as error:
        raise MessageError(f"{len(answer)} bytes are no AllocatableResourcesResponse") from error
    return tuple(
        Offer(devices.resource_name, device_id)
        for devices in message.devices
        for device_id in devices.device_ids
    )


def encode_offers(offers: Iterable[Offer]) -> bytes:
    """Return what a kubelet answers to ``GetAllocatableResources`` where plugins offer these."""
    by_resource: dict[str, list[str]] = defaultdict(list)
    for offer in offers:
        by_resource[offer.resource].append(offer.device_id)
    devices = [
        pb.ContainerDevices(resource_name=resource, device_ids=ids)
        for resource, ids in by_resource.items()
    ]
    return pb.AllocatableResourcesResponse(devices=devices).SerializeToString()


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
                pool=device.pool_name,
                claim=claim.claim_name,
                claim_namespace=claim.claim_namespace,
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
    by_claim: dict[tuple[str, str], list[pb.ClaimResource]] = defaultdict(list)
    for a in held:
        if "/" in a.resource:
            by_plugin[a.resource].append(a.device_id)
        else:
            by_claim[a.claim_namespace, a.claim].append(_claimed(a))
    devices = [
        pb.ContainerDevices(resource_name=resource, device_ids=ids)
        for resource, ids in by_plugin.items()
    ]
    claims = [
        pb.DynamicResource(claim_namespace=namespace, claim_name=claim, claim_resources=claimed)
        for (namespace, claim), claimed in by_claim.items()
    ]
    return pb.ContainerResources(name=name.container, devices=devices, dynamic_resources=claims)


def _claimed(a: Allocation) -> pb.ClaimResource:
    return pb.ClaimResource(
        driver_name=a.resource,
        pool_name=a.pool,
        device_name=a.device_id,
        share_id=a.share or None,
    )
