"""A test cluster whose nodes have GPUs, exporters and monitors: the real node, and played ones.

The GPUs are simulated and shown by the driver's C library to exporters that are the product's own
processes. On the real node the monitor is the pod of the shipped DaemonSet, at its own speed. kwok
plays the other nodes and their pods; their monitors run as processes with a token that is bound to
the DaemonSet's pod on that node, and with a fast clock.
"""

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from simulator.clock import RealTimeClock
from simulator.fleet import Fleet
from testbed import binaries
from testbed.chain.mounts import mounts, program
from testbed.cluster import image, kubeconfig
from testbed.cluster.cluster import Cluster
from testbed.cluster.namespaces import CHECKOUT
from testbed.cluster.processes import NodeProcess
from testbed.driver import build
from testbed.driver.feeder import DriverFeed
from testbed.health import hurried, shipped
from testbed.health.shipped import Manifest

REAL: Final = "node1"
PLAYED: Final = ("played-1", "played-2", "played-3")
NODES: Final = (REAL, *PLAYED)
SPEED: Final = 60.0
GPU: Final = "nvidia.com/gpu"
GPU_NODE: Final = {"nvidia.com/gpu.present": "true"}
TRAINER: Final = "trainer"
"""A pod that holds all GPUs of the real node."""
GROUP: Final = 65532
GPUS: Final = 2
# Three of four nodes; and what fails again and again in tests is no flapping.
SETTINGS: Final = {"SLICEWATCH_BUDGET_PERCENT": "75", "SLICEWATCH_FLAPPING_LIMIT": "100"}

_EXPORTER_PORT: Final = 9400
_MONITOR_PORT: Final = 9500
_REFRESHES_PER_SECOND: Final = 4.0
_STAGES: Final = Path(__file__).with_name("stages.yaml")
_KWOK: Final = {"type": "kwok"}
_START_SECONDS: Final = 120.0


