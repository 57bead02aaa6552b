"""Every request that real clients sent, answered by the API port over TLS.

``recorded.json`` holds the distinct requests that kube-apiserver, kube-controller-manager and
kubectl of Kubernetes 1.20 and 1.36 sent to an aggregated API server, with what they have to get.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from adapter.api.resources import DEPLOYMENTS, NAMESPACES, NODES, SERVICES
from adapter.provider import Offer
from testbed import fleet
from testbed.fixed_metrics import FixedObjects, FixedSeries
from testbed.front_proxy import ApiPort

RECORDED = json.loads(
    (Path(__file__).parents[1] / "golden" / "adapter" / "recorded.json").read_text()
)
OBJECTS = {
    Offer(resource=SERVICES, metric="obj_service"): {("default", "kubernetes"): 11.0},
    Offer(resource=DEPLOYMENTS, metric="obj_deploy"): {("default", "infer2"): 12.0},
    Offer(resource=NODES, metric="obj_node"): {("", "node-a"): 13.0},
    Offer(resource=NAMESPACES, metric="obj_ns"): {("", "default"): 14.0},
}
SERIES = {"queue_length": [({"queue": "a"}, 42.0), ({"queue": "b"}, 7.0)]}


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[ApiPort]:
    made = ApiPort(tmp_path)
    made.offer(FixedObjects(dict(OBJECTS)), external=[FixedSeries(dict(SERIES))])
    names = {"infer-a": 80.0, "infer-b": 60.0, "infer2-a": 30.0}
    for name in names:
        labels = {"app": name.partition("-")[0]}
        made.add(fleet.pod(fleet.pod_json(name, namespace="default", labels=labels)))
    layout = fleet.layout(
        [fleet.gpu(index) for index in range(len(names))],
        [
            fleet.tenant(f"GPU-n1-{index}", name, namespace="default")
            for index, name in enumerate(names)
        ],
    )
    shot = fleet.snapshot(layout, {"gpu_utilization": list(names.values())})
    made.receive(fleet.frame(layout, shot))
    async with made.serving():
        yield made


def named(body: dict[str, Any]) -> dict[str, str]:
    """Return the values of a list by what its items are about."""
    found = {}
    for item in body["items"]:
        about = item["describedObject"]["name"] if "describedObject" in item else None
        found[about or item["metricName"]] = item["value"]
    return found


@pytest.mark.parametrize(
    "sent", RECORDED, ids=[f"{r['from']}, {r['kubernetes']}, {r['target']}" for r in RECORDED]
)
async def test_a_recorded_request_is_answered(port: ApiPort, sent: dict[str, Any]) -> None:
    url = URL(port.url + sent["target"], encoded=True)
    async with (
        port.client(port.front_proxy()) as client,
        client.get(url, headers=[tuple(pair) for pair in sent["headers"]]) as answer,
    ):
        body = await answer.json(content_type="application/json")
    assert answer.status == sent["status"], body
    assert answer.content_type == "application/json"
    assert not {"Retry-After", "Content-Encoding"} & answer.headers.keys()
    assert body["kind"] == sent["kind"]
    if "values" in sent:
        assert body["metadata"] == {}
        assert named(body) == sent["values"]


@pytest.mark.parametrize(
    ("path", "described"),
    [
        ("services/kubernetes/obj_service",
         {"kind": "Service", "namespace": "default", "name": "kubernetes", "apiVersion": "v1"}),
        ("deployments.apps/infer2/obj_deploy",
         {"kind": "Deployment", "namespace": "default", "name": "infer2", "apiVersion": "apps/v1"}),
        ("nodes/node-a/obj_node", {"kind": "Node", "name": "node-a", "apiVersion": "v1"}),
        ("metrics/obj_ns", {"kind": "Namespace", "name": "default", "apiVersion": "v1"}),
    ],
)  # fmt: skip
async def test_an_object_is_described_as_it_names_itself(
    port: ApiPort, path: str, described: dict[str, str]
) -> None:
    """azure-k8s-metrics-adapter #34: group and version were joined to ``/v1``."""
    for version in ("v1beta1", "v1beta2"):
        target = f"/apis/custom.metrics.k8s.io/{version}/namespaces/default/{path}"
        async with port.client(port.front_proxy()) as client:
            (item,) = json.loads((await port.ask(target, client=client)).body)["items"]
        assert item["describedObject"] == described
        assert not {"window", "windowSeconds"} & item.keys()


DISCOVERY_ACCEPT = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)
SERVICES_OF_APIS = (
    "custom.metrics.k8s.io/v1beta1",
    "custom.metrics.k8s.io/v1beta2",
    "external.metrics.k8s.io/v1beta1",
)
Discovered = dict[str, dict[str, tuple[str, set[str]]]]


