"""From NVML's C interface to a scaled Deployment, on a real Kubernetes."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from testbed import require
from testbed.binaries import Unavailable
from testbed.chain import manifests
from testbed.chain.chain import ADAPTER_PORT, EXPORTER_PORT, Chain
from testbed.chain.timeline import Moment, Timeline
from testbed.cluster.cluster import Cluster
from testbed.cluster.waiting import ClusterError

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

DEPLOYMENT = "inference-pool"
TARGET = 70
CUSTOM = "/apis/custom.metrics.k8s.io"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"

DIRECT_CLIENT = """
import http.client, json, ssl, sys
port, authority, certificate, key, headers = sys.argv[1:]
context = ssl.create_default_context(cafile=authority)
if certificate:
    context.load_cert_chain(certificate, key)
connection = http.client.HTTPSConnection("localhost", int(port), context=context, timeout=10)
try:
    connection.request("GET", "/apis/custom.metrics.k8s.io/v1beta2", headers=json.loads(headers))
    print(connection.getresponse().status)
except (ssl.SSLError, ConnectionError) as error:
    print("refused", type(error).__name__)
"""


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    try:
        Cluster.prepare()
    except Unavailable as missing:
        require.skip_or_fail(str(missing))
    flags = ["--horizontal-pod-autoscaler-downscale-stabilization=10s"]
    with (
        Cluster.start(hpa_sync_seconds=2, controller_manager_flags=flags) as cluster,
        Chain(cluster) as chain,
    ):
        cluster.apply([manifests.deployment(DEPLOYMENT, 2)])
        cluster.until(lambda: len(chain.utilization()) == 2, what="values of two pods")
        yield chain


def settled(
    timeline: Timeline, replicas: int, *, seconds: float, low: float, high: float
) -> Moment:
    """Watch until that many pods run with a mean within the bounds."""
    for moment in timeline.watch(seconds):
        counts = (moment.replicas, moment.ready, len(moment.values))
        if counts == (replicas,) * 3 and moment.mean is not None and low <= moment.mean <= high:
            return moment
    raise AssertionError(f"did not settle at {replicas} replicas within {seconds:.0f} s")


def test_an_hpa_follows_the_gpu_load_up_and_down(chain: Chain) -> None:
    chain.demand.gpus = 1.4
    chain.cluster.apply([
        manifests.autoscaler(DEPLOYMENT, "gpu_utilization", str(TARGET), least=2, most=6)
    ])  # fmt: skip
    timeline = Timeline(chain, DEPLOYMENT)
    settled(timeline, 2, seconds=60, low=TARGET * 0.9, high=TARGET * 1.1)

    chain.demand.gpus = 3.5
    up = settled(timeline, 5, seconds=120, low=TARGET * 0.9, high=TARGET * 1.1)
    description = chain.cluster.kubectl(
        "describe", "hpa", DEPLOYMENT, f"--namespace={manifests.WORKLOADS}"
    )
    print(f"\n{description}")
    assert '"gpu_utilization" on pods' in description
    assert "ValidMetricFound" in description

    chain.demand.gpus = 1.4
    down = settled(timeline, 2, seconds=120, low=TARGET * 0.9, high=TARGET * 1.1)
    assert (up.replicas, down.replicas) == (5, 2)
    ages = [m.age_seconds for m in timeline.moments if m.age_seconds is not None]
    # Timestamps have whole seconds: a value of a tick ago may look two seconds old.
    assert max(ages) <= 3.5


def pod_names(chain: Chain) -> list[str]:
    return sorted(chain.gpus_of_running_pods())


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_every_path_answers_through_the_aggregator(chain: Chain, version: str) -> None:
    base = f"{CUSTOM}/{version}"
    listed = {resource["name"] for resource in chain.raw(base)["resources"]}
    metrics = {
        "gpu_utilization", "gpu_memory_utilization", "gpu_memory_used_bytes",
        "gpu_power_usage_watts",
    }  # fmt: skip
    assert listed >= {f"{kind}/{m}" for kind in ("pods", "nodes", "namespaces") for m in metrics}
    namespace = f"{base}/namespaces/{manifests.WORKLOADS}"
    names = pod_names(chain)
    for metric in metrics:
        everything = chain.raw(f"{namespace}/pods/*/{metric}?labelSelector=app%3D{DEPLOYMENT}")
        assert sorted(i["describedObject"]["name"] for i in everything["items"]) == names
        for path, kind in (
            (f"{namespace}/pods/{names[0]}/{metric}", "Pod"),
            (f"{base}/nodes/node1/{metric}", "Node"),
            (f"{base}/nodes/*/{metric}", "Node"),
            (f"{namespace}/nodes/node1/{metric}", "Node"),
            (f"{namespace}/metrics/{metric}", "Namespace"),
        ):
            (item,) = chain.raw(path)["items"]
            assert item["describedObject"]["kind"] == kind


def test_the_external_api_has_what_the_cluster_has(chain: Chain) -> None:
    listed = {resource["name"] for resource in chain.raw(EXTERNAL)["resources"]}
    assert "gpu_cluster_requested_devices" in listed
    namespace = f"{EXTERNAL}/namespaces/{manifests.WORKLOADS}"
    values = chain.raw(f"{namespace}/gpu_cluster_requested_devices")["items"]
    assert sum(int(item["value"]) for item in values) >= len(pod_names(chain))
    with pytest.raises(ClusterError, match="NotFound"):
        chain.raw(f"{namespace}/queue_depth")


def test_discovery_of_the_whole_cluster_works(chain: Chain) -> None:
    # kubectl fails here, and so does every deletion of a namespace, where one API is not whole.
    assert "horizontalpodautoscalers" in chain.cluster.kubectl("api-resources")
    chain.cluster.apply([manifests.namespace("short-lived")])
    chain.cluster.kubectl("delete", "namespace", "short-lived", "--timeout=30s")


def test_explain_shows_where_a_value_comes_from(chain: Chain) -> None:
    base = f"{CUSTOM}/v1beta2/namespaces/{manifests.WORKLOADS}/pods/*/gpu_utilization"
    answer = chain.cluster.kubectl("get", "--raw", f"{base}?explain=true")
    for name, gpu in chain.gpus_of_running_pods().items():
        assert name in answer
        assert gpu in answer


def test_a_user_without_rights_on_the_metric_is_refused(chain: Chain) -> None:
    chain.cluster.kubeconfig("reader", user="reader")
    chain.cluster.apply(manifests.metric_reader("reader", "gpu_utilization"))
    pods = f"{CUSTOM}/v1beta2/namespaces/{manifests.WORKLOADS}/pods/*"
    chain.cluster.until(
        lambda: chain.raw(f"{pods}/gpu_utilization", as_user="reader")["items"], what="the right"
    )
    for path in (f"{pods}/gpu_power_usage_watts", f"{pods}/gpu_power_usage_watts?explain=true"):
        with pytest.raises(ClusterError, match="forbidden"):
            chain.raw(path, as_user="reader")


def direct(chain: Chain, ca: str | None, headers: dict[str, str]) -> str:
    """Ask the adapter without the API server; return the status, or that TLS refused."""
    certificate = chain.client_certificate(f"direct-{ca}", ca=ca) if ca else None
    files = [str(certificate.certificate), str(certificate.key)] if certificate else ["", ""]
    arguments = [str(ADAPTER_PORT), str(chain.cluster.pki.ca), *files, json.dumps(headers)]
    return chain.cluster.run(sys.executable, "-c", DIRECT_CLIENT, *arguments).strip()


@pytest.mark.parametrize("ca", [None, "ca", "front-proxy-ca"])
def test_a_client_without_the_front_proxys_certificate_is_refused(
    chain: Chain, ca: str | None
) -> None:
    headers = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    answer = direct(chain, ca, headers)
    # The front proxy's authority alone is not enough either: the name has to be an allowed one.
    assert (answer == "401") if ca == "front-proxy-ca" else answer.startswith("refused")


def exposition(chain: Chain) -> str:
    url = f"http://{chain.cluster.node_address}:{EXPORTER_PORT}/metrics"
    script = f"import urllib.request; print(urllib.request.urlopen({url!r}).read().decode())"
    return chain.cluster.run(sys.executable, "-c", script)


def up(text: str, gpu: str) -> list[float]:
    lines = [line for line in text.splitlines() if line.startswith("gpu_up{") and gpu in line]
    return [float(line.rpartition(" ")[2]) for line in lines]


def test_a_gpu_that_hangs_costs_itself_alone(chain: Chain) -> None:
    from simulator.scenario import Hang

    hung, *others = (gpu.uuid for gpu in chain.node.gpus)
    injection = chain.node.inject(Hang(node="node1", gpu=0, at=0.0))
    try:
        chain.cluster.until(lambda: up(exposition(chain), hung) == [0.0], what="gpu_up 0")
        text = exposition(chain)
        assert [up(text, gpu) for gpu in others] == [[1.0]] * len(others)
        assert f'gpu_power_usage_watts{{gpu="0",uuid="{hung}"' not in text
    finally:
        chain.node.clear(injection)
    chain.cluster.until(lambda: up(exposition(chain), hung) == [1.0], what="gpu_up 1 again")


def test_the_real_kubelet_keeps_the_contract_of_pod_resources(chain: Chain) -> None:
    text = exposition(chain)
    tenants = [line for line in text.splitlines() if line.startswith("gpu_tenant_info{")]
    held: dict[str, Any] = chain.gpus_of_running_pods()
    assert len(tenants) == len(held)
    for pod, gpu in held.items():
        assert any(f'pod="{pod}"' in line and f'uuid="{gpu}"' in line for line in tenants)
