"""Known causes: each is found, and said with what to do."""

from http import HTTPStatus

import pytest

from cli.explain.cluster import CannotExplainError
from cli.explain.command import CANNOT_EXPLAIN, CANNOT_SCALE
from testbed import fleet
from testbed.autoscaled_cluster import (
    CUSTOM,
    EXTERNAL,
    external_metric,
    pods_metric,
    status,
    values,
)

ROOT = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ml"
UTILIZATION = f"{ROOT}/pods/*/gpu_utilization"
EXTERNAL_ROOT = "/apis/external.metrics.k8s.io/v1beta1/namespaces/ml"


async def test_a_server_that_does_not_explain_is_named_as_such(shown, cluster):
    service = {"namespace": "monitoring", "name": "prometheus-adapter"}
    cluster.registrations[f"v1beta2.{CUSTOM}"] = {"spec": {"service": service}}
    found = await shown()
    assert f"the server of {CUSTOM} (monitoring/prometheus-adapter) gave no explan" in found.words


async def test_a_target_turned_off_is_named_first(shown, cluster):
    """kube-metrics-adapter #724."""
    cluster.scale["spec"]["replicas"] = 0
    found = await shown()
    assert found.status == CANNOT_SCALE
    assert "has spec.replicas=0, which turns its HPA off" in found.last


async def test_a_metric_of_pods_that_are_not_scaled_is_found(shown, cluster):
    """prometheus-adapter #456 and #630."""
    cluster.metrics[f"{UTILIZATION}?labelSelector=app=web"] = values({})
    cluster.metrics[UTILIZATION] = values({"triton-0": "50"})
    found = await shown()
    assert found.status == CANNOT_SCALE
    assert "gpu_utilization exists on 1 pod that the HPA does not scale (triton-0)" in found.words
    assert "use type Object or External" in found.words


async def test_pods_in_another_namespace_are_found(shown, cluster):
    """helm-charts #4574."""
    cluster.pods.clear()
    cluster.add(fleet.pod_json("web-z", namespace="staging", labels={"app": "web"}))
    found = await shown()
    assert found.status == CANNOT_SCALE
    assert "matches no pods in namespace ml" in found.words
    assert "pods with these labels are in namespace staging" in found.words


async def test_succeeded_pods_are_named(shown, cluster):
    """k8s #141298."""
    cluster.add(fleet.pod_json("web-done", phase="Succeeded", labels={"app": "web"}), ready=False)
    found = await shown()
    assert "1 pod that succeeded still counts as running without a value (web-done)" in found.words
    assert found.last == "Deployment web stays at 2 replicas"


@pytest.mark.parametrize(
    ("name", "target", "said"),
    [
        ("gpu_utilization", "700m", "use 70"),
        ("DCGM_FI_DEV_GPU_UTIL", "0.8", "use 80"),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "70", "use 700m"),
        ("vllm:gpu_cache_usage_perc", "85", "use 850m"),
    ],
)
async def test_a_target_of_the_wrong_scale_is_corrected(shown, cluster, name, target, said):
    cluster.autoscaler["spec"]["metrics"] = [pods_metric(name, target)]
    cluster.metrics[f"{ROOT}/pods/*/{name}"] = values({"web-a": "500m", "web-b": "500m"})
    assert said in (await shown()).words


async def test_a_target_of_the_right_scale_is_left_alone(shown):
    assert "looks like" not in (await shown()).words


async def test_a_utilization_target_is_explained(shown, cluster):
    """dcgm-exporter #269."""
    cluster.autoscaler["spec"]["metrics"] = [pods_metric(kind="Utilization")]
    assert "use AverageValue with the metric's own unit" in (await shown()).words


async def test_an_external_name_in_upper_case_is_asked_in_lower_case(shown, cluster):
    """k8s #72996, k8s-stackdriver #413."""
    cluster.autoscaler["spec"]["metrics"] = [
        external_metric("DCGM_FI_DEV_GPU_UTIL", averageValue="70")
    ]
    found = await shown()
    assert any(path.startswith(f"{EXTERNAL_ROOT}/dcgm_fi_dev_gpu_util") for path in cluster.asked)
    assert "asks for external metrics in lower case (dcgm_fi_dev_gpu_util)" in found.words


async def test_a_saturated_utilization_leads_to_a_queue(shown, cluster):
    """dcgm-exporter #301."""
    cluster.autoscaler["spec"]["maxReplicas"] = 3
    cluster.metrics[UTILIZATION] = values({"web-a": "100", "web-b": "99"})
    assert "scale on a queue" in (await shown()).words


