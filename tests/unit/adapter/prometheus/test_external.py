"""Metrics that belong to no object: each series of a query is an item, and autoscalers add them."""

import json

import pytest

from testbed.scripted_prometheus import dates, vector
from tests.unit.adapter.prometheus.scene import EXTERNAL, QUEUE_RULE

GPU_NAME = QUEUE_RULE.replace("Queue_Depth", "DCGM_FI_DEV_GPU_UTIL")
QUEUE = f"{EXTERNAL}/queue_depth"


async def items(served, path):
    answer = await served.ask(path)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)["items"]


@pytest.mark.parametrize("asked", ["Queue_Depth", "queue_depth", "QUEUE_DEPTH"])
async def test_a_name_is_found_in_any_case_and_answered_as_configured(serve, prometheus, asked):
    """Kubernetes #72996, prometheus-adapter #235: autoscalers lower the case of the name."""
    async with serve(external=QUEUE_RULE) as served:
        prometheus.values(({"queue": "a"}, 40), ({"queue": "b"}, 2.5), at=served.now - 30)
        assert await items(served, f"{EXTERNAL}/{asked}") == [
            {"metricName": "Queue_Depth", "metricLabels": {"queue": "a"},
             "timestamp": "2026-09-21T14:14:30Z", "value": "40"},
            {"metricName": "Queue_Depth", "metricLabels": {"queue": "b"},
             "timestamp": "2026-09-21T14:14:30Z", "value": "2500m"},
        ]  # fmt: skip
    assert prometheus.queries == ['sum(Queue_Depth{namespace="ml"}) by (queue)']


async def test_a_name_with_signs_of_urls_is_found(serve, prometheus):
    """k8s-stackdriver #413, with a GPU metric."""
    rule = GPU_NAME + "  name: {as: 'prometheus.googleapis.com|gpu|gauge'}\n"
    async with serve(external=rule) as served:
        prometheus.values(({}, 1))
        path = f"{EXTERNAL}/prometheus.googleapis.com%7Cgpu%7Cgauge"
        assert [one["value"] for one in await items(served, path)] == ["1"]


async def test_a_rule_without_namespaces_asks_for_all_of_them(serve, prometheus):
    """prometheus-adapter #530 and #690."""
    rule = QUEUE_RULE.replace("resources: {", "resources: {namespaced: false, ")
    async with serve(external=rule) as served:
        prometheus.values(({}, 1))
        assert len(await items(served, QUEUE)) == 1
        tree = json.loads((await served.ask(f"{QUEUE}?explain=true")).body)
    assert prometheus.queries == ["sum(Queue_Depth{}) by (queue)"]
    assert tree["query"] == "sum(Queue_Depth{}) by (queue)"


async def test_a_rule_may_ask_in_a_namespace_of_its_own(serve, prometheus):
    """prometheus-adapter #324 and #195: a central exporter in another namespace."""
    async with serve(external=QUEUE_RULE + "  namespace: monitoring\n") as served:
        prometheus.values(({}, 1))
        assert len(await items(served, QUEUE)) == 1
    assert prometheus.queries == ['sum(Queue_Depth{namespace="monitoring"}) by (queue)']


async def test_a_selector_chooses_series(serve, prometheus):
    async with serve(external=QUEUE_RULE) as served:
        prometheus.values(({}, 1))
        await items(served, f"{QUEUE}?labelSelector=queue+in+(a,b),env%3Dprod")
        message = await served.ask.refusal(f"{QUEUE}?labelSelector=size%3E5", 400)
    assert prometheus.queries == [
        'sum(Queue_Depth{env="prod",queue=~"a|b",namespace="ml"}) by (queue)'
    ]
    assert "size" in message


@pytest.mark.parametrize("value", ["NaN", "+Inf"])
async def test_what_is_not_finite_is_no_item(serve, prometheus, value):
    """KEDA #7475 and prometheus-adapter #394."""
    async with serve(external=QUEUE_RULE) as served:
        prometheus.values(({"queue": "a"}, value))
        assert "1 series, none has a value" in await served.ask.refusal(QUEUE, 503)
        served.port.pass_seconds(6)
        prometheus.values(({"queue": "a"}, value), ({"queue": "b"}, 3))
        answer = await served.ask(QUEUE)
    assert [one["value"] for one in json.loads(answer.body)["items"]] == ["3"]
    assert "1 of 2 series have no value: {queue=a}" in answer.headers["Warning"]


async def test_no_series_is_not_found_and_says_where_it_was_looked_for(serve):
    """helm-charts #4574: the autoscaler is in another namespace than the metric."""
    async with serve(external=QUEUE_RULE) as served:
        message = await served.ask.refusal(QUEUE, 404)
    assert "no series for the query of the rule externalRules[0] in namespace ml" in message


async def test_a_scalar_is_one_value_without_labels(serve, prometheus):
    rule = QUEUE_RULE.replace(") by (queue)", ")")
    async with serve(external=rule) as served:
        prometheus.values(({}, 12))
        assert [(i["metricLabels"], i["value"]) for i in await items(served, QUEUE)] == [
            ({}, "12")
        ]


async def test_the_name_of_a_series_is_none_of_its_labels(serve, prometheus):
    rule = QUEUE_RULE.replace("sum(<<.Series>>{<<.LabelMatchers>>}) by (queue)",
                              "<<.Series>>{<<.LabelMatchers>>}")  # fmt: skip
    async with serve(external=rule) as served:
        prometheus.values(({"__name__": "Queue_Depth", "queue": "a"}, 12))
        assert [one["metricLabels"] for one in await items(served, QUEUE)] == [{"queue": "a"}]


async def test_a_metric_nobody_writes_to_any_more_is_refused_with_its_age(serve, prometheus):
    async with serve(external=QUEUE_RULE) as served:
        prometheus.say = lambda one: vector(
            ({}, served.now - 200) if dates(one) else ({"queue": "a"}, 7)
        )
        message = await served.ask.refusal(QUEUE, 503)
    assert "its samples are too old ({queue=a}: 200 s old when asked for)" in message
    assert 'min(timestamp(Queue_Depth{namespace="ml"}))' in [one.query for one in prometheus.asked]
