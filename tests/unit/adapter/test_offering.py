"""Who is asked for what, what is listed, and what is said when nobody knows it."""

import json
import time
from collections.abc import Iterable
from typing import Any

import pytest

from adapter.api.paths import CUSTOM, EXTERNAL, DiscoveryPath, ExternalPath, MetricPath, parse
from adapter.api.resources import DEPLOYMENTS, NODES, PODS, SERVICES, Resource
from adapter.api.status import Refusal
from adapter.offering import Offering
from adapter.provider import Offer
from testbed.fixed_metrics import FixedObjects, FixedSeries

ROOT = "/apis/custom.metrics.k8s.io/v1beta1"
GATEWAYS = Resource(
    group="net.example.com", plural="gateways", singular="gateway", kind="Gateway",
    namespaced=False,
)  # fmt: skip


def objects(*offers: tuple[Resource, str]) -> FixedObjects:
    return FixedObjects({Offer(resource=r, metric=m): {} for r, m in offers})


def series(*names: str) -> FixedSeries:
    return FixedSeries(dict.fromkeys(names, ()))


def at(path: str) -> MetricPath:
    found = parse(ROOT + path)
    assert isinstance(found, MetricPath)
    return found


def listed(offering: Offering, group: str = CUSTOM) -> dict[str, bool]:
    """Return the names in discovery, and whether they are namespaced."""
    body = json.loads(offering.discovery(DiscoveryPath(group=group, version="v1beta1")))
    assert len({r["name"] for r in body["resources"]}) == len(body["resources"])
    return {r["name"]: r["namespaced"] for r in body["resources"]}


def refusal(offering: Offering, path: str) -> str:
    with pytest.raises(Refusal) as caught:
        offering.of(offering.canonical(at(path)))
    assert caught.value.code == 404
    return caught.value.message


def test_of_two_providers_of_the_same_the_first_is_asked_and_it_is_listed_once() -> None:
    first, second = objects((PODS, "m")), objects((PODS, "m"), (NODES, "m"))
    offering = Offering([first, second])
    assert offering.of(at("/namespaces/ml/pods/*/m")) is first
    assert offering.of(at("/nodes/n1/m")) is second
    assert listed(offering) == {"pods/m": True, "nodes/m": False}


@pytest.mark.parametrize(
    ("path", "namespace", "resource"),
    [
        ("/namespaces/ml/deployments.apps/d/m", "ml", "deployments.apps"),
        ("/namespaces/ml/deployment.apps/d/m", "ml", "deployments.apps"),
        ("/namespaces/ml/deployments/d/m", "ml", "deployments.apps"),
        ("/namespaces/ml/pod/a/m", "ml", "pods"),
        ("/namespaces/ml/nodes/n1/m", "", "nodes"),
        ("/namespaces/ml/persistentvolumes/v/m", "", "persistentvolumes"),
        ("/persistentvolumes/v/m", "", "persistentvolumes"),
        ("/namespaces/ml/gateways.net.example.com/g/m", "", "gateways.net.example.com"),
        ("/gateway.net.example.com/g/m", "", "gateways.net.example.com"),
        ("/namespaces/ml/unheard.of/x/m", "ml", "unheard.of"),
    ],
)
def test_objects_have_the_scope_and_the_name_of_their_kind_however_they_are_asked_for(
    path: str, namespace: str, resource: str
) -> None:
    offering = Offering([objects((GATEWAYS, "m"))])
    found = offering.canonical(at(path))
    assert (found.namespace, found.resource) == (namespace, resource)


def test_objects_that_are_in_namespaces_are_not_found_outside_of_them() -> None:
    offering = Offering([objects((DEPLOYMENTS, "m"))])
    message = refusal(offering, "/deployments.apps/d/m")
    assert "ask at /namespaces/<namespace>/deployments.apps/d/m" in message