class Aggregator:
    """What kube-apiserver does with an aggregated API server, in the order in which it does."""

    def __init__(self, port: ApiPort, client: aiohttp.ClientSession) -> None:
        self._port, self._client = port, client

    async def get(
        self, path: str, user: str, *groups: str, accept: str = ""
    ) -> tuple[int, str, Any]:
        headers = [("X-Remote-User", user), *(("X-Remote-Group", g) for g in groups)]
        headers += [("Accept", accept)] if accept else []
        url = URL(self._port.url + path, encoded=True)
        async with self._client.get(url, headers=headers, allow_redirects=False) as answer:
            text = await answer.text()
            return answer.status, answer.headers["Content-Type"], json.loads(text or "null")

    async def available(self, service: str) -> bool:
        """Probe five times at once on new connections; one good answer is enough."""
        path = f"/apis/{service}"
        async with self._port.client(self._port.front_proxy()) as client:
            probes = [Aggregator(self._port, client) for _ in range(5)]
            answers = await asyncio.gather(
                *(p.get(path, "system:kube-aggregator", "system:masters") for p in probes)
            )
        return any(200 <= status < 300 for status, _, _ in answers)

    async def discovered(self) -> Discovered:
        """Ask for aggregated discovery, and convert the legacy form if that is not had."""
        _, content_type, _ = await self.get(
            "/apis", "system:kube-aggregator", "system:masters", accept=DISCOVERY_ACCEPT
        )
        assert "as=APIGroupDiscoveryList" not in content_type, "listed anew: convert that instead"
        found: Discovered = {}
        for service in SERVICES_OF_APIS:
            status, _, body = await self.get(
                f"/apis/{service}", "system:kube-aggregator", accept="application/json"
            )
            assert (status, body["groupVersion"]) == (200, service)
            found[service] = converted(body["resources"])
        return found

    async def openapi(self) -> list[int]:
        """Ask for version 3, and if there is none, for version 2 to be converted."""
        third = (await self.get("/openapi/v3", "system:aggregator"))[0]
        second = (await self.get("/openapi/v2", "system:aggregator", accept="application/json"))[0]
        return [third, second]


def converted(resources: list[dict[str, Any]]) -> dict[str, tuple[str, set[str]]]:
    """Return scope and subresources by parent; fails for what kube-apiserver refuses all of."""
    found: dict[str, tuple[str, set[str]]] = {}
    for resource in resources:
        assert resource["verbs"] == ["get"]
        parent, _, metric = resource["name"].partition("/")
        scope = "Namespaced" if resource["namespaced"] else "Cluster"
        known, metrics = found.setdefault(parent, (scope, set()))
        assert known == scope, f"{parent} is listed in both scopes"
        metrics.add(metric)
    return found


@pytest.fixture
async def aggregator(port: ApiPort) -> AsyncIterator[Aggregator]:
    async with port.client(port.front_proxy()) as client:
        yield Aggregator(port, client)


async def test_all_three_apis_are_available(aggregator: Aggregator) -> None:
    """prometheus-adapter #626, #361, helm-charts #1144, kube-prometheus #679: an API that is not there makes namespaces undeletable."""
    for service in SERVICES_OF_APIS:
        assert await aggregator.available(service)


async def test_without_any_metrics_all_three_apis_are_available_and_list_nothing(
    tmp_path: Path,
) -> None:
    """prometheus-adapter #664 and #694: without rules there was no API, or a null list."""
    made = ApiPort(tmp_path)
    made.custom = []
    made.offer()
    async with made.serving(), made.client(made.front_proxy()) as client:
        empty = Aggregator(made, client)
        for service in SERVICES_OF_APIS:
            assert await empty.available(service)
            status, _, body = await empty.get(f"/apis/{service}", "admin")
            assert (status, body["resources"]) == (200, [])


async def test_aggregated_discovery_is_built_from_the_legacy_form(aggregator: Aggregator) -> None:
    found = await aggregator.discovered()
    new, old = (found[f"custom.metrics.k8s.io/{version}"] for version in ("v1beta2", "v1beta1"))
    assert new == old
    assert new["services"] == ("Namespaced", {"obj_service"})
    assert new["deployments.apps"] == ("Namespaced", {"obj_deploy"})
    scopes = {parent: scope for parent, (scope, _) in new.items()}
    assert scopes["pods"] == "Namespaced"
    assert scopes["nodes"] == scopes["namespaces"] == "Cluster"
    assert "gpu_utilization" in new["pods"][1]
    assert found["external.metrics.k8s.io/v1beta1"] == {"queue_length": ("Namespaced", {""})}


async def test_openapi_is_not_found_and_nothing_worse(aggregator: Aggregator) -> None:
    assert await aggregator.openapi() == [404, 404]


async def test_a_user_is_answered_whatever_the_front_proxy_says_of_him(
    aggregator: Aggregator,
) -> None:
    path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/%2A/gpu_utilization"
    groups = [f"oidc:team-{number}" for number in range(200)]
    status, _, body = await aggregator.get(path, "alice", *groups, "system:authenticated")
    assert status == 200
    assert len(body["items"]) == 3
