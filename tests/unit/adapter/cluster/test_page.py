"""The cluster's part of the plain port's ``/metrics``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Cluster
from slicewatch.kube.objects import PriorityClass, ResourceQuota
from slicewatch.service.exposition import Format
from testbed import fleet

GOLDEN = Path(__file__).parents[3] / "golden" / "adapter"
Compare = Callable[[Path, str], None]


def populate(cluster: Any) -> None:
    """Make something of everything, with the names of the users' guides."""
    chosen = {"gpu__product": "A100-SXM4-80GB", "mig__config": "mixed"}
    cluster.put(
        cluster.node("gpu-node-1", {"gpu": 2, "mig-1g.10gb": 7, "mig-3g.40gb": 2}, **chosen),
        cluster.node("gpu-node-2", {"gpu": 8}, gpu__product="H100-SXM5-80GB", cordoned=True),
        cluster.node("gpu-node-3", {"gpu": 4}, gpu__product="L40S-48GB-SHARED", gpu__replicas="4"),
        cluster.pod("online", {"mig-3g.40gb": 1}, node="gpu-node-1", priority=1_000_000),
        cluster.pod("light", {"mig-1g.10gb": 3}, node="gpu-node-1", priorityClassName="gpu-low"),
        cluster.pod("pool", {"gpu": 5}, node="gpu-node-3"),
        cluster.pod("claims", node="gpu-node-1", claims=1),
        cluster.pod(
            "offline-training", {"gpu": 4}, created="2026-09-21T14:00:00Z",
            priorityClassName="gpu-high", priority=900_000,
            condition={"reason": "Unschedulable", "message": "1 Insufficient nvidia.com/gpu."},
        ),
    )  # fmt: skip
    classes = {"gpu-critical": 1_000_000, "gpu-high": 900_000, "gpu-low": 100_000}
    for name, value in classes.items():
        cluster.put(msgspec.convert({"metadata": {"name": name}, "value": value}, PriorityClass))
    quota = {
        "metadata": {"name": "gpu-quota-team-a", "namespace": "team-a"},
        "status": {
            "hard": {"requests.nvidia.com/gpu": "8", "limits.nvidia.com/gpu": "8"},
            "used": {"requests.nvidia.com/gpu": "2"},
        },
    }
    cluster.put(msgspec.convert(quota, ResourceQuota))
    rows = fleet.layout([fleet.gpu(0, node="gpu-node-3")], node="gpu-node-3")
    values = {"gpu_contention_ratio": [0.25], "gpu_contended_seconds_total": [12.0]}
    cluster.receive(fleet.frame(rows, fleet.snapshot(rows, values)))


@pytest.mark.parametrize(
    ("form", "name"),
    [(Format.TEXT, "cluster.txt"), (Format.OPEN_METRICS, "cluster.openmetrics.txt")],
)
def test_the_page_is_as_recorded(cluster: Any, golden: Compare, form: Format, name: str) -> None:
    populate(cluster)
    golden(GOLDEN / name, cluster.page.render(form).decode())


def test_every_family_of_the_cluster_has_series_on_a_busy_one(cluster: Any) -> None:
    populate(cluster)
    declared = {m.name for m in CATALOG if isinstance(m.origin, Cluster)}
    found = {family.removesuffix("_total") for family in cluster.scraped()}
    lacking = {name for name in declared if name.removesuffix("_total") not in found}
    assert lacking == {"gpu_cluster_repartition_pods"}


def test_series_carry_the_labels_that_the_catalog_declares(cluster: Any) -> None:
    populate(cluster)
    for family, samples in cluster.scraped().items():
        metric = CATALOG[family if family in CATALOG else f"{family}_total"]
        for labels, _ in samples:
            assert labels.keys() <= {str(label) for label in metric.labels}


def test_what_is_not_listed_has_no_family_rather_than_zeros(cluster: Any) -> None:
    populate(cluster)
    cluster.caches.pods.synced = False
    known = ("gpu_cluster_quota_", "gpu_cluster_pool_", "gpu_cluster_node_")
    assert all(name.startswith(known) for name in cluster.scraped())
    cluster.caches.pods.synced = True
    assert "gpu_cluster_free_devices" in cluster.scraped()


def test_the_page_is_made_anew_only_where_something_has_changed(cluster: Any) -> None:
    populate(cluster)
    cluster.page.render(Format.TEXT)
    held = dict(cluster.page._texts)
    cluster.pass_seconds(5.0)
    cluster.page.render(Format.TEXT)
    again = cluster.page._texts
    same = {name for name, kept in held.items() if again[name] is kept}
    assert "gpu_cluster_free_devices" in same
    assert "gpu_cluster_longest_pending_seconds" not in same
    cluster.put(cluster.pod("new", {"gpu": 8}, node="gpu-node-2"))
    cluster.page.render(Format.TEXT)
    made_anew = {name for name, kept in held.items() if cluster.page._texts[name] is not kept}
    assert "gpu_cluster_free_devices" in made_anew
    assert not made_anew & {"gpu_cluster_node_schedulable", "gpu_cluster_quota_hard_devices"}


def test_a_sign_of_life_of_a_node_is_no_change(cluster: Any) -> None:
    populate(cluster)
    node = cluster.caches.nodes.objects["", "gpu-node-1"]
    origin = CATALOG["gpu_cluster_free_devices"].origin
    before = cluster.facts.fact(origin).reading
    newer = msgspec.structs.replace(node.metadata, resource_version="2")
    cluster.put(msgspec.structs.replace(node, metadata=newer))
    cluster.pass_seconds(5.0)
    assert cluster.facts.fact(origin).reading is before


def test_a_cluster_without_gpus_has_an_empty_page(cluster: Any) -> None:
    cluster.put(cluster.node("cpu"), cluster.pod("web", node="cpu"))
    assert cluster.page.render(Format.TEXT) == b""