def test_what_is_unknown_is_refused_with_what_there_is() -> None:
    offering = Offering([objects((PODS, "latency"), (PODS, "depth"), (SERVICES, "depth"))])
    assert "it is served for services" in refusal(
        Offering([objects((SERVICES, "depth"))]), "/namespaces/ml/pods/*/depth"
    )
    message = refusal(offering, "/namespaces/ml/pods/*/latensy")
    assert "those of pods are latency, depth; did you mean latency?" in message
    message = refusal(offering, "/namespaces/ml/ingresses/i/rate")
    assert "metrics are served for pods, services" in message


def test_a_message_names_a_few_of_many_metrics() -> None:
    offering = Offering([objects(*((PODS, f"m{number}") for number in range(5000)))])
    message = refusal(offering, "/namespaces/ml/pods/*/unlike")
    assert "m39 and 4960 more" in message
    assert len(message) < 500


def test_a_metric_is_listed_and_found_as_soon_as_it_is_offered() -> None:
    provider, outside = objects((PODS, "m")), series("q")
    offering = Offering([provider], [outside])
    provider.given[Offer(resource=GATEWAYS, metric="new")] = {}
    assert "gateways.net.example.com/new" not in listed(offering)
    provider.revision += 1
    assert listed(offering)["gateways.net.example.com/new"] is False
    assert offering.of(offering.canonical(at("/gateways.net.example.com/g/new"))) is provider
    outside.given["other"] = ()
    outside.revision += 1
    assert listed(offering, EXTERNAL) == {"other": True, "q": True}


def test_a_kind_is_never_listed_in_both_scopes() -> None:
    """kube-apiserver drops all of a group that lists a kind in both scopes."""
    wrong = Resource(plural="nodes", singular="node", kind="Node", namespaced=True)
    other = Resource(
        group=GATEWAYS.group, plural="gateways", singular="gateway", kind="Gateway",
        namespaced=True,
    )  # fmt: skip
    offering = Offering([objects((wrong, "a"), (GATEWAYS, "b")), objects((other, "c"))])
    assert listed(offering) == {"gateways.net.example.com/b": False}
    assert "it is served" not in refusal(offering, "/nodes/n1/a")


def test_a_core_kind_is_not_taken_for_one_of_the_same_name_in_another_group() -> None:
    theirs = Resource(group="events.k8s.io", plural="events", singular="event", kind="Event")
    ours = Resource(plural="events", singular="event", kind="Event")
    offering = Offering([objects((theirs, "a"), (ours, "b"))])
    assert set(listed(offering)) == {"events.events.k8s.io/a", "events/b"}
    assert offering.canonical(at("/namespaces/ml/events/e/b")).resource == "events"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2Fb"])
def test_a_name_that_no_path_can_hold_is_not_listed(name: str) -> None:
    offering = Offering([objects((PODS, name), (PODS, "m"))], [series(name, "q")])
    assert set(listed(offering)) == {"pods/m"}
    assert set(listed(offering, EXTERNAL)) == {"q"}


@pytest.mark.parametrize("name", ["vllm:num_requests_waiting", "a|b", "a b", "status", "é"])
def test_any_other_name_of_a_metric_of_objects_is_served(name: str) -> None:
    provider = objects((PODS, name))
    offering = Offering([provider])
    assert f"pods/{name}" in listed(offering)
    path = at("/namespaces/ml/pods/*/m")
    found = MetricPath(
        version=path.version, namespace="ml", resource="pods", kind=path.kind, name="*",
        metric=name,
    )  # fmt: skip
    assert offering.of(found) is provider


@pytest.mark.parametrize("asked", ["DCGM_FI_DEV_GPU_UTIL", "dcgm_fi_dev_gpu_util"])
def test_an_external_metric_has_no_case(asked: str) -> None:
    """k8s #72996, k8s-stackdriver #274, DataDog #2855, custom-metrics-apiserver #95: lowered names."""
    provider = series("DCGM_FI_DEV_GPU_UTIL")
    offering = Offering([], [provider])
    assert offering.of_external(ExternalPath(namespace="ml", metric=asked)) is provider
    assert listed(offering, EXTERNAL) == {"DCGM_FI_DEV_GPU_UTIL": True}


