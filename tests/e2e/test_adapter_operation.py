"""The adapter as it is operated: two pods behind a Service, whose surroundings change and fail."""

import datetime
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cryptography import x509

from adapter.authority import LIFETIME, SETTLING, Authorities
from slicewatch.service import certificates
from testbed import require
from testbed.autoscaled_cluster import external_metric, object_metric, pods_metric
from testbed.binaries import Unavailable
from testbed.chain import manifests
from testbed.chain.handshakes import admitted, replace, shown, write
from testbed.chain.manifests import NAMESPACE, SERVICE, WORKLOADS
from testbed.chain.replicas import ReplicaChain, secret
from testbed.chain.standing import Standing, hpa_status, trusted, values_read
from testbed.cluster.cluster import Cluster
from testbed.cluster.pki import CLUSTER_AUTHORITY
from testbed.cluster.waiting import ClusterError

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

DEPLOYMENT = "inference-pool"
PODS = 3
DEMAND = 2.1
GPUS = 6
UTILIZATION = 100 * DEMAND / PODS
OF_NODE = 100 * DEMAND / GPUS
CUSTOM = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{WORKLOADS}"
EXTERNAL = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{WORKLOADS}"
# A third of a second, as often as is asked. Of 33 processes killed, 28 cost none, 4 one, 1 two.
MOST_FAILED = 3
ASKED = f"{CUSTOM}/pods/%2A/gpu_utilization?labelSelector=app%3D{DEPLOYMENT}"
FRONT_PROXY = "extension-apiserver-authentication"
AUTHORITY = f"{SERVICE}-authority"
MOUNTED = f"{SERVICE}-tls"
DAY = datetime.timedelta(days=1)
LOADED = '"Loaded a new cert/key pair" name="aggregator-proxy-cert'


def of_deployment(metric: str, value: str) -> dict[str, Any]:
    made = object_metric("Deployment", DEPLOYMENT, metric, value=value)
    made["object"]["describedObject"]["apiVersion"] = "apps/v1"
    return made


# Every kind of source, with a target that the present load just meets, and that load.
SOURCES = [
    (pods_metric(), UTILIZATION),
    (object_metric("Service", "server", "service_gpu_utilization", value="70"), UTILIZATION),
    (of_deployment("deployment_gpu_utilization", "70"), UTILIZATION),
    (object_metric("Node", "node1", "gpu_utilization", value="35"), OF_NODE),
    (object_metric("Namespace", WORKLOADS, "gpu_utilization", value="70"), UTILIZATION),
    (external_metric("gpus_held", averageValue="1"), 1),
    (external_metric("gpu_pod_requests", averageValue="1"), 1),
]


@pytest.fixture(scope="module")
def chain() -> Iterator[ReplicaChain]:
    try:
        Cluster.prepare()
    except Unavailable as missing:
        require.skip_or_fail(str(missing))
    # Mounted Secrets are refreshed at the kubelet's looks at a pod, usually one a minute.
    with (
        Cluster.start(
            hpa_sync_seconds=1,
            apiserver_flags=["--v=2"],  # says when it reads a certificate anew
            kubelet_settings={"syncFrequency": "2s"},
        ) as cluster,
        ReplicaChain(cluster) as chain,
    ):
        cluster.apply([manifests.deployment(DEPLOYMENT, PODS)])
        chain.demand.gpus = DEMAND
        autoscale(chain, [pods_metric()])
        cluster.until(lambda: quiet(chain), what="a load that meets the target", log="exporter")
        yield chain


