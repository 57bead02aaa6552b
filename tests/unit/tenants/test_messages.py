import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.tenants import messages
from exporter.tenants import podresources_pb2 as pb
from exporter.tenants.messages import ContainerName
from exporter.tenants.protocol import Allocation

names = st.text(min_size=1, max_size=12)
containers = st.builds(ContainerName, names, names, names)
plugin_devices = st.fixed_dictionaries(
    {"resource": st.from_regex(r"[a-z.]{1,9}/[a-z.]{1,9}", fullmatch=True)}
)
texts = st.text(max_size=5)
claimed_devices = st.fixed_dictionaries(
    {"resource": st.from_regex(r"[a-z.]{1,9}", fullmatch=True), "share": texts, "pool": texts,
     "claim": texts, "claim_namespace": texts},
)  # fmt: skip


@st.composite
def allocations(draw):
    name = draw(containers)
    about = draw(plugin_devices | claimed_devices)
    return Allocation(**name._asdict(), device_id=draw(st.text(max_size=12)), **about)


@given(st.lists(allocations()), st.lists(containers))
def test_what_is_written_is_read_again(held, idle):
    answer = messages.encode(held, idle)

    assert sorted(messages.decode(answer)) == sorted(held)


def test_containers_of_one_pod_are_listed_under_one_pod():
    held = [
        Allocation(
            namespace="ml", pod="p", container="a", resource="nvidia.com/gpu", device_id="1"
        ),
        Allocation(
            namespace="ml", pod="p", container="b", resource="nvidia.com/gpu", device_id="2"
        ),
        Allocation(
            namespace="ml", pod="p", container="a", resource="nvidia.com/gpu", device_id="3"
        ),
    ]

    answer = pb.ListPodResourcesResponse.FromString(
        messages.encode(held, [ContainerName("ml", "p", "idle")])
    )

    (pod,) = answer.pod_resources
    assert [c.name for c in pod.containers] == ["a", "b", "idle"]
    assert list(pod.containers[0].devices[0].device_ids) == ["1", "3"]
    assert not pod.containers[2].devices


def test_a_resource_that_is_listed_once_for_each_device_is_read_whole():
    devices = [
        pb.ContainerDevices(
            resource_name="nvidia.com/gpu",
            device_ids=[f"GPU-{node}"],
            topology=pb.TopologyInfo(nodes=[pb.NUMANode(ID=node)]),
        )
        for node in range(2)
    ]
    container = pb.ContainerResources(
        name="c",
        devices=devices,
        cpu_ids=[4, 5],
        memory=[pb.ContainerMemory(memory_type="memory")],
    )
    pod = pb.PodResources(name="p", namespace="ml", containers=[container])
    answer = pb.ListPodResourcesResponse(pod_resources=[pod]).SerializeToString()

    assert [a.device_id for a in messages.decode(answer)] == ["GPU-0", "GPU-1"]


def test_a_claim_is_read_by_its_name_and_each_device_by_driver_pool_and_share():
    claimed = [
        pb.ClaimResource(
            cdi_devices=[pb.CDIDevice(name="k8s.gpu.nvidia.com/device=x")],
            driver_name="gpu.nvidia.com",
            pool_name="node-1",
            device_name=f"gpu-{number}",
            share_id=share,
        )
        for number, share in ((0, None), (1, "s-1"))
    ]
    claim = pb.DynamicResource(
        claim_name="training", claim_namespace="ml", claim_resources=claimed
    )
    container = pb.ContainerResources(name="c", dynamic_resources=[claim])
    pod = pb.PodResources(name="p", namespace="ml", containers=[container])
    answer = pb.ListPodResourcesResponse(pod_resources=[pod]).SerializeToString()

    about = {"namespace": "ml", "pod": "p", "container": "c", "resource": "gpu.nvidia.com",
             "pool": "node-1", "claim": "training", "claim_namespace": "ml"}  # fmt: skip
    assert messages.decode(answer) == (
        Allocation(device_id="gpu-0", **about),
        Allocation(device_id="gpu-1", share="s-1", **about),
    )


def test_the_devices_of_one_claim_are_listed_under_one_claim():
    names = [("a", "gpu-0"), ("b", "gpu-1"), ("a", "gpu-2")]
    held = [
        Allocation(
            namespace="ml", pod="p", container="c", resource="gpu.nvidia.com", device_id=device,
            claim=claim, claim_namespace="ml",
        )
        for claim, device in names
    ]  # fmt: skip

    (pod,) = pb.ListPodResourcesResponse.FromString(messages.encode(held)).pod_resources

    claims = pod.containers[0].dynamic_resources
    assert [(c.claim_name, [d.device_name for d in c.claim_resources]) for c in claims] == [
        ("a", ["gpu-0", "gpu-2"]), ("b", ["gpu-1"]),
    ]  # fmt: skip


def test_a_field_of_a_newer_kubelet_is_skipped():
    pod = pb.PodResources(name="p", namespace="ml").SerializeToString()
    newer = pod + bytes([0x7A, 3]) + b"new"  # field 15, three bytes
    answer = bytes([0x0A, len(newer)]) + newer

    assert messages.decode(answer) == ()


def test_bytes_of_another_kind_are_refused():
    with pytest.raises(messages.MessageError, match="3 bytes are not a ListPodResourcesResponse"):
        messages.decode(b"\xff\xff\xff")


def test_the_numbers_on_the_wire_are_the_kubelets():
    # Written out by hand: pod_resources=1 { name=1, namespace=2, containers=3 { name=1,
    # devices=2 { resource_name=1, device_ids=2 }, dynamic_resources=5 { claim_name=2,
    # claim_namespace=3, claim_resources=4 { driver_name=2, pool_name=3, device_name=4,
    # share_id=5 } } } }
    devices = b"\x0a\x0envidia.com/gpu\x12\x05GPU-a"
    device = b"\x12\x01d" + b"\x1a\x02p1" + b"\x22\x01n" + b"\x2a\x03s-1"
    claim = b"\x12\x02rc" + b"\x1a\x02ns" + bytes([0x22, len(device)]) + device
    container = b"\x0a\x01c" + bytes([0x12, len(devices)]) + devices
    container += bytes([0x2A, len(claim)]) + claim
    pod = b"\x0a\x01p" + b"\x12\x02ml" + bytes([0x1A, len(container)]) + container

    plugin, claimed = messages.decode(bytes([0x0A, len(pod)]) + pod)

    assert plugin == Allocation(
        namespace="ml", pod="p", container="c", resource="nvidia.com/gpu", device_id="GPU-a"
    )
    assert claimed == Allocation(
        namespace="ml", pod="p", container="c", resource="d", device_id="n", share="s-1",
        pool="p1", claim="rc", claim_namespace="ns",
    )  # fmt: skip
