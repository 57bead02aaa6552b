"""The explanation of an HPA: the questions, the answers, the computation, and the last line."""

from http import HTTPStatus

from cli.explain.command import CANNOT_SCALE, EXPLAINED, Output
from testbed import fleet
from testbed.autoscaled_cluster import (
    CUSTOM,
    external_metric,
    object_metric,
    pods_metric,
    status,
    values,
)

ROOT = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ml"
UTILIZATION = f"{ROOT}/pods/*/gpu_utilization"
EXTERNAL_ROOT = "/apis/external.metrics.k8s.io/v1beta1/namespaces/ml"


async def test_pods_values_and_the_computation_are_shown(shown):
    found = await shown()
    assert found.status == EXPLAINED
    assert found.last == "Deployment web goes from 2 to 3 replicas"
    assert "selector app=web matches 2 pods" in found.text
    assert "web-a n1 Running yes 87.5 2 s 15 s counted" in found.words
    assert "90 / target 70 (average value) = ratio 1.286" in found.words
    assert "1.286 x 2 pods, rounded up = 3 replicas (now 2)" in found.words


async def test_no_line_but_the_verdict_is_longer_than_100_columns(shown, cluster):
    for number in range(3):
        cluster.add(fleet.pod_json(f"web-{number}" + "x" * 60, labels={"app": "web"}))
    found = await shown()
    assert max(len(line) for line in found.text.rstrip().splitlines()[:-1]) <= 100


async def test_the_metric_is_asked_as_the_controller_asks_and_once_more_for_reasons(
    shown, cluster
):
    await shown()
    asked = [path for path in cluster.asked if "gpu_utilization" in path]
    assert asked == [
        f"{UTILIZATION}?labelSelector=app%3Dweb",
        f"{UTILIZATION}?labelSelector=app%3Dweb&explain=true",
    ]


async def test_the_adapters_reasons_are_shown_with_their_inputs(shown, cluster):
    device = {
        "uuid": "GPU-1", "model": "H200", "value": 87.5, "rule": "100 * W / max(m / n, 1 - (B - W))",
        "inputs": {"W": 0.7, "B": 0.9, "m": 1, "n": 2, "meaning": "shares"},
    }  # fmt: skip
    cluster.metrics[f"{UTILIZATION}?labelSelector=app=web&explain=true"] = {
        "kind": "MetricExplanation",
        "unit": "percent",
        "items": [
            {"name": "web-a", "value": 87.5, "ageSeconds": 1.25, "devices": [device]},
            {"name": "web-b", "value": None, "absent": "STALE", "why": "no value, since too old"},
        ],
    }
    found = await shown()
    assert "web-a: H200 GPU-1: 87.5 (100 * W" in found.words
    assert "W 0.7, B 0.9, m 1, n 2" in found.words
    assert "web-b: no value, since too old" in found.words
    assert "1.3 s" in found.words or "1.2 s" in found.words
    assert "gave no explanation" not in found.words


async def test_json_has_all_that_the_text_has(shown):
    found = (await shown(Output.JSON)).json
    (part,) = found["metrics"]
    assert [pod["value"] for pod in part["pods"]] == [87.5, 92.5]
    assert part["proposal"]["replicas"] == 3
    assert part["path"].startswith(UTILIZATION)
    assert found["decision"]["restraint"]["recommended"] == 3
    assert found["verdict"] == "Deployment web goes from 2 to 3 replicas"


