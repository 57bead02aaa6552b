"""The cluster's facts on the external metrics API, as an autoscaler asks for them."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Cluster, Kind
from slicewatch.kube.objects import ResourceQuota
from testbed import fleet
from testbed.front_proxy import ApiPort, Asker

ROOT = "/apis/external.metrics.k8s.io/v1beta1"
FREE, PENDING = "gpu_cluster_free_devices", "gpu_cluster_pending_devices"
USED = "gpu_cluster_quota_used_devices"


@pytest.fixture
async def ask(cluster: Any, tmp_path: Path) -> AsyncIterator[Asker]:
    port = ApiPort(tmp_path)
    port.offer(external=[cluster.external])
    async with port.serving(), port.client(port.front_proxy()) as client:
        yield Asker(port, client)


def path(metric: str, selector: str = "", *, namespace: str = "ml", explain: bool = False) -> str:
    chosen = selector.replace("=", "%3D").replace(",", "%2C").replace("!", "%21")
    query = "&".join(
        part for part in (chosen and f"labelSelector={chosen}", explain and "explain=true") if part
    )
    return f"{ROOT}/namespaces/{namespace}/{metric}" + (f"?{query}" if query else "")


async def items(ask: Asker, of: str) -> list[dict[str, Any]]:
    answer = await ask(of)
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = json.loads(answer.body)["items"]
    return found


def quota(namespace: str, used: str) -> ResourceQuota:
    amount = {"requests.nvidia.com/gpu": used}
    body = {
        "metadata": {"name": "q", "namespace": namespace},
        "status": {"hard": {"requests.nvidia.com/gpu": "8"}, "used": amount},
    }
    return msgspec.convert(body, ResourceQuota)


async def test_every_gauge_of_the_cluster_is_offered_and_no_counter(ask: Asker) -> None:
    listed = json.loads((await ask(ROOT)).body)["resources"]
    gauges = {m.name for m in CATALOG if isinstance(m.origin, Cluster) and m.kind is Kind.GAUGE}
    assert {resource["name"] for resource in listed} == gauges


async def test_an_item_has_the_labels_and_the_value_of_its_series(
    cluster: Any, ask: Asker
) -> None:
    """prometheus-adapter #235: the name of the metric is in every item."""
    cluster.put(cluster.node("n", {"mig-1g.10gb": 7}, gpu__product="A100", mig__config="mixed"))
    (item,) = await items(ask, path(FREE, "resource=mig-1g.10gb,profile=1g.10gb"))
    assert item == {
        "metricName": FREE,
        "metricLabels": {
            "product": "A100", "mig_config": "mixed", "resource": "mig-1g.10gb",
            "profile": "1g.10gb",
        },
        "timestamp": "2026-09-21T14:15:00Z",
        "value": "7",
    }  # fmt: skip


async def test_a_name_is_found_in_whatever_case_it_is_asked_for(cluster: Any, ask: Asker) -> None:
    """k8s #72996: clients lower the case of external metrics."""
    cluster.put(cluster.node("n", {"gpu": 1}))
    assert (await items(ask, path(FREE.upper())))[0]["metricName"] == FREE


async def test_a_selector_chooses_among_the_series(cluster: Any, ask: Asker) -> None:
    cluster.put(
        cluster.node("n1", {"gpu": 8}, gpu__product="H100"),
        cluster.node("n2", {"gpu": 4}, gpu__product="L40S"),
        cluster.node("n3", {"gpu": 2}),
    )
    assert [i["value"] for i in await items(ask, path(FREE, "product=L40S"))] == ["4"]
    assert [i["value"] for i in await items(ask, path(FREE, "!product"))] == ["2"]
    assert len(await items(ask, path(FREE))) == 3


async def test_no_namespace_sees_what_is_about_another(cluster: Any, ask: Asker) -> None:
    """prometheus-adapter #195, #324: series of all namespaces must not be mixed up, nor shown."""
    cluster.put(quota("team-a", "6"), quota("team-b", "2"))
    for namespace, value in (("team-a", "6"), ("team-b", "2")):
        for of in (
            path(USED, namespace=namespace),
            path(USED, "kind=requests", namespace=namespace),
        ):
            (item,) = await items(ask, of)
            assert (item["value"], item["metricLabels"]["namespace"]) == (value, namespace)
    assert "team-a" not in await ask.refusal(path(USED, namespace="team-c"), 404)


async def test_a_selector_for_another_namespace_is_not_a_way_around(
    cluster: Any, ask: Asker
) -> None:
    cluster.put(quota("team-a", "6"), quota("team-b", "2"))
    message = await ask.refusal(path(USED, "namespace=team-a", namespace="team-b"), 404)
    assert "6" not in message
    explained = json.loads((await ask(path(USED, namespace="team-b", explain=True))).body)
    assert {s["labels"]["namespace"] for s in explained["series"]} == {"team-b"}
    (zero,) = await items(ask, path(PENDING, "namespace=team-a", namespace="team-b"))
    assert (zero["value"], zero["metricLabels"]["namespace"]) == ("0", "team-b")


async def test_what_is_about_no_namespace_is_for_all(cluster: Any, ask: Asker) -> None:
    """prometheus-adapter #530, #690: a metric without a namespace is answered in every one."""
    cluster.put(cluster.node("n", {"gpu": 8}))
    for namespace in ("team-a", "team-b"):
        assert len(await items(ask, path(FREE, namespace=namespace))) == 1