async def test_an_apiservice_that_is_not_available_is_named(shown, cluster):
    cluster.metrics[UTILIZATION] = status(HTTPStatus.SERVICE_UNAVAILABLE, "service unavailable")
    cluster.registrations[f"v1beta2.{CUSTOM}"] = {
        "spec": {"service": {"namespace": "slicewatch", "name": "slicewatch-adapter"}},
        "status": {"conditions": [
            {"type": "Available", "status": "False", "message": "endpoints not found"}
        ]},
    }  # fmt: skip
    found = await shown()
    assert (
        "is not available (endpoints not found): requests do not reach slicewatch/" in found.words
    )


async def test_an_api_that_another_adapter_serves_is_named(shown, cluster):
    """KEDA #1344."""
    cluster.autoscaler["spec"]["metrics"] = [external_metric("queue", averageValue="70")]
    service = {"namespace": "keda", "name": "keda-operator-metrics-apiserver"}
    cluster.registrations[f"v1beta1.{EXTERNAL}"] = {"spec": {"service": service}}
    found = await shown()
    assert f"{EXTERNAL} is served by keda/keda-operator-metrics-apiserver" in found.words


async def test_an_api_that_nobody_serves_is_named(shown, cluster):
    del cluster.groups[CUSTOM]
    found = await shown()
    assert found.status == CANNOT_SCALE
    assert f"no metrics server is registered for {CUSTOM}" in found.last


async def test_a_missing_right_on_the_metric_names_the_rule_and_judges_nothing(shown, cluster):
    cluster.denied = (UTILIZATION,)
    found = await shown()
    assert found.status == CANNOT_EXPLAIN
    rule = '{apiGroups: ["custom.metrics.k8s.io"], resources: ["pods/gpu_utilization"], verbs: ["get"]}'
    assert rule in found.last


@pytest.mark.parametrize(
    ("denied", "rule"),
    [
        ("/apis/autoscaling", 'resources: ["horizontalpodautoscalers"], verbs: ["get"]'),
        ("/apis/apps/v1/namespaces", 'apiGroups: ["apps"], resources: ["deployments/scale"]'),
        ("/api/v1/namespaces/ml/pods", 'resources: ["pods"], verbs: ["list"]'),
    ],
)
async def test_other_missing_rights_name_their_rule(shown, cluster, denied, rule):
    cluster.denied = (denied,)
    with pytest.raises(CannotExplainError) as refused:
        await shown()
    assert rule in str(refused.value)


async def test_an_hpa_that_does_not_exist_is_answered_with_those_that_do(shown):
    with pytest.raises(
        CannotExplainError, match=r"no HPA wbe in namespace ml; there are web.*did you"
    ):
        await shown(name="wbe")


async def test_a_target_that_does_not_exist_is_named(shown, cluster):
    cluster.scale = None
    found = await shown()
    assert found.status == CANNOT_SCALE
    assert "Deployment web does not exist in namespace ml" in found.last


async def test_a_kind_that_does_not_exist_is_named(shown, cluster):
    cluster.autoscaler["spec"]["scaleTargetRef"] |= {
        "kind": "Rollout",
        "apiVersion": "argoproj.io/v1",
    }
    assert "serves no Rollout of argoproj.io/v1" in (await shown()).last


async def test_a_scale_without_a_selector_is_named(shown, cluster):
    cluster.scale["status"]["selector"] = ""
    assert "has no status.selector" in (await shown()).last


async def test_a_value_that_the_controllers_numbers_cannot_hold_is_named(shown, cluster):
    """k8s #126892."""
    cluster.metrics[UTILIZATION] = values({"web-a": "10P", "web-b": "1"})
    found = await shown()
    assert "gpu_utilization has a value that the controller's numbers cannot hold" in found.words
    cluster.autoscaler["spec"]["metrics"] = [pods_metric(target="1m")]
    cluster.metrics[UTILIZATION] = values({"web-a": "3G", "web-b": "3G"})
    assert "over its target does not fit the controller's numbers" in (await shown()).words


async def test_a_failed_metric_beside_a_good_one_forbids_scaling_down(shown, cluster):
    cluster.autoscaler["spec"]["metrics"].append(external_metric("queue", averageValue="1"))
    assert "scales up by its other metrics, and never down" in (await shown()).words
    cluster.metrics[UTILIZATION] = values({"web-a": "1", "web-b": "1"})
    found = await shown()
    assert found.status == CANNOT_SCALE
    assert "could not find" in found.last
