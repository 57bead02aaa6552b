"""Rules of prometheus-adapter on real servers: what existing users' clients are used to, or better.

The pods, values and questions are those that prometheus-adapter was recorded with.
"""

import json
import time
from contextlib import asynccontextmanager

import pytest

from adapter.api.resources import Resources
from adapter.sources.prometheus.backend import Backend, BackendConfig
from adapter.sources.prometheus.configuration import configuration
from adapter.sources.prometheus.custom import CustomRules
from adapter.sources.prometheus.external import ExternalRules
from adapter.sources.prometheus.fault import BackendError, FaultClass
from adapter.sources.prometheus.rules import Rules
from slicewatch.service.tasks import background
from testbed import fleet
from testbed.binaries import Unavailable
from testbed.front_proxy import ApiPort, Asker
from testbed.promql_servers import NAMES, Page, running
from testbed.require import skip_or_fail

PODS = ("infer-8447fc6c85-kwrrv", "infer-8447fc6c85-lvl7s")
RULES = """
rules:
- seriesQuery: 'DCGM_FI_DEV_GPU_UTIL{namespace!="",pod!=""}'
  resources:
    overrides: {namespace: {resource: namespace}, pod: {resource: pod}, Hostname: {resource: node}}
  name: {as: gpu_utilization_by_rule}
  metricsQuery: 'avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
- seriesQuery: 'DCGM_FI_DEV_FB_USED{exported_namespace!="",exported_pod!=""}'
  resources:
    overrides: {exported_namespace: {resource: namespace}, exported_pod: {resource: pod}}
  name: {matches: "^DCGM_FI_DEV_(.*)$", as: "${1}_AVG"}
  metricsQuery: 'avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
- seriesQuery: 'DCGM_FI_DEV_FB_USED{exported_namespace!="",exported_container!=""}'
  resources:
    overrides:
      exported_namespace: {resource: namespace}
      exported_container: {resource: service}
  name: {as: service_memory}
  metricsQuery: 'sum(avg_over_time(<<.Series>>{<<.LabelMatchers>>}[1m])) by (<<.GroupBy>>)'
- seriesQuery: 'pushed{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
- seriesQuery: '{__name__=~"^vllm:.*",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
- seriesQuery: 'idle_seconds_sum{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  name: {as: latency}
  metricsQuery: >-
    sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
    / sum(idle_seconds_count{<<.LabelMatchers>>}) by (<<.GroupBy>>)
externalRules:
- seriesQuery: 'DCGM_FI_DEV_GPU_UTIL{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  name: {as: GPU_Utilization_Ext}
  metricsQuery: 'avg(<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: 'queue_depth'
  resources: {namespaced: false}
  metricsQuery: '<<.Series>>{<<.LabelMatchers>>}'
"""
ROOT = "/apis/custom.metrics.k8s.io"
WITHIN = f"{ROOT}/v1beta1/namespaces/default"
UTILIZATION = f"{WITHIN}/pods/%2A/gpu_utilization_by_rule"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"


def page():
    pushed = int((time.time() - 150) * 1000)
    lines = []
    for pod in PODS:
        where = f'namespace="default",pod="{pod}"'
        exported = f'exported_namespace="default",exported_pod="{pod}",exported_container="front"'
        lines += [
            f'DCGM_FI_DEV_GPU_UTIL{{{where},gpu="0",gpu_model="H200",Hostname="node-a"}} 60',
            f'DCGM_FI_DEV_GPU_UTIL{{{where},gpu="1",gpu_model="H200",Hostname="node-a"}} 100',
            f'DCGM_FI_DEV_FB_USED{{{exported},namespace="gpu",pod="dcgm-x"}} 12.5',
            f"pushed{{{where}}} 7 {pushed}",
            f"vllm:num_requests_waiting{{{where}}} 3",
            f"idle_seconds_sum{{{where}}} 0",
            f"idle_seconds_count{{{where}}} 0",
        ]
    return "\n".join([*lines, 'queue_depth{queue="a"} 5', 'queue_depth{queue="b"} 6', ""])


@pytest.fixture(scope="module", params=NAMES)
def server(request, tmp_path_factory):
    scraped = Page(page())
    try:
        with (
            scraped.serving() as address,
            running(request.param, address, tmp_path_factory.mktemp(request.param)) as started,
        ):
            started.wait_for("queue_depth")
            yield started
    except Unavailable as reason:
        skip_or_fail(str(reason))


@pytest.fixture
async def ask(server, tmp_path):
    async with rules_port(server.url, tmp_path) as (asker, rules):
        await rules.refresh()
        yield asker


@asynccontextmanager
async def rules_port(url, folder):
    port = ApiPort(folder)
    for pod in PODS:
        body = fleet.pod_json(pod, namespace="default", labels={"app": "infer"})
        port.add(fleet.pod(body))
    rules = Rules(Resources(), port.metrics)
    rules.apply(configuration([("rules.yaml", RULES)], BackendConfig(name="default", url=url)))
    assert rules.configuration.faults == ()
    port.offer(CustomRules(rules, port.pods), external=[ExternalRules(rules)])
    async with (
        background(("rules", rules.run())),
        port.serving(),
        port.client(port.front_proxy()) as client,
    ):
        await rules.readings.running.wait()
        yield Asker(port, client), rules


