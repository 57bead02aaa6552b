"""The node's own programs: containerd with a CNI bridge, kubelet and kube-proxy."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from testbed import binaries
from testbed.cluster import image, init, pki, processes, requirements, waiting
from testbed.cluster.namespaces import Namespaces

NAME: Final = "node1"
PROGRAMS: Final = ("kubelet", "kube-proxy", "pause")
POD_RESOURCES_SOCKET: Final = "/var/lib/kubelet/pod-resources/kubelet.sock"
_CONTAINERD_SOCKET: Final = "/run/containerd/containerd.sock"
_POD_NETWORK: Final = "10.88.0.0/16"
_FIRST_POD_ADDRESS: Final = "10.88.1.1"
_CLUSTER_DNS: Final = "10.96.0.10"
_SOCKET_SECONDS: Final = 30.0


@dataclass(kw_only=True)
class Node:
    """containerd, kubelet and kube-proxy, each started once its input exists."""

    namespaces: Namespaces
    pki: pki.Pki
    folder: Path
    private: Path
    """Where the node's own /run and /var/lib/kubelet are, seen from outside."""
    kubelet_settings: Mapping[str, Any] = field(default_factory=dict)
    _kubelet: processes.NodeProcess | None = None

    def start_containerd(self) -> None:
        """Start containerd, without waiting for it."""
        cni = self.folder / "cni"
        cni.mkdir()
        (cni / "10-bridge.conflist").write_text(json.dumps(_cni_config()))
        config = self.folder / "containerd.toml"
        config.write_text(_containerd_config(self.folder, cni))
        self.namespaces.popen(["containerd", "--config", str(config)], log="containerd")

    def import_image(self, archive: Path) -> None:
        """Load a docker-archive or OCI archive, for pods with ``imagePullPolicy: Never``."""
        socket = self.private / _CONTAINERD_SOCKET.lstrip("/")
        waiting.until(socket.exists, what="containerd's socket", seconds=_SOCKET_SECONDS)
        command = ["ctr", "--address", _CONTAINERD_SOCKET, "-n", "k8s.io", "images", "import"]
        self.namespaces.run([*command, str(archive)])

    def container_pids(self) -> dict[str, int]:
        """Return the PID of each running container's first process, by the container's id."""
        command = ["ctr", "--address", _CONTAINERD_SOCKET, "-n", "k8s.io", "tasks", "list"]
        rows = [line.split() for line in self.namespaces.run(command).splitlines()[1:]]
        return {container: int(pid) for container, pid, status in rows if status == "RUNNING"}

    def import_pause_image(self) -> None:
        """Load the image of sandboxes and test workloads."""
        archive = self.folder / "pause.tar"
        self.import_image(image.pack(binaries.binary("pause"), archive))

    def start_kubelet(self, kubeconfig: Path) -> None:
        """Start the kubelet, which registers the node."""
        config = self.folder / "kubelet.json"
        serving = self.pki.issue("kubelet-serving", sans=[NAME, init.ADDRESS], client=False)
        settings = _kubelet_config(self.folder, self.pki.ca, serving) | dict(self.kubelet_settings)
        config.write_text(json.dumps(settings, indent=1))
        self._kubelet = self.namespaces.popen(
            [
                str(binaries.binary("kubelet")),
                f"--config={config}",
                f"--kubeconfig={kubeconfig}",
                f"--hostname-override={NAME}",
                f"--node-ip={init.ADDRESS}",
            ],
            log="kubelet",
        )

    def restart_kubelet(self, kubeconfig: Path) -> None:
        """Restart the kubelet, as an update of a node does; pods keep running."""
        if self._kubelet is not None:
            self._kubelet.end()
        self.start_kubelet(kubeconfig)

    def start_proxy(self, kubeconfig: Path) -> None:
        """Start kube-proxy, which makes ClusterIPs reachable."""
        self.namespaces.popen(
            [
                str(binaries.binary("kube-proxy")),
                f"--kubeconfig={kubeconfig}",
                "--proxy-mode=iptables",
                f"--hostname-override={NAME}",
                f"--cluster-cidr={_POD_NETWORK}",
                "--conntrack-max-per-core=0",  # That limit belongs to the machine, not to the node.
            ],
            log="kube-proxy",
        )


def _cni_config() -> dict[str, Any]:
    addresses = {
        "subnet": _POD_NETWORK,
        "rangeStart": _FIRST_POD_ADDRESS,
        "gateway": init.ADDRESS,
    }
    bridge = {
        "type": "bridge",
        "bridge": init.BRIDGE,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[addresses]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, {"type": "loopback"}]}


def _containerd_config(folder: Path, cni: Path) -> str:
    # AppArmor's profile would stay in the kernel; oom scores cannot be lowered everywhere; the
    # opt plugin would make a folder of its own at the machine's root.
    return f"""\
version = 2
root = "{folder / "containerd"}"
state = "/run/containerd"
[grpc]
  address = "{_CONTAINERD_SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder / "containerd-opt"}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image.PAUSE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{requirements.cni_folder()}"
    conf_dir = "{cni}"
"""


def _kubelet_config(folder: Path, ca: Path, serving: pki.Certificate) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": init.ADDRESS,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(ca)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(serving.certificate),
        "tlsPrivateKeyFile": str(serving.key),
        "containerRuntimeEndpoint": f"unix://{_CONTAINERD_SOCKET}",
        "volumePluginDir": str(folder / "volume-plugins"),
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        # cadvisor cannot find the root file system in these namespaces.
        "localStorageCapacityIsolation": False,
        # A full disk must not affect the tests: no evictions, no lost images.
        "evictionHard": {"memory.available": "100Mi"},
        "imageGCHighThresholdPercent": 100,
        "clusterDomain": "cluster.local",
        "clusterDNS": [_CLUSTER_DNS],
        "resolvConf": "",
        "nodeStatusUpdateFrequency": "1s",  # This is how much later the scheduler sees new devices.
    }
