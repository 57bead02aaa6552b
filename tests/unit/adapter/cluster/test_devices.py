"""GPUs and MIG slices of nodes: what is offered, requested, free, and what is not as it should be."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.cluster.asks import Asks
from adapter.cluster.devices import Devices, uses
from adapter.cluster.resources import count, counts, group_of, profile_of
from slicewatch.kube.objects import Node, Pod

PRODUCT = "nvidia.com/gpu.product"
A100 = ("A100-SXM4-80GB", "mixed", "", "nvidia.com/mig-1g.10gb", "1g.10gb")


def test_devices_are_counted_by_product_layout_resource_and_profile(cluster: Any) -> None:
    labels = {"gpu__product": "A100-SXM4-80GB", "mig__config": "mixed"}
    offered = {"gpu": 2, "mig-1g.10gb": 7, "mig-3g.40gb": 2}
    cluster.put(cluster.node("gpu-node-1", offered, **labels))
    cluster.put(cluster.pod("a", {"mig-1g.10gb": 3}, node="gpu-node-1"))
    cluster.put(cluster.pod("ended", {"mig-1g.10gb": 1}, node="gpu-node-1", phase="Failed"))
    cluster.put(cluster.pod("waits", {"mig-1g.10gb": 1}))
    assert cluster.series("gpu_cluster_allocatable_devices")[A100] == 7
    assert cluster.series("gpu_cluster_requested_devices")[A100] == 3
    assert cluster.series("gpu_cluster_free_devices") == {
        A100: 4,
        ("A100-SXM4-80GB", "mixed", "", "nvidia.com/gpu", ""): 2,
        ("A100-SXM4-80GB", "mixed", "", "nvidia.com/mig-3g.40gb", "3g.40gb"): 2,
    }


def test_nodes_that_are_alike_are_one_series_and_others_are_not(cluster: Any) -> None:
    for number, product in enumerate(["H100-SXM5-80GB", "H100-SXM5-80GB", "L40S-48GB"]):
        cluster.put(cluster.node(f"n{number}", {"gpu": 8}, gpu__product=product))
    assert cluster.series("gpu_cluster_free_devices") == {
        ("H100-SXM5-80GB", "", "", "nvidia.com/gpu", ""): 16,
        ("L40S-48GB", "", "", "nvidia.com/gpu", ""): 8,
    }


def test_a_device_that_is_taken_leaves_a_zero_and_a_node_that_goes_leaves_nothing(
    cluster: Any,
) -> None:
    node, pod = cluster.node("n", {"gpu": 1}), cluster.pod("a", {"gpu": 1}, node="n")
    cluster.put(node, pod)
    only = ("", "", "", "nvidia.com/gpu", "")
    assert cluster.series("gpu_cluster_free_devices") == {only: 0}
    cluster.remove(pod)
    assert cluster.series("gpu_cluster_free_devices") == {only: 1}
    cluster.remove(node)
    assert cluster.series("gpu_cluster_free_devices") == {}


def test_what_is_free_on_a_cordoned_node_is_not_free_to_use(cluster: Any) -> None:
    cluster.put(cluster.node("n", {"gpu": 8}, cordoned=True, gpu__product="H100"))
    cluster.put(cluster.pod("a", {"gpu": 3}, node="n"))
    group = ("H100", "", "", "nvidia.com/gpu", "")
    assert cluster.series("gpu_cluster_cordoned_devices") == {group: 5}
    assert cluster.series("gpu_cluster_free_devices") == {group: 0}
    assert cluster.series("gpu_cluster_node_schedulable") == {("n", "H100", "", "", "H100"): 0}


def test_replicas_of_a_time_sliced_gpu_are_counted_as_what_they_are(cluster: Any) -> None:
    """Four pods per GPU: 32 devices to the scheduler, and the label says that each is a quarter."""
    labels = {"gpu__product": "A100-SXM4-80GB-SHARED", "gpu__replicas": "4"}
    cluster.put(cluster.node("same-name", {"gpu": 32}, **labels))
    cluster.put(cluster.node("renamed", {"gpu.shared": 8}, **labels))
    product = "A100-SXM4-80GB-SHARED"
    assert cluster.series("gpu_cluster_allocatable_devices") == {
        (product, "", "4", "nvidia.com/gpu", ""): 32,
        (product, "", "4", "nvidia.com/gpu.shared", ""): 8,
    }


def test_more_requested_than_offered_is_said_by_node_and_free_is_never_negative(
    cluster: Any,
) -> None:
    """After another MIG layout was applied, or a device failed, under pods that run on."""
    cluster.put(cluster.node("n", {"mig-1g.10gb": 7}), cluster.node("other", {"mig-1g.10gb": 7}))
    cluster.put(cluster.pod("a", {"mig-1g.10gb": 5}, node="n"))
    cluster.put(cluster.node("n", {"mig-1g.10gb": 2}))
    assert sum(cluster.series("gpu_cluster_free_devices").values()) == 7
    excess = cluster.series("gpu_cluster_overcommitted_devices")
    assert excess == {("n", "nvidia.com/mig-1g.10gb"): 3}


def test_nodes_without_gpus_have_no_series(cluster: Any) -> None:
    cluster.put(cluster.node("cpu"), cluster.node("emptied", {"mig-1g.10gb": 0}))
    assert cluster.series("gpu_cluster_allocatable_devices") == {}
    assert cluster.series("gpu_cluster_node_schedulable") == {}


@pytest.mark.parametrize(
    ("resource", "product", "profile"),
    [
        ("nvidia.com/mig-1g.10gb", "", "1g.10gb"),
        ("nvidia.com/mig-1g.10gb.me", "", "1g.10gb+me"),
        ("nvidia.com/mig-1g.10gb.shared", "", "1g.10gb"),
        ("nvidia.com/gpu", "A100-SXM4-40GB-MIG-1g.5gb", "1g.5gb"),
        ("nvidia.com/gpu", "A100-SXM4-40GB-MIG-1g.5gb-SHARED", "1g.5gb"),
        ("nvidia.com/gpu", "NVIDIA-A100-SXM4-80GB-MIG-INVALID", ""),
        ("nvidia.com/gpu", "A100-SXM4-40GB", ""),
        ("nvidia.com/gpu.shared", "", ""),
    ],
)
def test_the_profile_comes_from_the_resource_or_else_the_product(
    resource: str, product: str, profile: str
) -> None:
    assert profile_of(resource, product) == profile


def test_the_replicas_of_a_mig_resource_are_its_own_label() -> None:
    labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/mig-1g.10gb.replicas": "2"}
    assert group_of("nvidia.com/mig-1g.10gb.shared", labels).replicas == "2"


@pytest.mark.parametrize(
    ("quantity", "number"),
    [
        ("8", 8),
        ("0", 0),
        ("1k", 1000),
        ("2M", 2_000_000),
        ("1500m", None),
        ("4Gi", None),
        ("", None),
    ],
)
def test_a_quantity_of_devices_is_a_whole_number(quantity: str, number: int | None) -> None:
    assert count(quantity) == number
    assert counts({"nvidia.com/gpu": quantity, "cpu": "8"}) == (
        {} if number is None else {"nvidia.com/gpu": number}
    )


RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-1g.10gb")
QUANTITIES = st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 4).map(str))
NODES = st.builds(
    lambda name, cordoned, product, offered: {
        "metadata": {"name": name, "labels": {PRODUCT: product} if product else {}},
        "spec": {"unschedulable": cordoned},
        "status": {"allocatable": offered},
    },
    st.sampled_from(["n1", "n2", "n3"]),
    st.booleans(),
    st.sampled_from(["", "H100", "A100"]),
    QUANTITIES,
).map(lambda body: msgspec.convert(body, Node))
PODS = st.builds(
    lambda name, node, phase, requested: {
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"requests": requested}}],
        },
        "status": {"phase": phase},
    },
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["", "n1", "n2", "n9"]),
    st.sampled_from(["Pending", "Running", "Succeeded"]),
    QUANTITIES,
).map(lambda body: msgspec.convert(body, Pod))
CHANGES = st.lists(st.tuples(st.booleans(), NODES | PODS), max_size=25)


class Fleet:
    """Devices that follow changes, and what is there, to count it again."""

    def __init__(self) -> None:
        self.devices = Devices()
        self.asks = Asks(self.devices.ask_changed)
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}

    def apply(self, gone: bool, thing: Node | Pod) -> None:
        held: dict[str, Any] = self.nodes if isinstance(thing, Node) else self.pods
        old = held.pop(thing.metadata.name, None)
        new = None if gone else thing
        if new is not None:
            held[thing.metadata.name] = new
        if old is not None or new is not None:
            hear: Any = self.devices.node_changed if isinstance(thing, Node) else self.asks.changed
            hear(old, new)

    def recounted(self) -> Devices:
        again = Fleet()
        for thing in (*self.pods.values(), *self.nodes.values()):
            again.apply(False, thing)
        return again.devices


@given(CHANGES)
def test_sums_are_those_of_a_count_from_scratch_after_any_changes(changes: Any) -> None:
    fleet = Fleet()
    for gone, thing in changes:
        fleet.apply(gone, thing)
    assert fleet.devices.counted() == fleet.recounted().counted()
    for thing in (*list(fleet.pods.values()), *list(fleet.nodes.values())):
        fleet.apply(True, thing)
    empty = {n: v for n, v in vars(fleet.devices).items() if not isinstance(v, dict)}
    assert not any(tally.sums for tally in empty.values())
    assert not any(v for v in vars(fleet.devices).values() if isinstance(v, dict))


@given(CHANGES)
def test_what_is_offered_and_overcommitted_is_what_is_requested_free_and_cordoned(
    changes: Any,
) -> None:
    fleet = Fleet()
    for gone, thing in changes:
        fleet.apply(gone, thing)
    found = fleet.devices.counted()
    for series in (found.allocatable, found.requested, found.free, found.cordoned):
        assert all(value >= 0 for value in series.values())
    assert all(value > 0 for value in found.overcommitted.values())
    sides = (
        (found.allocatable, found.overcommitted),
        (found.requested, found.free, found.cordoned),
    )
    left, right = (sum(sum(s.values()) for s in side) for side in sides)
    assert left == right


@given(CHANGES)
def test_the_sums_are_what_nodes_and_pods_say_counted_by_hand(changes: Any) -> None:
    fleet = Fleet()
    for gone, thing in changes:
        fleet.apply(gone, thing)
    offered: Counter[str] = Counter()
    for node in fleet.nodes.values():
        offered.update({r: int(n) for r, n in node.status.allocatable.items()})
    requested: Counter[str] = Counter()
    for pod in fleet.pods.values():
        if pod.spec.node_name and pod.status.phase != "Succeeded":
            quantities = pod.spec.containers[0].resources.requests
            requested.update({r: int(n) for r, n in quantities.items()})
    found = fleet.devices.counted()
    for series, expected in ((found.allocatable, offered), (found.requested, requested)):
        sums: Counter[str] = Counter()
        for key, value in series.items():
            sums[key[3]] += int(value)
        assert +sums == +expected


def test_a_node_that_is_not_known_offers_nothing() -> None:
    (use,) = uses(None, {"nvidia.com/gpu": 2})
    assert (use.allocatable, use.spare, use.overcommitted, use.open) == (0, 0, 2, False)