def test_an_external_name_may_hold_a_bar() -> None:
    """k8s-stackdriver #413, gpu-monitoring-tools #179: names with ``|`` arrive as ``%7C``."""
    provider = series("custom|gpu|duty_cycle")
    path = parse(f"/apis/{EXTERNAL}/v1beta1/namespaces/ml/custom%7Cgpu%7Cduty_cycle")
    assert isinstance(path, ExternalPath)
    assert Offering([], [provider]).of_external(path) is provider


def test_of_external_names_that_differ_by_case_only_the_first_is_served() -> None:
    first, second = series("Depth", "q"), series("depth", "Q", "other")
    offering = Offering([], [first, second])
    assert listed(offering, EXTERNAL) == {"Depth": True, "other": True, "q": True}
    assert offering.of_external(ExternalPath(namespace="ml", metric="DEPTH")) is first


@pytest.mark.parametrize("name", ["status", "finalize", "Status"])
def test_an_external_name_that_kubernetes_reads_as_another_resource_is_refused(name: str) -> None:
    offering = Offering([], [series(name, "q")])
    assert listed(offering, EXTERNAL) == {"q": True}
    with pytest.raises(Refusal, match="part of the namespace: rename it") as caught:
        offering.of_external(ExternalPath(namespace="ml", metric=name))
    assert caught.value.code == 404


def test_an_unknown_external_metric_is_refused_with_what_there_is() -> None:
    path = ExternalPath(namespace="ml", metric="queue_dept")
    with pytest.raises(Refusal, match="known are queue_depth; did you mean queue_depth\\?"):
        Offering([], [series("queue_depth")]).of_external(path)
    with pytest.raises(Refusal, match="no external metrics are configured"):
        Offering([]).of_external(path)


class Broken(FixedObjects):
    """A provider with a bug."""

    def offers(self) -> Iterable[Offer]:
        yield Offer(resource=PODS, metric="first")
        raise RuntimeError("planted")


def test_a_provider_that_cannot_say_what_it_offers_costs_no_other() -> None:
    """prometheus-adapter #225: one rule that failed took all metrics with it."""
    assert listed(Offering([Broken({}), objects((PODS, "m"))])) == {"pods/m": True}


def test_five_thousand_metrics_are_listed_in_time_and_made_once() -> None:
    """prometheus-adapter #691: discovery took longer than the five seconds it is given."""
    provider = objects(*((PODS, f"metric_of_some_length_{number}") for number in range(5000)))
    path = DiscoveryPath(group=CUSTOM, version="v1beta1")
    took = []
    for _ in range(5):
        began = time.process_time()
        offering = Offering([provider])
        made = offering.discovery(path)
        took.append(time.process_time() - began)
    assert min(took) < 0.05
    assert len(json.loads(made)["resources"]) == 5000
    assert offering.discovery(path) is made


def body(offering: Offering, path: DiscoveryPath) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(offering.discovery(path))
    return decoded


def test_an_empty_list_is_a_list() -> None:
    """prometheus-adapter #664, custom-metrics-apiserver #146, k8s-stackdriver #523, tilt #5922,
    client-go #1223: no metrics are no null.
    """
    offering = Offering([])
    for group, versions in ((CUSTOM, ("v1beta1", "v1beta2")), (EXTERNAL, ("v1beta1",))):
        for version in versions:
            found = body(offering, DiscoveryPath(group=group, version=version))
            assert found["resources"] == []
            assert (found["kind"], found["apiVersion"]) == ("APIResourceList", "v1")
            assert found["groupVersion"] == f"{group}/{version}"


def test_metrics_are_listed_by_name_in_every_version() -> None:
    offering = Offering([objects((PODS, "b"), (NODES, "a"), (PODS, "a"))])
    for version in ("v1beta1", "v1beta2"):
        found = body(offering, DiscoveryPath(group=CUSTOM, version=version))
        assert [r["name"] for r in found["resources"]] == ["nodes/a", "pods/a", "pods/b"]