async def body(ask, path):
    answer = await ask(path)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


async def test_pods_get_the_items_that_prometheus_adapter_gives(ask):
    answer = await body(ask, f"{UTILIZATION}?labelSelector=app%3Dinfer")
    assert (answer["kind"], answer["apiVersion"]) == (
        "MetricValueList", "custom.metrics.k8s.io/v1beta1",
    )  # fmt: skip
    for item, pod in zip(answer["items"], PODS, strict=True):
        assert item.pop("timestamp").endswith("Z")
        assert item == {
            "describedObject": {
                "kind": "Pod", "namespace": "default", "name": pod, "apiVersion": "v1",
            },
            "metricName": "gpu_utilization_by_rule", "value": "80", "selector": None,
        }  # fmt: skip
    assert await ask.values(f"{WITHIN}/pods/{PODS[0]}/gpu_utilization_by_rule") == {PODS[0]: "80"}


async def test_a_selector_of_series_is_applied_by_the_server_and_echoed(ask):
    answer = await body(ask, f"{UTILIZATION}?metricLabelSelector=gpu_model%3DH200")
    assert [item["selector"] for item in answer["items"]] == [
        {"matchLabels": {"gpu_model": "H200"}}
    ] * 2
    assert await ask.values(f"{UTILIZATION}?metricLabelSelector=gpu_model%3DA100") == {}
    wanted = "?metricLabelSelector=gpu_model+in+(A100,H200),gpu!%3D0,Hostname,!mig"
    assert await ask.values(UTILIZATION + wanted) == dict.fromkeys(PODS, "100")


async def test_namespaces_and_nodes_are_objects(ask):
    assert await ask.values(f"{WITHIN}/metrics/gpu_utilization_by_rule") == {"default": "80"}
    assert await ask.values(f"{ROOT}/v1beta1/nodes/node-a/gpu_utilization_by_rule") == {
        "node-a": "80"
    }
    # prometheus-adapter answers 404 to what autoscalers really send.
    assert await ask.values(f"{WITHIN}/nodes/node-a/gpu_utilization_by_rule") == {"node-a": "80"}


async def test_labels_that_scraping_renamed_name_the_workload(ask):
    """triton-inference-server #3897: the series carries the exporter's own pod as well."""
    assert await ask.values(f"{WITHIN}/pods/*/FB_USED_AVG") == dict.fromkeys(PODS, "12500m")


async def test_a_service_by_a_container_label_is_an_object(ask):
    assert await ask.values(f"{WITHIN}/services/front/service_memory") == {"front": "25"}


async def test_external_names_are_found_in_lower_case(ask):
    answer = await body(ask, f"{EXTERNAL}/gpu_utilization_ext")
    assert [(i["metricName"], i["metricLabels"], i["value"]) for i in answer["items"]] == [
        ("GPU_Utilization_Ext", {}, "80")
    ]


async def test_external_series_are_items_with_their_labels(ask):
    answer = await body(ask, f"{EXTERNAL}/queue_depth")
    values = {item["metricLabels"]["queue"]: item["value"] for item in answer["items"]}
    assert values == {"a": "5", "b": "6"}
    answer = await body(ask, f"{EXTERNAL}/queue_depth?labelSelector=queue%3Da")
    assert [item["value"] for item in answer["items"]] == ["5"]


async def test_the_time_of_an_item_is_that_of_its_samples(ask):
    answer = await body(ask, f"{UTILIZATION}?explain=true")
    assert all(item["dated"] for item in answer["items"])
    assert answer["series"] == 2


async def test_what_was_written_long_ago_is_refused_though_the_server_gives_it(ask):
    """Five minutes of lookback are no freshness: an autoscaler cannot see the age."""
    message = await ask.refusal(f"{WITHIN}/pods/*/pushed", 503)
    assert "its samples are too old" in message


async def test_names_by_pattern_are_found(ask):
    assert await ask.values(f"{WITHIN}/pods/*/vllm:num_requests_waiting") == dict.fromkeys(
        PODS, "3"
    )


async def test_nothing_divided_by_nothing_is_no_value(ask, server):
    """prometheus-adapter #280; VictoriaMetrics leaves out such series by itself."""
    if server.name == "victoria-metrics":
        message = await ask.refusal(f"{WITHIN}/pods/*/latency", 404)
        assert "has no series for the query of the rule rules[5]" in message
    else:
        message = await ask.refusal(f"{WITHIN}/pods/*/latency", 503)
        assert "the query makes NaN" in message


async def test_a_query_that_the_server_cannot_parse_is_refused_with_its_words(server):
    backend = Backend(BackendConfig(name="x", url=server.url))
    with pytest.raises(BackendError) as caught:
        await backend.query("sum(", time.time())
    assert caught.value.fault is FaultClass.REFUSED
    with pytest.raises(BackendError) as caught:
        await backend.query("queue_depth[1m]", time.time())
    await backend.close()
    assert caught.value.fault is FaultClass.MALFORMED
    assert "the query makes a matrix" in str(caught.value)
