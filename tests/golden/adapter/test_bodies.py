"""Every kind of path in every version, to the byte. ``--update-golden`` writes anew."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from adapter.api.resources import DEPLOYMENTS, KNOWN
from adapter.provider import Offer
from testbed import fleet
from testbed.fixed_metrics import FixedObjects, FixedSeries
from testbed.front_proxy import ApiPort

GOLDEN = Path(__file__).parent
Compare = Callable[[Path, str], None]
OLD, NEW = "/apis/custom.metrics.k8s.io/v1beta1", "/apis/custom.metrics.k8s.io/v1beta2"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"

METRIC_PATHS = {
    "c1-all-pods": "/namespaces/ml/pods/*/gpu_utilization",
    "c1-quoted-asterisk": "/namespaces/ml/pods/%2A/gpu_utilization?labelSelector=app%3Dweb",
    "c1-metric-selector": "/namespaces/ml/pods/%2A/gpu_power_usage_watts"
    "?labelSelector=app%3Dweb&metricLabelSelector=gpu%3D0%2C%21profile",
    "c1-nothing-selected": "/namespaces/ml/pods/*/gpu_utilization?labelSelector=app%3Dnone",
    "c1-no-device-selected": "/namespaces/ml/pods/*/gpu_utilization?metricLabelSelector=gpu%3D9",
    "c2-one-pod": "/namespaces/ml/pods/web-b/gpu_memory_used_bytes",
    "c3-one-node": "/nodes/n1/gpu_memory_utilization",
    "c3-all-nodes": "/nodes/*/gpu_power_usage_watts",
    "c4-namespace": "/namespaces/ml/metrics/gpu_power_usage_watts",
    "c5-node-inside-namespace": "/namespaces/ml/nodes/n1/gpu_utilization",
    "c1-all-deployments": "/namespaces/ml/deployments.apps/*/queue_depth",
    "c2-one-deployment": "/namespaces/ml/deployment.apps/web/queue_depth",
    "c5-volume-inside-namespace": "/namespaces/ml/persistentvolumes/v1/disk_used_bytes",
    "unknown-metric": "/namespaces/ml/pods/*/gpu_utilisation",
    "unknown-resource": "/namespaces/ml/services/web/gpu_utilization",
    "unknown-pod": "/namespaces/ml/pods/nobody/gpu_utilization",
    "unknown-node": "/nodes/n9/gpu_utilization",
    "namespace-without-gpus": "/namespaces/empty/metrics/gpu_utilization",
    "bad-selector": "/namespaces/ml/pods/*/gpu_utilization?labelSelector=app%3D%3D%3Dx",
    "bad-metric-selector": "/namespaces/ml/pods/*/gpu_utilization?metricLabelSelector=gpu%3E1",
    "bad-combine": "/namespaces/ml/pods/*/gpu_utilization?metricLabelSelector=combine%3Dmedian",
    "bad-window": "/namespaces/ml/pods/*/gpu_utilization?metricLabelSelector=window%3D5m",
    "several-namespaces": "/namespaces/*/pods/*/gpu_utilization",
    "watch": "/namespaces/ml/pods/*/gpu_utilization?watch=true",
    "explain": "/namespaces/ml/pods/*/gpu_utilization?explain=true",
}
OTHER_PATHS = {
    "groups": "/apis",
    "custom-group": "/apis/custom.metrics.k8s.io",
    "external-group": "/apis/external.metrics.k8s.io",
    "custom-v1beta1": OLD,
    "custom-v1beta2": NEW,
    "external-v1beta1": EXTERNAL,
    "e1-all-series": f"{EXTERNAL}/namespaces/ml/queue_depth",
    "e1-chosen-series": f"{EXTERNAL}/namespaces/ml/queue_depth?labelSelector=queue%3Da",
    "e1-nothing-selected": f"{EXTERNAL}/namespaces/ml/queue_depth?labelSelector=queue%3Dc",
    "e1-bad-selector": f"{EXTERNAL}/namespaces/ml/queue_depth?labelSelector=queue%3E1",
    "e1-unknown": f"{EXTERNAL}/namespaces/ml/queue_dept",
    "openapi-v2": "/openapi/v2",
    "openapi-v3": "/openapi/v3",
}


VOLUMES = next(resource for resource in KNOWN if resource.kind == "PersistentVolume")
OBJECTS = {
    Offer(resource=DEPLOYMENTS, metric="queue_depth"): {("ml", "web"): 7.5, ("ml", "api"): 0.0},
    Offer(resource=VOLUMES, metric="disk_used_bytes"): {("", "v1"): 85_899_345_920.0},
}
SERIES = {"Queue_Depth": [({"queue": "a"}, 42.0), ({"queue": "b", "shard": "1"}, -1.5)]}


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[ApiPort]:
    made = ApiPort(tmp_path)
    made.offer(FixedObjects(dict(OBJECTS)), external=[FixedSeries(dict(SERIES))])
    made.add(
        fleet.pod(fleet.pod_json("web-a", labels={"app": "web"})),
        fleet.pod(fleet.pod_json("web-b", labels={"app": "web"})),
        fleet.pod(fleet.pod_json("done", labels={"app": "job"}, phase="Succeeded")),
        fleet.pod(fleet.pod_json("plain", labels={"app": "plain"}, gpus=0)),
    )
    layout = fleet.layout(
        [fleet.gpu(0), fleet.gpu(1)],
        [
            fleet.tenant("GPU-n1-0", "web-a"),
            fleet.tenant("GPU-n1-1", "web-b"),
            fleet.tenant("GPU-n1-1", "done"),
        ],
    )
    shot = fleet.snapshot(layout, {"gpu_utilization": [87.5, 19.6]}, ages=[0.5, 1.5])
    made.receive(fleet.frame(layout, shot))
    made.pass_seconds(2.0)
    async with made.serving():
        yield made


async def recorded(port: ApiPort, paths: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async with port.client(port.front_proxy()) as client:
        for name, path in paths.items():
            answer = await port.ask(path, client=client)
            assert answer.headers["Content-Type"].startswith("application/json")
            assert "Retry-After" not in answer.headers
            found[name] = {"path": path, "status": answer.status, "body": json.loads(answer.body)}
    return found


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
async def test_custom_metrics_are_answered_as_recorded(
    port: ApiPort, version: str, golden: Compare
) -> None:
    root = f"/apis/custom.metrics.k8s.io/{version}"
    paths = {name: root + path for name, path in METRIC_PATHS.items()}
    found = await recorded(port, paths)
    golden(GOLDEN / f"custom-{version}.json", json.dumps(found, indent=1) + "\n")


async def test_discovery_and_external_metrics_are_answered_as_recorded(
    port: ApiPort, golden: Compare
) -> None:
    found = await recorded(port, OTHER_PATHS)
    golden(GOLDEN / "discovery.json", json.dumps(found, indent=1) + "\n")


async def test_bodies_are_compact_json_unless_people_ask(port: ApiPort) -> None:
    path = f"{NEW}/namespaces/ml/pods/web-a/gpu_utilization"
    async with port.client(port.front_proxy()) as client:
        plain = await port.ask(path, client=client)
        pretty = await port.ask(f"{path}?pretty=true", client=client)
        curl = await port.ask(path, client=client, headers={"User-Agent": "curl/8.0"})
        asked_not = await port.ask(
            f"{path}?pretty=false", client=client, headers={"User-Agent": "curl/8.0"}
        )
    assert b"\n" not in plain.body
    assert plain.body == asked_not.body
    assert pretty.body == curl.body != plain.body
    assert json.loads(pretty.body) == json.loads(plain.body)
