"""The test cluster is real, can be trusted by other tests, and leaves the machine as it was."""

import base64
import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from testbed import binaries, require
from testbed.binaries import Unavailable
from testbed.cluster import cgroups, image, namespaces, processes, waiting
from testbed.cluster.cluster import Cluster
from testbed.cluster.workplace import Workplace

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"
WATCHED_SETTINGS = ("vm/overcommit_memory", "kernel/panic", "kernel/keys/root_maxkeys")

ECHO_SERVER = """
import http.server, json, ssl, sys
class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        user = self.headers["X-Remote-User"]
        body = json.dumps({"kind": "APIResourceList", "apiVersion": "v1", "resources": [],
                           "groupVersion": "test.slicewatch.dev/v1", "user": user}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
certificate, key, front_proxy_ca = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
context.load_verify_locations(front_proxy_ca)
context.verify_mode = ssl.CERT_REQUIRED
server = http.server.ThreadingHTTPServer(("0.0.0.0", 9443), Echo)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""

KILLED_HARNESS = """
import json, sys
from testbed.cluster.cluster import Cluster
cluster = Cluster.start()
cluster.apply(json.loads(sys.argv[1]))
cluster.until(
    lambda: cluster.get("pod", "forgotten")["status"]["phase"] == "Running", what="the pod"
)
print("running", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True, scope="module")
def prepared() -> None:
    try:
        Cluster.prepare()
    except Unavailable as missing:
        require.skip_or_fail(str(missing))


def pod(name: str, **limits: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": image.PAUSE,
        "imagePullPolicy": "Never",
        "resources": {"limits": limits},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }


def running(cluster: Cluster, selector: str, count: int) -> bool:
    pods = cluster.get("pods", f"--selector={selector}")["items"]
    return [one["status"]["phase"] for one in pods] == ["Running"] * count


def pod_resources(cluster: Cluster) -> bytes:
    """The kubelet's undecoded answer: names and ids stand in it as they are."""
    socket = cluster.outside(cluster.pod_resources_socket)
    with grpc.insecure_channel(f"unix://{socket}") as channel:
        listing = channel.unary_unary("/v1.PodResourcesLister/List")
        answer: bytes = listing(b"", timeout=10)
    return answer


@dataclasses.dataclass(frozen=True)
class Machine:
    """What a cluster could leave behind on the machine."""

    mounts: frozenset[str]
    interfaces: frozenset[str]
    pod_groups: tuple[Path, ...]
    settings: tuple[str, ...]
    folders: tuple[bool, ...]

    @classmethod
    def now(cls) -> "Machine":
        folders = ("/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/opt/containerd")
        return cls(
            mounts=frozenset(Path("/proc/self/mountinfo").read_text().splitlines()),
            interfaces=frozenset(path.name for path in Path("/sys/class/net").iterdir()),
            pod_groups=tuple(cgroups.pod_groups()),
            settings=tuple(Path("/proc/sys", name).read_text() for name in WATCHED_SETTINGS),
            folders=tuple(Path(folder).exists() for folder in folders),
        )


