"""Everything from the driver's C library to the registered metrics API, on a test cluster.

The exporter and the adapter are the product's own processes, started by its command line on the
node. The load is simulated and written into the C library that the exporter's NVML calls end in.
"""

import json
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import grpc

from exporter.tenants import messages
from simulator.clock import RealTimeClock
from simulator.fleet import Fleet
from testbed.chain import manifests
from testbed.chain.demand import SharedDemand
from testbed.cluster.cluster import Cluster
from testbed.cluster.pki import Certificate
from testbed.cluster.processes import NodeProcess
from testbed.cluster.waiting import ClusterError
from testbed.driver import build
from testbed.driver.feeder import DriverFeed

EXPORTER_PORT: Final = 9400
ADAPTER_PORT: Final = 7443
ADAPTER_PLAIN_PORT: Final = 7080
WINDOW_SECONDS: Final = 5

SCENARIO: Final = """
nodes:
  - name: node1
    gpus:
      - {model: H100-80GB, count: 6}
"""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the metrics API answered for one pod."""

    value: float
    timestamp: str


class Chain:
    """The running chain. A context manager; ends with its cluster."""

    def __init__(self, cluster: Cluster, *, scenario: str = SCENARIO) -> None:
        self.cluster = cluster
        self.fleet = Fleet.load(scenario, clock=RealTimeClock())
        self.node = self.fleet.nodes[0]
        self.demand = SharedDemand(self.node, self.gpus_of_running_pods)
        self._undo = ExitStack()
        self.serving = cluster.pki.issue(
            "adapter",
            sans=[manifests.SERVICE_HOST, "localhost", cluster.node_address],
            client=False,
        )

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            self._start(undo)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._undo.close()

    def _start(self, undo: ExitStack) -> None:
        self._start_exporter(undo)
        self._start_adapter(undo)
        for group, version, _ in manifests.API_VERSIONS:
            self._await_available(f"{version}.{group}")
        self.demand.start()
        undo.callback(self.demand.close)

    def _start_exporter(self, undo: ExitStack) -> None:
        cluster, state = self.cluster, self.cluster.folder / "nvml-state"
        undo.enter_context(DriverFeed(self.node, state))
        cluster.apply([manifests.namespace(n) for n in (manifests.NAMESPACE, manifests.WORKLOADS)])
        plugin = cluster.start_device_plugin(manifests.GPU, [gpu.uuid for gpu in self.node.gpus])
        undo.callback(plugin.end)
        self.exporter = self._process("exporter", self._exporter_flags(), build.environment(state))
        undo.callback(self.exporter.end)

    def _start_adapter(self, undo: ExitStack) -> None:
        cluster = self.cluster
        cluster.apply(manifests.rights())
        self.adapter = self._process("adapter", self._adapter_flags(), {})
        undo.callback(self.adapter.end)
        cluster.apply(manifests.registration(cluster.node_address, ADAPTER_PORT, cluster.pki.ca))

    def _process(self, name: str, flags: list[str], env: dict[str, str]) -> NodeProcess:
        return self.cluster.popen([sys.executable, "-m", "cli", name, *flags], log=name, env=env)

    def _exporter_flags(self) -> list[str]:
        return [
            f"--listen={self.cluster.node_address}:{EXPORTER_PORT}",
            f"--node-name={self.cluster.node_name}",
            f"--kubelet-socket={self.cluster.pod_resources_socket}",
            *self._window_flags(),
        ]

    def _window_flags(self) -> list[str]:
        return [f"--window-seconds={WINDOW_SECONDS}"]

    def _adapter_flags(self) -> list[str]:
        kubeconfig = self.cluster.kubeconfig("slicewatch-adapter", user=manifests.ADAPTER_USER)
        return [
            f"--listen=0.0.0.0:{ADAPTER_PORT}",
            f"--plain-listen=0.0.0.0:{ADAPTER_PLAIN_PORT}",
            f"--kubeconfig={kubeconfig}",
            f"--exporters=http://{self.cluster.node_address}:{EXPORTER_PORT}",
            f"--tls-cert-file={self.serving.certificate}",
            f"--tls-key-file={self.serving.key}",
        ]

    def _await_available(self, api: str) -> None:
        def available() -> bool:
            self._require_adapter()
            conditions = (
                self.cluster.get("apiservice", api).get("status", {}).get("conditions", [])
            )
            return any(c["type"] == "Available" and c["status"] == "True" for c in conditions)

        self.cluster.until(available, what=f"{api} to be available", log="adapter")

    def _require_adapter(self) -> None:
        self.adapter.require_alive()

    def gpus_of_running_pods(self) -> dict[str, str]:
        """Return the GPU's uuid of every pod that runs, by the kubelet and the API server."""
        running = {
            pod["metadata"]["name"]
            for pod in self.cluster.get("pods", f"--namespace={manifests.WORKLOADS}")["items"]
            if pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
        }
        socket = self.cluster.outside(self.cluster.pod_resources_socket)
        with grpc.insecure_channel(f"unix://{socket}") as channel:
            listing = channel.unary_unary("/v1.PodResourcesLister/List")
            allocations = messages.decode(listing(b"", timeout=10))
        return {a.pod: a.device_id for a in allocations if a.pod in running}

    def raw(self, path: str, *, as_user: str = "admin") -> dict[str, Any]:
        """Return what the API server answers for a path, through the aggregator."""
        answer: dict[str, Any] = json.loads(
            self.cluster.kubectl("get", "--raw", path, as_user=as_user)
        )
        return answer

    def utilization(self) -> dict[str, Reading]:
        """Return ``gpu_utilization`` of all pods as an HPA would get it; none where it is refused."""
        prefix = "/apis/custom.metrics.k8s.io/v1beta2/namespaces"
        try:
            answer = self.raw(f"{prefix}/{manifests.WORKLOADS}/pods/*/gpu_utilization")
        except ClusterError as refusal:
            print(f"      {str(refusal).rpartition('for pods: ')[2]}", flush=True)
            return {}
        return {
            item["describedObject"]["name"]: Reading(
                value=quantity(item["value"]), timestamp=item["timestamp"]
            )
            for item in answer["items"]
        }

    def client_certificate(self, name: str, *, ca: str) -> Certificate:
        """Return a client certificate of one of the cluster's authorities."""
        return self.cluster.pki.issue(name, ca=ca)


def quantity(text: str) -> float:
    """Return the number of a decimal Kubernetes quantity."""
    suffixes = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    return float(text[:-1]) * suffixes[text[-1]] if text[-1] in suffixes else float(text)