class MonitoredCluster:
    """The running whole. A context manager; ends with its cluster.

    Attributes:
        gpus: the simulated node behind each node, to let something happen on.
        exporters, monitors: the processes, by node; that of the real node's monitor is a pod's.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.gpus = {node.name: node for node in _fleet().nodes}
        self.exporters: dict[str, NodeProcess] = {}
        self.monitors: dict[str, NodeProcess] = {}
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            for number, name in enumerate(NODES):
                self._start_exporter(undo, name, _EXPORTER_PORT + number)
            self._hold_gpus(undo)
            self._play_nodes(undo)
            self.cluster.kubectl("label", "node", REAL, *_pairs(GPU_NODE))
            for name in shipped.RIGHTS:
                self.cluster.apply(shipped.objects(name))
            self.cluster.apply([_daemon_set()])
            self.cluster.until(self._rolled_out, what="the monitors' pods", seconds=_START_SECONDS)
            for name in PLAYED:
                self.start_monitor(name)
                undo.callback(self._end_monitor, name)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._undo.close()

    def start_monitor(self, name: str) -> None:
        """Start the monitor of a played node."""
        number = PLAYED.index(name)
        flags = [
            f"--evidence-socket={_evidence_folder(name)}/evidence.sock",
            f"--kubeconfig={self._kubeconfig(name)}",
            f"--namespace={shipped.NAMESPACE}",
            f"--listen=127.0.0.1:{_MONITOR_PORT + number}",
        ]
        env = {"NODE_NAME": name, hurried.VARIABLE: str(SPEED), **SETTINGS}
        command = [sys.executable, "-m", hurried.__name__, *flags]
        self.monitors[name] = self.cluster.popen(command, log=f"monitor-{name}", env=env)

    def node(self, name: str) -> dict[str, Any]:
        """Return a node as the API server has it."""
        return self.cluster.get("node", name)

    def condition(self, name: str, kind: str) -> dict[str, Any]:
        """Return a condition of a node; empty for none."""
        conditions = self.node(name)["status"].get("conditions", ())
        return next((one for one in conditions if one["type"] == kind), {})

    def reasons(self, name: str) -> list[str]:
        """Return the reasons of the events about a node that monitors have written."""
        chosen = f"--field-selector=involvedObject.kind=Node,involvedObject.name={name}"
        events = self.cluster.get("events", "--namespace=default", chosen)["items"]
        return [e["reason"] for e in events if e["reportingComponent"] == shipped.DAEMON_SET]

    def annotate(self, name: str, **annotations: str | None) -> None:
        """Set or remove annotations of a node below ``health.slicewatch.dev/``, as a human does."""
        pairs = [
            f"health.slicewatch.dev/{key}" + ("-" if value is None else f"={value}")
            for key, value in annotations.items()
        ]
        self.cluster.kubectl("annotate", "--overwrite", "node", name, *pairs)

    def pod_of(self, name: str) -> dict[str, Any]:
        """Return the DaemonSet's pod on a node."""
        found = self.cluster.get(
            "pods", f"--namespace={shipped.NAMESPACE}", f"--selector=app={shipped.DAEMON_SET}",
            f"--field-selector=spec.nodeName={name}",
        )["items"]  # fmt: skip
        (pod,) = found
        return dict(pod)

    def token(self, name: str) -> str:
        """Return a token like the one that the kubelet of a node mounts into its monitor's pod."""
        pod = self.pod_of(name)["metadata"]
        return self.cluster.kubectl(
            "create", "token", shipped.ACCOUNT, f"--namespace={shipped.NAMESPACE}",
            "--duration=2h", "--bound-object-kind=Pod", f"--bound-object-name={pod['name']}",
            f"--bound-object-uid={pod['uid']}",
        ).strip()  # fmt: skip

    def _end_monitor(self, name: str) -> None:
        self.monitors[name].end()

    def _kubeconfig(self, name: str) -> Path:
        path = self.cluster.folder / f"monitor-{name}.kubeconfig"
        return kubeconfig.with_token(
            path, server=self.cluster.server, token=self.token(name), ca=self.cluster.pki.ca
        )

    def _start_exporter(self, undo: ExitStack, name: str, port: int) -> None:
        cluster, state = self.cluster, self.cluster.folder / f"nvml-{name}"
        feed = DriverFeed(self.gpus[name], state, refreshes_per_second=_REFRESHES_PER_SECOND)
        undo.enter_context(feed)
        folder = _evidence_folder(name)
        cluster.outside(folder).mkdir()
        flags = [
            f"--listen={cluster.node_address}:{port}",
            f"--node-name={name}",
            f"--evidence-socket={folder}/evidence.sock",
            f"--evidence-group={GROUP}",
        ]
        if name == REAL:
            flags.append(f"--kubelet-socket={cluster.pod_resources_socket}")
        self.exporters[name] = cluster.popen(
            [sys.executable, "-m", "cli", "exporter", *flags],
            log=f"exporter-{name}",
            env=build.environment(state),
        )
        undo.callback(self.exporters[name].end)

    def _hold_gpus(self, undo: ExitStack) -> None:
        uuids = [gpu.uuid for gpu in self.gpus[REAL].gpus]
        undo.callback(self.cluster.start_device_plugin(GPU, uuids).end)
        self.cluster.apply([_trainer()])
        self.cluster.until(
            lambda: self.cluster.get("pod", TRAINER)["status"]["phase"] == "Running",
            what=f"pod {TRAINER}",
        )

    def _play_nodes(self, undo: ExitStack) -> None:
        cluster = self.cluster
        kwok = cluster.popen(
            [
                str(binaries.binary("kwok")),
                f"--kubeconfig={cluster.kubeconfig()}",
                f"--config={_STAGES}",
                "--manage-all-nodes=false",
                "--manage-nodes-with-label-selector=type=kwok",
                "--node-lease-duration-seconds=40",
                "--cidr=10.99.0.0/24",
                f"--node-ip={cluster.node_address}",
            ],
            log="kwok",
        )
        undo.callback(kwok.end)
        labels = {**_KWOK, **GPU_NODE}
        cluster.apply([
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
            for name in PLAYED
        ])  # fmt: skip

        def ready() -> bool:
            kwok.require_alive()
            return all(self.condition(name, "Ready").get("status") == "True" for name in PLAYED)

        cluster.until(ready, what="the played nodes to be Ready", log="kwok")

    def _rolled_out(self) -> bool:
        found = self.cluster.get(
            "daemonset", shipped.DAEMON_SET, f"--namespace={shipped.NAMESPACE}"
        )
        status = found["status"]
        return (status["desiredNumberScheduled"], status.get("numberReady", 0)) == (
            len(NODES),
        ) * 2


def _fleet() -> Fleet:
    nodes = [{"name": name, "gpus": [{"model": "H100-80GB", "count": GPUS}]} for name in NODES]
    return Fleet.load(json.dumps({"seed": "health", "nodes": nodes}), clock=RealTimeClock())


def _evidence_folder(name: str) -> str:
    return "/run/slicewatch" if name == REAL else f"/run/slicewatch-{name}"


def _daemon_set() -> Manifest:
    """Return the shipped DaemonSet, but for what an image would bring and for the tests' settings."""
    made = shipped.one("daemon-set.yaml", "DaemonSet")
    pod = made["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    host = mounts(program(Path(sys.prefix), CHECKOUT))
    container |= {
        "image": image.PAUSE,
        "imagePullPolicy": "Never",
        "command": [sys.executable, "-m", "cli"],
    }
    changed = {"CHECK_INTERVAL": "5"} | SETTINGS | {"PYTHONPATH": str(CHECKOUT)}
    kept = [one for one in container["env"] if one["name"] not in changed]
    container["env"] = kept + [{"name": name, "value": text} for name, text in changed.items()]
    for probe in ("livenessProbe", "readinessProbe"):
        container[probe] |= {"periodSeconds": 2, "timeoutSeconds": 10}
    container["volumeMounts"] += host.volume_mounts
    pod["volumes"] += host.volumes
    return made


def _trainer() -> Manifest:
    container = {
        "name": "main",
        "image": image.PAUSE,
        "imagePullPolicy": "Never",
        "resources": {"limits": {GPU: str(GPUS)}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": TRAINER, "namespace": "default"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }


def _pairs(labels: dict[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in labels.items()]