async def test_nobody_waiting_is_0_so_that_an_autoscaler_can_scale_in(
    cluster: Any, ask: Asker
) -> None:
    waiting = cluster.pod("a", {"gpu": 4})
    cluster.put(waiting)
    assert [i["value"] for i in await items(ask, path(PENDING, "resource=gpu"))] == ["4"]
    cluster.remove(waiting)
    cluster.pass_seconds(1.0)
    (item,) = await items(ask, path(PENDING, "resource=gpu"))
    assert item["value"] == "0"
    assert item["metricLabels"] == {"resource": "gpu", "namespace": "ml"}


async def test_nothing_known_is_a_refusal_that_says_so(cluster: Any, ask: Asker) -> None:
    message = await ask.refusal(path("gpu_cluster_quota_used_ratio"), 404)
    assert message == "there is no series of gpu_cluster_quota_used_ratio in namespace ml"
    pool = await ask.refusal(path("gpu_cluster_pool_contention_max_ratio"), 503)
    assert "no exporter reports a contention that is fresh" in pool
    cluster.put(cluster.node("n", {"gpu": 8}, gpu__product="H100"))
    other = await ask.refusal(path(FREE, "product=H200"), 404)
    assert "matches product=H200; there are 1, one of them with product=H100" in other


async def test_a_label_that_the_metric_does_not_have_is_an_error_not_a_0(ask: Asker) -> None:
    message = await ask.refusal(path(PENDING, "ressource=gpu"), 400)
    assert (
        "have no label ressource; they have namespace, priority_class, reason, resource" in message
    )


@pytest.mark.parametrize("metric", [FREE, PENDING, "gpu_cluster_preemptible_ratio"])
async def test_before_everything_is_listed_nothing_is_answered(
    cluster: Any, ask: Asker, metric: str
) -> None:
    cluster.caches.pods.synced, cluster.caches.pods.fault = False, "not listed yet"
    message = await ask.refusal(path(metric), 503)
    assert "the pods of the cluster are not listed yet: not listed yet" in message


async def test_a_watch_that_fails_for_a_moment_is_borne_and_for_long_is_refused(
    cluster: Any, ask: Asker
) -> None:
    """kube-metrics-adapter #97: what may be out of date is not served as if it were current."""
    cluster.put(cluster.node("n", {"gpu": 8}))
    assert len(await items(ask, path(FREE))) == 1
    cluster.caches.nodes.fault = "403 forbidden"
    cluster.pass_seconds(10.0)
    assert len(await items(ask, path(FREE))) == 1
    cluster.pass_seconds(10.0)
    message = await ask.refusal(path(FREE), 503)
    assert "the watch on nodes may have missed changes for 20 s, the limit is 15 s: 403" in message
    assert (await items(ask, path(PENDING)))[0]["value"] == "0"
    cluster.caches.nodes.fault = ""
    assert len(await items(ask, path(FREE))) == 1


async def test_a_pod_that_is_gone_counts_no_more(cluster: Any, ask: Asker) -> None:
    """kube-metrics-adapter #97: values of deleted pods were averaged in for minutes."""
    pod = cluster.pod("a", {"gpu": 4})
    cluster.put(pod, cluster.pod("b", {"gpu": 1}))
    assert [i["value"] for i in await items(ask, path(PENDING))] == ["5"]
    cluster.remove(pod)
    cluster.pass_seconds(1.0)
    assert [i["value"] for i in await items(ask, path(PENDING))] == ["1"]


async def test_an_explanation_names_the_pods_that_wait_and_why(cluster: Any, ask: Asker) -> None:
    short = {"reason": "Unschedulable", "message": "0/1 nodes: 1 Insufficient nvidia.com/gpu."}
    cluster.put(
        cluster.pod("new", {"gpu": 1}, created="2026-09-21T14:14:50Z"),
        cluster.pod("old", {"gpu": 2}, created="2026-09-21T14:14:00Z", condition=short),
        cluster.pod("hidden", {"gpu": 2}, namespace="team-b"),
    )
    tree = json.loads((await ask(path(PENDING, "reason=NotScheduledYet", explain=True))).body)
    assert [(s["labels"]["reason"], s["value"], s["chosen"]) for s in tree["series"]] == [
        ("InsufficientDevices", 2.0, False), ("NotScheduledYet", 1.0, True),
    ]  # fmt: skip
    assert [(w["pod"], w["ageSeconds"]) for w in tree["waiting"]] == [("old", 60.0), ("new", 10.0)]
    assert tree["waiting"][0]["reasons"] == {"nvidia.com/gpu": "InsufficientDevices"}


async def test_contention_of_a_pool_is_answered_from_the_exporters(
    cluster: Any, ask: Asker
) -> None:
    cluster.put(cluster.node("n1", {"gpu": 1}, gpu__product="H100"))
    rows = fleet.layout([fleet.gpu(0)])
    cluster.receive(fleet.frame(rows, fleet.snapshot(rows, {"gpu_contention_ratio": [0.25]})))
    (item,) = await items(ask, path("gpu_cluster_pool_contention_max_ratio", "pool=H100"))
    assert item["value"] == "250m"