def autoscale(chain: ReplicaChain, metrics: list[dict[str, Any]]) -> None:
    made = manifests.autoscaler(DEPLOYMENT, "", "1", least=1, most=GPUS)
    # Until the load has come to the pods, they would be scaled for none.
    made["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] = 15
    chain.cluster.apply([{**made, "spec": made["spec"] | {"metrics": metrics}}])


def quiet(chain: ReplicaChain) -> bool:
    read = values_read(hpa_status(chain.cluster, DEPLOYMENT))
    pods = len(chain.gpus_of_running_pods())
    return pods == PODS and len(read) == 1 and read[0] == pytest.approx(UTILIZATION, rel=0.05)


def standing(chain: ReplicaChain) -> Standing:
    return Standing.of(chain.cluster, DEPLOYMENT)


@contextmanager
def undisturbed(chain: ReplicaChain, name: str) -> Iterator[None]:
    """Let no request fail, no API become unavailable and no synchronisation fail meanwhile."""
    before = standing(chain)
    with chain.asking(ASKED, log=f"asking-{name}") as asked:
        yield
    print(f"\n{name}: {len(asked.answers)} requests, failed: {asked.failures}")
    assert asked.failures == []
    assert standing(chain) == before


def test_every_kind_of_metric_is_read_by_the_autoscaler_and_explained_as_it_was_read(
    chain: ReplicaChain,
) -> None:
    autoscale(chain, [metric for metric, _ in SOURCES])
    chain.cluster.until(
        lambda: len(values_read(hpa_status(chain.cluster, DEPLOYMENT))) == len(SOURCES),
        what="values of every metric",
        log="kube-controller-manager",
    )
    assert standing(chain).active
    found = hpa_status(chain.cluster, DEPLOYMENT)
    read = values_read(found)
    print("\nthe controller read", read)
    assert read == pytest.approx([wanted for _, wanted in SOURCES], rel=0.1)
    assert found["desiredReplicas"] == PODS

    explained = json.loads(explain(chain, "--output=json"))
    usages = [part["proposal"]["usage"] / 1000 for part in explained["metrics"]]
    assert usages == pytest.approx(read, rel=0.05)
    assert explained["decision"]["desired"] == found["desiredReplicas"]
    text = explain(chain)
    print(text)
    assert all(f"{n}. " in text for n in range(1, len(SOURCES) + 1))
    assert f"stays at {PODS} replicas" in text
    autoscale(chain, [pods_metric()])


def explain(chain: ReplicaChain, *flags: str) -> str:
    config = f"--kubeconfig={chain.cluster.kubeconfig()}"
    command = [sys.executable, "-m", "cli", "explain", "hpa", DEPLOYMENT, "-n", WORKLOADS, config]
    return chain.cluster.run(*command, *flags)


NEW_PATHS = {
    "rule of a service": f"{CUSTOM}/services/server/service_gpu_utilization",
    "rule of a deployment": f"{CUSTOM}/deployments.apps/{DEPLOYMENT}/deployment_gpu_utilization",
    "namespace": f"{CUSTOM}/metrics/gpu_utilization",
    "external rule": f"{EXTERNAL}/gpus_held",
    "fact": f"{EXTERNAL}/gpu_pod_requests",
}


@pytest.mark.parametrize("query", ["", "?explain=true"])
@pytest.mark.parametrize("path", NEW_PATHS)
def test_who_has_no_right_to_a_metric_gets_neither_it_nor_how_it_comes_about(
    chain: ReplicaChain, path: str, query: str
) -> None:
    chain.cluster.kubeconfig("stranger", user="stranger")
    assert chain.raw(NEW_PATHS[path] + query)
    with pytest.raises(ClusterError, match="forbidden"):
        chain.raw(NEW_PATHS[path] + query, as_user="stranger")


def test_the_right_to_one_external_metric_is_no_right_to_another(chain: ReplicaChain) -> None:
    chain.cluster.kubeconfig("queuer", user="queuer")
    role, binding = manifests.metric_reader("queuer", "any")
    role["rules"] = [
        {"apiGroups": ["external.metrics.k8s.io"], "resources": ["gpus_held"], "verbs": ["list"]}
    ]
    chain.cluster.apply([role, binding])
    held = f"{EXTERNAL}/gpus_held"
    (item,) = chain.cluster.until(
        lambda: chain.raw(held, as_user="queuer")["items"], what="the right to take effect"
    )
    assert item["value"] == str(PODS)
    with pytest.raises(ClusterError, match="forbidden"):
        chain.raw(f"{EXTERNAL}/gpu_pod_requests", as_user="queuer")


def test_a_prometheus_that_is_down_costs_its_rules_and_nothing_else(chain: ReplicaChain) -> None:
    held = f"{EXTERNAL}/gpus_held"
    with undisturbed(chain, "prometheus"):
        chain.prometheus.end()
        try:
            refusal = chain.cluster.until(lambda: refused(chain, held), what="a refusal")
            assert "ServiceUnavailable" in refusal
            assert "default" in refusal
            chain.cluster.apply([manifests.namespace("short-lived")])
            chain.cluster.kubectl("delete", "namespace", "short-lived", "--timeout=30s")
            assert chain.raw(f"{EXTERNAL}/gpu_pod_requests")["items"]
        finally:
            chain.start_prometheus()
        chain.cluster.until(lambda: chain.raw(held)["items"], what="the rule", log="prometheus")


def refused(chain: ReplicaChain, path: str) -> str:
    try:
        chain.raw(path)
    except ClusterError as error:
        return str(error)
    return ""


def test_pods_that_are_deleted_cost_no_request_and_no_synchronisation(chain: ReplicaChain) -> None:
    with undisturbed(chain, "sigterm"):
        # One after the other: the second is the one that by then has the connections.
        for pod in chain.pods():
            chain.kubectl("delete", "pod", pod["metadata"]["name"])  # returns once it is gone
            chain.rolled_out()


@pytest.mark.parametrize("index", [0, 1])
def test_a_process_that_is_killed_costs_a_moment_one_synchronisation_at_most_and_no_replica(
    chain: ReplicaChain, index: int
) -> None:
    """Until the Service drops the dead pod, every second new connection to it is refused."""
    before = standing(chain)
    killed = sorted(chain.pods(), key=lambda pod: str(pod["metadata"]["name"]))[index]
    (container,) = killed["status"]["containerStatuses"]
    pid = chain.cluster.container_pids()[container["containerID"].removeprefix("containerd://")]
    with chain.asking(ASKED, log=f"asking-sigkill-{index}") as asked:
        chain.cluster.run("kill", f"-{signal.SIGKILL.value}", str(pid))
        chain.cluster.until(lambda: restarted(chain, killed), what="its next process")
        chain.rolled_out()
    after = standing(chain)
    failed = after.failed - before.failed
    print(f"\n{len(asked.answers)} requests, failed: {asked.failures}, synchronisations: {failed}")
    assert len(asked.failures) <= MOST_FAILED
    assert failed <= 1
    assert after.generation == before.generation


def restarted(chain: ReplicaChain, pod: dict[str, Any]) -> bool:
    found = chain.cluster.get("pod", pod["metadata"]["name"], f"--namespace={NAMESPACE}")
    (container,) = found["status"]["containerStatuses"]
    return bool(container["restartCount"] == 1 and container["ready"])


def mount(chain: ReplicaChain) -> None:
    """Deploy replicas with the certificate of a Secret, whose authority they register."""
    chain.cluster.apply([mounted(chain)])
    names = {"cert": "tls.crt", "key": "tls.key", "ca": "ca.crt"}
    flags = [f"--tls-{name}-file=/tls/{file}" for name, file in names.items()]
    chain.deploy(*flags, volumes=[{"name": "tls", "secret": {"secretName": MOUNTED}}])
    assert trusts(chain, chain.cluster.pki.ca.read_bytes())
    chain.cluster.until(lambda: standing(chain), what="metrics")


def trusts(chain: ReplicaChain, authority: bytes) -> bool:
    """Tell whether kube-apiserver trusts an authority, perhaps beside the one before."""
    return all(authority in bundle for bundle in trusted(chain.cluster))


def test_a_mounted_certificate_is_replaced_without_an_error(chain: ReplicaChain) -> None:
    mount(chain)
    first = shown(chain)
    with undisturbed(chain, "files"):
        fresh = mounted(chain)
        chain.cluster.apply([fresh])
        wanted = [fresh["stringData"]["tls.crt"].strip()] * len(first)
        chain.cluster.until(lambda: shown(chain) == wanted, what="the new certificate")
    assert wanted != first


def test_a_mounted_certificate_and_its_authority_are_replaced_in_one_step_without_an_error(
    chain: ReplicaChain,
) -> None:
    """As managers of certificates do when an authority is renewed: its name stays the same."""
    mount(chain)
    name = x509.load_pem_x509_certificate(chain.cluster.pki.ca.read_bytes()).subject
    authority = certificates.issue(CLUSTER_AUTHORITY, authority=True, lifetime=DAY)
    made = certificates.issue(
        "mounted", issuer=authority, server_names=[manifests.SERVICE_HOST], lifetime=DAY
    )
    assert authority.certificate.subject == name
    files = {
        "ca.crt": authority.certificate_pem,
        "tls.crt": made.certificate_pem,
        "tls.key": made.key_pem,
    }
    with undisturbed(chain, "files-and-authority"):
        chain.cluster.apply([secret(MOUNTED, files)])
        wanted = [made.certificate_pem.decode().strip()] * len(chain.addresses())
        chain.cluster.until(lambda: shown(chain) == wanted, what="the new certificate")
    assert trusts(chain, authority.certificate_pem)
    assert trusts(chain, chain.cluster.pki.ca.read_bytes())


def mounted(chain: ReplicaChain) -> manifests.Manifest:
    """Return a Secret with a new certificate, as a manager of certificates keeps it."""
    made = chain.cluster.pki.issue("mounted", sans=[manifests.SERVICE_HOST], client=False)
    files = {"tls.crt": made.certificate, "tls.key": made.key, "ca.crt": made.authority}
    return secret(MOUNTED, {name: path.read_bytes() for name, path in files.items()})


def test_the_shared_authority_is_followed_by_its_next_without_an_error(
    chain: ReplicaChain,
) -> None:
    now = datetime.datetime.now(datetime.UTC)
    signs_at = now + datetime.timedelta(seconds=40)
    # As after a month; the next one signs once it has been trusted for a while.
    first, following = (
        certificates.issue(name, authority=True, lifetime=LIFETIME, at=made_at)
        for name, made_at in (("first", now - DAY * 30), ("next", signs_at - SETTLING))
    )
    chain.cluster.apply([secret(AUTHORITY, Authorities(known=(first,)).data())])
    chain.deploy()
    both = Authorities(known=(first, following))
    chain.cluster.until(lambda: standing(chain), what="metrics")
    with undisturbed(chain, "authority"):
        chain.cluster.apply([secret(AUTHORITY, both.data())])
        restart(chain)
        assert all(trusts(chain, one.certificate_pem) for one in both.known)
        assert issuers(chain) == {first.certificate.subject}
        chain.cluster.until(
            lambda: datetime.datetime.now(datetime.UTC) > signs_at, what="its time"
        )
        restart(chain)
        assert issuers(chain) == {following.certificate.subject}


def restart(chain: ReplicaChain) -> None:
    chain.kubectl("rollout", "restart", f"deployment/{SERVICE}")
    chain.rolled_out()


def issuers(chain: ReplicaChain) -> set[x509.Name]:
    return {x509.load_pem_x509_certificate(pem.encode()).issuer for pem in shown(chain)}


def test_the_front_proxys_authority_is_replaced_without_an_error(chain: ReplicaChain) -> None:
    pki, client = chain.cluster.pki, chain.cluster.pki.folder / "front-proxy-client.crt"
    old = write(
        pki.folder / "old-proxy", client.read_bytes(), client.with_suffix(".key").read_bytes()
    )
    authority = certificates.issue("front-proxy-ca-2", authority=True, lifetime=DAY)
    made = certificates.issue("front-proxy-client", issuer=authority, client=True, lifetime=DAY)
    new = write(pki.folder / "new-proxy", made.certificate_pem, made.key_pem)
    with undisturbed(chain, "front-proxy"):
        replace(pki.front_proxy_ca, pki.front_proxy_ca.read_bytes() + authority.certificate_pem)
        chain.cluster.until(lambda: admitted(chain, new) == {"200"}, what="trust in both")
        assert admitted(chain, old) == {"200"}
        log = chain.cluster.logs / "kube-apiserver.log"
        loaded = log.read_text().count(LOADED)
        write(client.with_suffix(""), made.certificate_pem, made.key_pem)
        chain.cluster.until(
            lambda: log.read_text().count(LOADED) > loaded, what="its use", log="kube-apiserver"
        )
        replace(pki.front_proxy_ca, authority.certificate_pem)
        # What it has published once is kept by kube-apiserver until somebody takes it away.
        chain.cluster.kubectl("delete", "configmap", FRONT_PROXY, "--namespace=kube-system")
        chain.cluster.until(
            lambda: admitted(chain, old) == {"refused"}, what="trust in the new alone"
        )
        assert admitted(chain, new) == {"200"}
