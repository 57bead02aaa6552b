"""``slicewatch explain hpa`` and the real HPA controller come to the same replicas."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from slicewatch.kube.quantity import thousandths
from testbed import require
from testbed.autoscaled_cluster import external_metric, object_metric, pods_metric
from testbed.binaries import Unavailable
from testbed.chain import manifests
from testbed.cluster.cluster import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PORT = 7443
NAME = "web"
POLICIES = [{"type": "Pods", "value": 20, "periodSeconds": 1}]
ROOT = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{manifests.WORKLOADS}"
EXTERNAL = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{manifests.WORKLOADS}"

# A metrics server whose answers stand in a file, by path.
SERVER = """
import http.server, json, ssl, sys, urllib.parse
port, certificate, key, answers = sys.argv[1:]
class Metrics(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = urllib.parse.unquote(self.path.partition("?")[0])
        parts = path.strip("/").split("/")
        code, body = 200, {"kind": "APIResourceList", "apiVersion": "v1", "resources": [],
                           "groupVersion": "/".join(parts[1:])}
        if len(parts) > 3:
            found = json.load(open(answers)).get(path)
            code, body = (200, found) if found else (404, {
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
                "message": "nobody knows this metric", "code": 404})
        sent = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server = http.server.ThreadingHTTPServer(("0.0.0.0", int(port)), Metrics)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


class Desk:
    """A Deployment on a real cluster, its HPA, and the values that it gets."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._answers = cluster.folder / "answers.json"
        self.say({})
        serving = cluster.pki.issue("metrics", sans=[manifests.SERVICE_HOST], client=False)
        arguments = (str(PORT), str(serving.certificate), str(serving.key), str(self._answers))
        self._server = cluster.popen([sys.executable, "-c", SERVER, *arguments], log="metrics")
        cluster.apply([manifests.namespace(n) for n in (manifests.NAMESPACE, manifests.WORKLOADS)])
        cluster.apply(manifests.registration(cluster.node_address, PORT, cluster.pki.ca))
        for group, version, _ in manifests.API_VERSIONS:
            cluster.kubectl("wait", "--for=condition=Available", "--timeout=60s",
                            f"apiservice/{version}.{group}")  # fmt: skip
        made = manifests.deployment(NAME, 3)
        del made["spec"]["template"]["spec"]["containers"][0]["resources"]
        cluster.apply([made])

    def say(self, answers: dict[str, Any]) -> None:
        fresh = self._answers.with_suffix(".new")
        fresh.write_text(json.dumps(answers))
        fresh.rename(self._answers)

    def scaled_to(self, replicas: int) -> list[str]:
        """Set the replicas, wait until just those run, and return their names."""
        within = f"--namespace={manifests.WORKLOADS}"
        self.cluster.kubectl("scale", f"deployment/{NAME}", f"--replicas={replicas}", within)

        def settled() -> list[str] | None:
            pods = self.cluster.get("pods", within)["items"]
            names = [p["metadata"]["name"] for p in pods if p["status"]["phase"] == "Running"]
            return names if len(names) == len(pods) == replicas else None

        return self.cluster.until(settled, what=f"{replicas} pods")

    def autoscaler(self, name: str, metric: dict[str, Any], *, policy: str) -> None:
        rules = {"selectPolicy": policy, "stabilizationWindowSeconds": 0, "policies": POLICIES}
        made = manifests.autoscaler(NAME, "", "1", least=1, most=20)
        made["metadata"]["name"] = name
        made["spec"] |= {"metrics": [metric], "behavior": {"scaleUp": rules, "scaleDown": rules}}
        self.cluster.apply([made])

    def explained(self, name: str) -> dict[str, Any]:
        command = [
            sys.executable, "-m", "cli", "explain", "hpa", name, "-n", manifests.WORKLOADS,
            f"--kubeconfig={self.cluster.kubeconfig()}", "--output=json",
        ]  # fmt: skip
        shell = f"{' '.join(command)} || test $? = 1"
        found: dict[str, Any] = json.loads(self.cluster.run("sh", "-c", shell))
        return found

    def status(self, name: str) -> dict[str, Any]:
        found = self.cluster.get("hpa", name, f"--namespace={manifests.WORKLOADS}")["status"]
        return dict(found) if found.get("conditions") else {}

    def first_size(self, name: str) -> int:
        """Return the first number of replicas that an autoscaler wrote."""

        def size() -> int | None:
            events = self.cluster.get(
                "events", f"--namespace={manifests.WORKLOADS}",
                f"--field-selector=involvedObject.name={name},reason=SuccessfulRescale",
            )["items"]  # fmt: skip
            texts = [e["message"] for e in sorted(events, key=lambda e: str(e["firstTimestamp"]))]
            return int(texts[0].split(";")[0].removeprefix("New size: ")) if texts else None

        return self.cluster.until(size, what=f"a rescale by {name}")


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    try:
        Cluster.prepare()
    except Unavailable as missing:
        require.skip_or_fail(str(missing))
    with Cluster.start(hpa_sync_seconds=1) as cluster:
        yield Desk(cluster)


def items(values: dict[str, str]) -> dict[str, Any]:
    return {
        "kind": "MetricValueList",
        "apiVersion": "custom.metrics.k8s.io/v1beta2",
        "metadata": {},
        "items": [
            {"describedObject": {"kind": "Pod", "namespace": "ml", "name": name, "apiVersion": "v1"},
             "metric": {"name": "m"}, "timestamp": "2026-09-20T10:15:03Z", "value": value}
            for name, value in values.items()
        ],
    }  # fmt: skip


def series(*values: str) -> dict[str, Any]:
    return {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [
            {
                "metricName": "q",
                "metricLabels": {},
                "timestamp": "2026-09-20T10:15:03Z",
                "value": v,
            }
            for v in values
        ],
    }


OF_NAMESPACE = object_metric("Namespace", manifests.WORKLOADS, "m", value="10")
CASES = {
    "above": (pods_metric("m"), ["100", "100", "100"], 5),
    "below": (pods_metric("m"), ["10", "10500m", "11"], 1),
    "missing": (pods_metric("m"), ["100", "100", None], 3),
    "missing-low": (pods_metric("m"), ["10", "10", None], 2),
    "within": (pods_metric("m"), ["70", "76", "77"], 3),
    "shared": (external_metric("Q", averageValue="2"), ["7", "6"], 7),
    "whole": (external_metric("q", value="10"), ["25"], 8),
    "object": (OF_NAMESPACE, ["4"], 2),
}


@pytest.mark.parametrize("case", CASES)
def test_the_controller_writes_what_is_explained(desk: Desk, case: str) -> None:
    metric, values, wanted = CASES[case]
    names = desk.scaled_to(3)
    by_pod = {n: v for n, v in zip(names, values, strict=False) if v is not None}
    desk.say({
        f"{ROOT}/pods/*/m": items(by_pod),
        f"{ROOT}/metrics/m": items({manifests.WORKLOADS: values[0] or ""}),
        f"{EXTERNAL}/q": series(*(v for v in values if v is not None)),
    })  # fmt: skip
    try:
        desk.autoscaler(case, metric, policy="Disabled")
        check_computation(desk, case, wanted)
        desk.autoscaler(case, metric, policy="Max")
        check_outcome(desk, case, wanted)
    finally:
        # Two autoscalers of the same pods would stop each other.
        desk.cluster.kubectl("delete", "hpa", case, f"--namespace={manifests.WORKLOADS}")


def check_computation(desk: Desk, case: str, wanted: int) -> None:
    """Compare what the controller read with what is explained, while it may not scale."""
    read = desk.cluster.until(lambda: desk.status(case).get("currentMetrics"), what="its metrics")
    (part,) = desk.explained(case)["metrics"]
    assert part["proposal"]["replicas"] == wanted
    current = next(value for key, value in read[0].items() if key != "type")["current"]
    assert (
        thousandths(current.get("averageValue") or current["value"]) == part["proposal"]["usage"]
    )


def check_outcome(desk: Desk, case: str, wanted: int) -> None:
    if wanted != 3:
        assert desk.first_size(case) == wanted
        return
    assert desk.explained(case)["decision"]["desired"] == 3
    assert desk.status(case)["desiredReplicas"] == 3


def test_a_metric_that_nobody_knows_is_as_broken_here_as_there(desk: Desk) -> None:
    desk.scaled_to(3)
    desk.say({})
    desk.autoscaler("unknown", pods_metric("m"), policy="Max")

    def failed() -> dict[str, str] | None:
        conditions = {c["type"]: c for c in desk.status("unknown").get("conditions", [])}
        return conditions.get("ScalingActive")

    condition = desk.cluster.until(failed, what="the condition")
    found = desk.explained("unknown")
    assert (condition["reason"], found["works"]) == ("FailedGetPodsMetric", False)
    assert found["metrics"][0]["fault"] in condition["message"]
    assert f"served by {manifests.NAMESPACE}/{manifests.SERVICE}" in " ".join(found["hints"])