def processes_of(folder: Path, node_namespace: str) -> list[int]:
    """Processes on the node, and those that the harness started outside, known by their HOME."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            home = f"HOME={folder}".encode() in (entry / "environ").read_bytes()
            on_node = str((entry / "ns/pid").readlink()) == node_namespace
        except OSError:
            continue
        if home or on_node:
            found.append(int(entry.name))
    return found


class TestRunningCluster:
    """One cluster serves all of these."""

    @pytest.fixture(scope="class")
    @classmethod
    def cluster(cls) -> Iterator[Cluster]:
        with Cluster.start(hpa_sync_seconds=2) as cluster:
            cluster.start_device_plugin(GPU, ["GPU-aaaa", "GPU-bbbb", "GPU-cccc::0"])
            cluster.start_device_plugin(MIG, ["MIG-1111"])
            yield cluster

    def test_the_node_is_ready_and_answers_raw_requests(self, cluster: Cluster) -> None:
        conditions = cluster.get("node", cluster.node_name)["status"]["conditions"]
        assert {c["type"]: c["status"] for c in conditions}["Ready"] == "True"
        assert cluster.kubectl("get", "--raw", "/readyz") == "ok"

    def test_a_failing_kubectl_says_why(self, cluster: Cluster) -> None:
        with pytest.raises(waiting.ClusterError, match=r'pods "nobody" not found'):
            cluster.kubectl("get", "pod", "nobody")

    def test_a_user_without_rights_is_refused(self, cluster: Cluster) -> None:
        cluster.kubeconfig("stranger", user="stranger")
        with pytest.raises(waiting.ClusterError, match="Forbidden"):
            cluster.kubectl("get", "pods", as_user="stranger")

    def test_the_kubelet_says_which_pod_holds_which_device(self, cluster: Cluster) -> None:
        cluster.apply([pod("sliced", **{MIG: "1"})])
        cluster.until(lambda: running(cluster, "app=sliced", 1), what="the pod", log="kubelet")
        listed = pod_resources(cluster)
        assert b"sliced" in listed
        assert b"MIG-1111" in listed

    def test_a_deployment_gets_devices_and_no_more_than_there_are(self, cluster: Cluster) -> None:
        template = pod("workers", **{GPU: "1"})
        template.pop("apiVersion"), template.pop("kind")
        template["metadata"].pop("name")
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "workers", "namespace": "default"},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "workers"}},
                "template": template,
            },
        }
        cluster.apply([deployment])
        cluster.until(lambda: running(cluster, "app=workers", 3), what="workers", log="kubelet")
        assert all(gpu in pod_resources(cluster) for gpu in (b"GPU-aaaa", b"GPU-cccc::0"))

        cluster.kubectl("scale", "deployment/workers", "--replicas=4")
        unschedulable = "--field-selector=reason=FailedScheduling"
        events = cluster.until(
            lambda: cluster.get("events", unschedulable)["items"], what="the fourth to wait"
        )
        assert f"Insufficient {GPU}" in events[0]["message"]

    def test_devices_come_back_when_the_kubelet_restarts(self, cluster: Cluster) -> None:
        cluster.restart_kubelet()
        log = cluster.logs / "device-plugin-nvidia.com-mig-1g.10gb.log"
        cluster.until(
            lambda: log.read_text().count("registered nvidia") == 2, what="a second registration"
        )

        def allocatable() -> bool:
            node = cluster.get("node", cluster.node_name)["status"]["allocatable"]
            return node[MIG] == "1" and node[GPU] == "3"

        cluster.until(allocatable, what="devices after the restart", log="kubelet")

    def test_an_aggregated_api_is_served_by_a_process_on_the_node(
        self, cluster: Cluster, tmp_path: Path
    ) -> None:
        serving = cluster.pki.issue("echo", sans=["echo.default.svc"], client=False)
        script = tmp_path / "echo_server.py"
        script.write_text(ECHO_SERVER)
        files = [serving.certificate, serving.key, cluster.pki.front_proxy_ca]
        cluster.popen([sys.executable, str(script), *map(str, files)], log="echo")
        cluster.apply(aggregated_api(cluster, serving.authority))
        answer = cluster.until(
            lambda: cluster.kubectl("get", "--raw", "/apis/test.slicewatch.dev/v1"),
            what="the aggregated API",
            log="echo",
        )
        assert json.loads(answer)["user"] == "admin"


def aggregated_api(cluster: Cluster, authority: Path) -> list[dict[str, Any]]:
    named = {"name": "echo", "namespace": "default"}
    sliced = {**named, "labels": {"kubernetes.io/service-name": "echo"}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": named,
            "spec": {"ports": [{"name": "https", "port": 443}]},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": sliced,
            "addressType": "IPv4",
            "ports": [{"name": "https", "port": 9443}],
            "endpoints": [{"addresses": [cluster.node_address], "conditions": {"ready": True}}],
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1.test.slicewatch.dev"},
            "spec": {
                "group": "test.slicewatch.dev",
                "version": "v1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {"name": "echo", "namespace": "default"},
                "caBundle": base64.b64encode(authority.read_bytes()).decode(),
            },
        },
    ]


def test_a_wrong_go_is_a_reason_not_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "go"
    fake.write_text("#!/bin/sh\necho go1.27.1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    with pytest.raises(Unavailable, match=r"Go 1\.26 is needed .* is go1\.27\.1"):
        binaries.binary("kubelet")


def test_two_processes_may_ask_for_a_program_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", binaries.__name__, "pause"]
    both = [
        subprocess.Popen(
            command, cwd=namespaces.CHECKOUT, env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    answers = {one.communicate(timeout=200)[0].strip() for one in both}
    assert len(answers) == 1
    ended = subprocess.run([*answers, "-exit-after=1ms", "-exit-code=7"], check=False)
    assert ended.returncode == 7
    assert [path.name for path in (tmp_path / "slicewatch/bin").glob("*pause-*")] == [
        Path(*answers).parent.name
    ]


def test_a_stopped_cluster_leaves_the_machine_as_it_was() -> None:
    before = Machine.now()
    with Cluster.start() as cluster:
        cluster.apply([pod("last")])
        cluster.until(lambda: running(cluster, "app=last", 1), what="the pod", log="kubelet")
        node_namespace = str(Path(f"/proc/{cluster.init.pid}/ns/pid").readlink())
        assert len(processes_of(cluster.folder, node_namespace)) > 10
        assert cgroups.members()
    assert processes_of(cluster.folder, node_namespace) == []
    assert not cluster.folder.exists()
    assert Machine.now() == before


def test_the_next_start_sweeps_what_a_killed_harness_left() -> None:
    before = Machine.now()
    harness = subprocess.Popen(
        [sys.executable, "-c", KILLED_HARNESS, json.dumps([pod("forgotten")])],
        cwd=namespaces.CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert harness.stdin is not None
    assert harness.stdout is not None
    with harness:
        assert harness.stdout.readline() == b"running\n"
        harness.send_signal(signal.SIGKILL)
    assert cgroups.pod_groups()

    with Cluster.start() as cluster:
        assert cluster.get("pods")["items"] == []
    assert Machine.now() == before


@pytest.fixture
def place() -> Iterator[Workplace]:
    place = Workplace.claim()
    yield place
    place.sweep()
    place.release()


def test_a_sweep_ends_the_recorded_process_but_not_one_that_reused_its_number(
    place: Workplace,
) -> None:
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        recorded = processes.Identity.of(sleeper.pid)
        place.record_init(dataclasses.replace(recorded, started_ticks=1))
        place.sweep()
        assert sleeper.poll() is None
        recorded.kill()


def test_a_cluster_refuses_to_share_the_machine_with_another_kubelet(tmp_path: Path) -> None:
    stranger = tmp_path / "kubelet"
    stranger.write_bytes(binaries.binary("pause").read_bytes())
    stranger.chmod(0o755)
    with subprocess.Popen([stranger], stdout=subprocess.PIPE) as kubelet:
        assert kubelet.stdout is not None
        assert kubelet.stdout.readline() == b"waiting\n"
        message = f"another kubelet is running here, process {kubelet.pid}"
        try:
            with pytest.raises(Unavailable, match=message):
                Cluster.start()
        finally:
            kubelet.terminate()
