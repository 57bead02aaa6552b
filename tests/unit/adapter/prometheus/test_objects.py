"""Metrics of other objects than pods: named ones, and all of a kind."""

import json

import msgspec
import pytest

from slicewatch.kube import errors
from testbed.scripted_prometheus import dates, success, vector
from tests.unit.adapter.prometheus.scene import PODS

RULE = """
- seriesQuery: 'requests'
  resources:
    overrides:
      namespace: {resource: namespace}
      service: {resource: service}
      node: {resource: node}
      deployment: {group: apps, resource: deployment}
      rollout: {group: argoproj.io, resource: rollout}
      nothing: {group: nowhere.example, resource: thing}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
"""
ROOT = "/apis/custom.metrics.k8s.io/v1beta2"
WITHIN = f"{ROOT}/namespaces/ml"


class Cluster:
    """The discovery of an API server with 500 groups, one of which has rollouts."""

    def __init__(self):
        self.asked = []
        self.fault = None

    async def read(self, path, form):
        self.asked.append(path)
        if self.fault is not None:
            raise self.fault
        bodies = {
            "/apis/argoproj.io": {"preferredVersion": {"version": "v1alpha1"}},
            "/apis/argoproj.io/v1alpha1": {
                "resources": [
                    {"name": "rollouts", "singularName": "rollout", "kind": "Rollout",
                     "namespaced": True},
                    {"name": "rollouts/status", "singularName": "", "kind": "Rollout",
                     "namespaced": True},
                ]
            },
        }  # fmt: skip
        if path not in bodies:
            raise errors.NotFoundError(f"{path}: 404")
        return msgspec.convert(bodies[path], form)


@pytest.mark.parametrize(
    ("path", "label", "query", "described"),
    [
        ("services/front", "service", '{namespace="ml",service!=""}',
         {"kind": "Service", "namespace": "ml", "name": "front", "apiVersion": "v1"}),
        ("deployments.apps/front", "deployment", '{namespace="ml",deployment!=""}',
         {"kind": "Deployment", "namespace": "ml", "name": "front", "apiVersion": "apps/v1"}),
        ("nodes/front", "node", '{node="front"}',
         {"kind": "Node", "name": "front", "apiVersion": "v1"}),
    ],
)  # fmt: skip
async def test_a_named_object_is_exactly_one_item(
    serve, prometheus, path, label, query, described
):
    async with serve(RULE) as served:
        prometheus.values(({label: "front"}, 3), ({label: "other"}, 5))
        answer = json.loads((await served.ask(f"{WITHIN}/{path}/requests")).body)
    assert [(i["describedObject"], i["value"]) for i in answer["items"]] == [(described, "3")]
    assert prometheus.queries == [f"sum(requests{query}) by ({label})"]


async def test_a_namespace_is_an_object_of_its_own(serve, prometheus):
    async with serve(RULE) as served:
        prometheus.values(({"namespace": "ml"}, 9))
        assert await served.ask.values(f"{WITHIN}/metrics/requests") == {"ml": "9"}
    assert prometheus.queries == ['sum(requests{namespace="ml"}) by (namespace)']


async def test_all_objects_of_a_kind_are_those_that_the_result_names(serve, prometheus):
    async with serve(RULE) as served:
        prometheus.values(({"service": "front"}, 3), ({"service": "back"}, 5), ({}, 1))
        assert await served.ask.values(f"{WITHIN}/services/*/requests") == {
            "front": "3", "back": "5",
        }  # fmt: skip
        message = await served.ask.refusal(
            f"{WITHIN}/services/*/requests?labelSelector=a%3Db", 400
        )
    assert "the labels of services are not known here" in message


async def test_an_object_that_the_result_does_not_name_is_not_found(serve, prometheus):
    async with serve(RULE) as served:
        prometheus.values(({"service": "front"}, 3))
        message = await served.ask.refusal(f"{WITHIN}/services/lost/requests", 404)
    assert "1 services match, none has a value: 1 since the query makes no series" in message


async def test_only_the_groups_that_rules_name_are_asked_for_and_once(serve, prometheus):
    """prometheus-adapter #573, #514: start-up waited for the discovery of hundreds of groups."""
    cluster = Cluster()
    async with serve(RULE, server=cluster) as served:
        assert await served.rules.refresh()
        prometheus.values(({"rollout": "front"}, 3))
        path = f"{WITHIN}/rollouts.argoproj.io/front/requests"
        items = json.loads((await served.ask(path)).body)["items"]
    assert items[0]["describedObject"] == {
        "kind": "Rollout", "namespace": "ml", "name": "front", "apiVersion": "argoproj.io/v1alpha1",
    }  # fmt: skip
    assert sorted(cluster.asked) == [
        "/apis/argoproj.io", "/apis/argoproj.io/v1alpha1", "/apis/nowhere.example",
    ]  # fmt: skip


async def test_a_kind_is_learned_once_the_api_server_is_there(serve):
    cluster = Cluster()
    cluster.fault = errors.UnavailableError("connection refused")
    async with serve(RULE, server=cluster) as served:
        assert not await served.rules.refresh()
        revision = served.rules.revision
        cluster.fault = None
        assert await served.rules.refresh()
        assert served.rules.revision > revision
        assert ("rollouts.argoproj.io", "requests") in served.rules.custom


async def test_metrics_by_pattern_are_offered_as_long_as_the_backend_has_their_series(
    serve, prometheus
):
    """prometheus-adapter #229 and #63: names of now, and no series of all."""
    rule = """
- seriesQuery: '{__name__=~"^vllm:.*",pod!=""}'
  resources: {template: "<<.Resource>>"}
  name: {matches: "^vllm:(.*)$", as: "${1}"}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
"""
    names = ["vllm:num_requests_waiting"]

    def say(one):
        if one.path == "api/v1/labels":
            return success(["__name__", "namespace", "pod", "instance"])
        if one.query.startswith("count by (__name__)"):
            return vector(*(({"__name__": name}, 1) for name in names))
        return vector() if dates(one) else vector(({"pod": "a"}, 4))

    prometheus.say = say
    async with serve(rule) as served:
        await served.rules.refresh()
        assert await served.ask.values(f"{PODS}/a/num_requests_waiting") == {"a": "4"}
        listed = json.loads((await served.ask(ROOT)).body)["resources"]
        names[:] = ["vllm:other"]
        await served.rules.refresh()
        await served.ask.refusal(f"{PODS}/a/num_requests_waiting", 404)
    named = {one["name"] for one in listed}
    assert {"pods/num_requests_waiting", "namespaces/num_requests_waiting"} <= named
    assert not [one for one in prometheus.asked if one.path == "api/v1/series"]