async def test_conditions_are_put_into_plain_words(shown, cluster):
    cluster.autoscaler["status"]["conditions"] = [
        {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas", "message": "m"}
    ]
    assert (
        "ScalingLimited True: maxReplicas is in the way (TooManyReplicas: m)"
        in (await shown()).words
    )


async def test_replicas_that_the_controller_holds_are_said_to_be_held(shown, cluster):
    cluster.metrics[UTILIZATION] = values({"web-a": "1", "web-b": "1"})
    cluster.autoscaler["status"]["conditions"] = [
        {"type": "AbleToScale", "status": "True", "reason": "ScaleDownStabilized", "message": "m"}
    ]
    found = await shown()
    assert found.last == "Deployment web stays at 2 replicas for now, and then goes to 1"
    assert (
        "no recommendation of the last 300 s was higher; the controller is holding" in found.words
    )


async def test_the_largest_of_several_metrics_counts_and_limits_are_named(shown, cluster):
    cluster.autoscaler["spec"] |= {
        "metrics": [pods_metric(), external_metric("queue", averageValue="1")]
    }
    cluster.autoscaler["spec"]["maxReplicas"] = 4
    cluster.metrics[f"{EXTERNAL_ROOT}/queue"] = {
        "kind": "ExternalMetricValueList",
        "items": [{"value": "30", "metricLabels": {"q": "a"}}, {"value": "20"}],
    }
    found = await shown()
    assert "the largest proposal counts: external metric queue" in found.words
    assert "limited: at most 4, by maxReplicas" in found.words
    assert "queue has 2 series, and the controller takes their sum" in found.words
    assert "q=a: 30" in found.words
    assert found.last == "Deployment web goes from 2 to 4 replicas"


async def test_a_refusal_is_shown_in_the_words_of_its_status(shown, cluster):
    cluster.metrics[UTILIZATION] = status(HTTPStatus.SERVICE_UNAVAILABLE, "all samples are stale")
    found = await shown()
    assert found.status == CANNOT_SCALE
    assert found.last.endswith("cannot be scaled as it is: all samples are stale")
    assert "503: all samples are stale" in found.words


async def test_a_server_of_the_first_version_is_asked_in_it(shown, cluster):
    cluster.groups[CUSTOM] = ("v1beta1",)
    cluster.metrics[UTILIZATION.replace("v1beta2", "v1beta1")] = values(
        {"web-a": "90", "web-b": "90"}
    )
    assert (await shown()).last == "Deployment web goes from 2 to 3 replicas"


async def test_a_metric_of_a_service_is_asked_by_its_plural(shown, cluster):
    cluster.autoscaler["spec"]["metrics"] = [object_metric("Service", "web", "rps", value="10")]
    cluster.metrics[f"{ROOT}/services/web/rps"] = values({"web": "20"})
    assert (await shown()).last == "Deployment web goes from 2 to 4 replicas"
    cluster.metrics[f"{ROOT}/services/web/rps"] = values({"web": "20", "other": "30"})
    assert "2 items, and the controller takes exactly one" in (await shown()).last


async def test_a_metric_of_the_namespace_is_asked_of_the_hpas_own(shown, cluster):
    named = object_metric("Namespace", "elsewhere", "m", averageValue="10")
    cluster.autoscaler["spec"]["metrics"] = [named]
    cluster.metrics[f"{ROOT}/metrics/m"] = values({"ml": "30"})
    assert (await shown()).last == "Deployment web goes from 2 to 3 replicas"


async def test_cpu_is_computed_from_the_resource_metrics(shown, cluster):
    target = {"type": "AverageValue", "averageValue": "500m"}
    cluster.autoscaler["spec"]["metrics"] = [{"type": "Resource", "resource": {"name": "memory", "target": target}}]  # fmt: skip
    usage = [{"name": "main", "usage": {"memory": "400m"}}, {"name": "side", "usage": {"memory": "600m"}}]  # fmt: skip
    cluster.metrics["/apis/metrics.k8s.io/v1beta1/namespaces/ml/pods"] = {
        "items": [{"metadata": {"name": n}, "containers": usage} for n in ("web-a", "web-b")]
    }
    assert (await shown()).last == "Deployment web goes from 2 to 4 replicas"


async def test_values_that_are_bare_numbers_are_read(shown, cluster):
    cluster.metrics[UTILIZATION] = {
        "items": [{"describedObject": {"name": n}, "value": 90.5} for n in ("web-a", "web-b")]
    }
    assert (await shown()).last == "Deployment web goes from 2 to 3 replicas"


async def test_a_value_that_is_none_is_said(shown, cluster):
    cluster.metrics[UTILIZATION] = values({"web-a": "NaN"})
    assert "an item of the answer is none: 'NaN' is not a quantity" in (await shown()).last


async def test_all_pages_of_pods_are_read(shown, cluster):
    for number in range(600):
        cluster.add(fleet.pod_json(f"web-{number}", labels={"app": "web"}))
    found = await shown()
    assert "matches 602 pods" in found.text
    assert "and 562 more pods; --output json has all" in found.text
    assert len((await shown(Output.JSON)).json["metrics"][0]["pods"]) == 602
