"""The facts from lists and watches of the objects as the API server writes them."""

from typing import Any

import pytest

from adapter.cluster.facts import ClusterFacts, series_of
from adapter.cluster.freshness import Caches, OutdatedError
from slicewatch.catalog import CATALOG
from slicewatch.kube.cache import Cache
from slicewatch.kube.errors import UnavailableError
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import NODE, POD, PRIORITY_CLASS, RESOURCE_QUOTA, Kind

OBJECTS: list[tuple[Kind[Any], dict[str, Any]]] = [
    (NODE, {
        "metadata": {
            "name": "gpu-node-1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "kubernetes.io/hostname": "gpu-node-1",
                "nvidia.com/gpu.product": "A100-SXM4-80GB",
                "nvidia.com/mig.config": "all-1g.10gb",
            },
        },
        "spec": {"podCIDR": "10.0.0.0/24", "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"cpu": "64", "nvidia.com/mig-1g.10gb": "7"},
            "allocatable": {"cpu": "63500m", "memory": "500Gi", "nvidia.com/mig-1g.10gb": "6"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }),
    (PRIORITY_CLASS, {
        "metadata": {"name": "gpu-critical"}, "value": 1_000_000, "globalDefault": False,
        "description": "may preempt others", "preemptionPolicy": "PreemptLowerPriority",
    }),
    (RESOURCE_QUOTA, {
        "metadata": {"name": "q", "namespace": "team-a"},
        "spec": {"hard": {"requests.nvidia.com/mig-1g.10gb": "14"}},
        "status": {
            "hard": {"requests.nvidia.com/mig-1g.10gb": "14"},
            "used": {"requests.nvidia.com/mig-1g.10gb": "2"},
        },
    }),
    (POD, {
        "metadata": {"name": "runs", "namespace": "team-a"},
        "spec": {
            "nodeName": "gpu-node-1", "priority": 100_000, "priorityClassName": "gpu-low",
            "preemptionPolicy": "PreemptLowerPriority",
            "containers": [{"name": "c", "resources": {
                "limits": {"nvidia.com/mig-1g.10gb": "2"},
                "requests": {"nvidia.com/mig-1g.10gb": "2"},
            }}],
        },
        "status": {"phase": "Running", "conditions": [
            {"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"},
        ]},
    }),
    (POD, {
        "metadata": {
            "name": "waits", "namespace": "team-a", "creationTimestamp": "2026-09-21T14:14:00Z",
        },
        "spec": {
            "priority": 1_000_000, "priorityClassName": "gpu-critical",
            "nodeSelector": {"nvidia.com/gpu.product": "A100-SXM4-80GB"},
            "containers": [{"name": "c", "resources": {
                "requests": {"nvidia.com/mig-1g.10gb": "5"},
            }}],
        },
        "status": {"phase": "Pending", "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "lastTransitionTime": "2026-09-21T14:14:01Z",
            "message": "0/1 nodes are available: 1 Insufficient nvidia.com/mig-1g.10gb.",
        }]},
    }),
]  # fmt: skip
MIG = "nvidia.com/mig-1g.10gb"
GROUP = ("A100-SXM4-80GB", "all-1g.10gb", "", MIG, "1g.10gb")


@pytest.fixture
async def kube() -> FakeKube:
    made = FakeKube()
    for kind, body in OBJECTS:
        await made.create(kind, body, body["metadata"].get("namespace", ""))
    return made


def watching(kube: FakeKube) -> Caches:
    return Caches(
        pods=Cache(kube, POD),
        nodes=Cache(kube, NODE),
        quotas=Cache(kube, RESOURCE_QUOTA),
        priority_classes=Cache(kube, PRIORITY_CLASS),
    )


def every(caches: Caches) -> list[Cache[Any]]:
    return [caches.pods, caches.nodes, caches.quotas, caches.priority_classes]


async def test_all_facts_come_from_the_first_lists(kube: FakeKube, cluster: Any) -> None:
    caches = watching(kube)
    facts = ClusterFacts(caches, cluster.view)
    for cache in every(caches):
        await cache.refresh()
    expected: dict[str, dict[tuple[str, ...], float]] = {
        "gpu_cluster_allocatable_devices": {GROUP: 6},
        "gpu_cluster_requested_devices": {GROUP: 2},
        "gpu_cluster_free_devices": {GROUP: 4},
        "gpu_cluster_stranded_devices": {GROUP: 4},
        "gpu_cluster_pending_devices": {("team-a", MIG, "gpu-critical", "InsufficientDevices"): 5},
        "gpu_cluster_longest_pending_seconds": {("team-a", MIG): 60.0},
        "gpu_cluster_preemptible_ratio": {(MIG,): 1.0},
        "gpu_cluster_preemption_exposed_devices": {(MIG,): 2},
        "gpu_cluster_quota_used_ratio": {("team-a", "q", "requests", MIG): pytest.approx(2 / 14)},
    }
    for name, series in expected.items():
        metric = CATALOG[name]
        assert series_of(metric, facts.fact(metric.origin)) == series


async def test_a_right_that_is_lacking_costs_its_own_families_only(
    kube: FakeKube, cluster: Any
) -> None:
    caches = watching(kube)
    facts = ClusterFacts(caches, cluster.view)
    for cache in every(caches):
        if cache is not caches.quotas:
            await cache.refresh()
    caches.quotas.fault = "403 forbidden"
    with pytest.raises(OutdatedError, match=r"quotas .* not listed yet: 403 forbidden"):
        facts.fact(CATALOG["gpu_cluster_quota_used_ratio"].origin)
    assert facts.fact(CATALOG["gpu_cluster_free_devices"].origin)


async def test_a_new_list_that_lacks_a_pod_takes_it_out_of_the_sums(
    kube: FakeKube, cluster: Any
) -> None:
    """Its deletion was missed while the watch was broken."""
    caches = watching(kube)
    facts = ClusterFacts(caches, cluster.view)
    for cache in every(caches):
        await cache.refresh()
    kube.delete(POD, "runs", "team-a")
    await caches.pods.refresh()
    metric = CATALOG["gpu_cluster_free_devices"]
    assert series_of(metric, facts.fact(metric.origin)) == {GROUP: 6}


def test_a_fact_is_made_once_a_second_at_most(cluster: Any) -> None:
    origin = CATALOG["gpu_cluster_free_devices"].origin
    first = cluster.facts.fact(origin).reading
    cluster.put(cluster.node("n", {"gpu": 1}))
    cluster.pass_seconds(0.9)
    assert cluster.facts.fact(origin).reading is first
    assert cluster.facts.fact(origin).read_at == cluster.wall.at - 0.9
    cluster.pass_seconds(0.1)
    assert cluster.facts.fact(origin).reading is not first


def test_what_has_not_changed_for_hours_is_as_of_now(cluster: Any) -> None:
    origin = CATALOG["gpu_cluster_free_devices"].origin
    first = cluster.facts.fact(origin).reading
    cluster.pass_seconds(7200.0)
    again = cluster.facts.fact(origin)
    assert again.reading is first
    assert again.read_at == cluster.wall.at


def test_what_was_read_before_a_watch_failed_is_dated_so(cluster: Any) -> None:
    origin = CATALOG["gpu_cluster_free_devices"].origin
    assert cluster.facts.fact(origin).read_at == cluster.wall.at
    cluster.caches.nodes.fault = str(UnavailableError("503 starting"))
    cluster.pass_seconds(5.0)
    cluster.put(cluster.node("n", {"gpu": 1}))
    assert cluster.facts.fact(origin).read_at == cluster.wall.at - 5.0
