"""A whole cluster: starts its parts in order, provides what a test needs, leaves nothing."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from testbed import binaries
from testbed.cluster import (
    control_plane,
    device_plugin,
    init,
    node,
    pki,
    processes,
    requirements,
    waiting,
)
from testbed.cluster.namespaces import Namespaces
from testbed.cluster.workplace import Workplace

T = TypeVar("T")

_READY_SECONDS: Final = 60.0
_ADMIN: Final = "admin"


class Cluster:
    """One running node with its control plane. Created by ``start``, as a context manager."""

    node_address: Final = init.ADDRESS
    node_name: Final = node.NAME
    server: Final = control_plane.SERVER
    pod_resources_socket: Final = node.POD_RESOURCES_SOCKET
    """As processes on the node see it; ``outside`` gives the path for the test itself."""

    def __init__(self, place: Workplace, namespaces: Namespaces) -> None:
        self._place = place
        self._namespaces = namespaces
        self._kubeconfigs: dict[str, Path] = {}
        self.init = namespaces.init
        """The node's PID 1, by its number outside the node."""
        self.folder = place.folder
        self.logs = place.logs
        self.pki = pki.Pki(place.folder / "pki")
        self._control_plane = control_plane.ControlPlane(
            namespaces=namespaces, pki=self.pki, folder=place.folder
        )
        self._node = node.Node(
            namespaces=namespaces, pki=self.pki, folder=place.folder, private=place.node
        )

    @staticmethod
    def prepare() -> None:
        """Install and build whatever is missing; takes minutes the first time, no time later.

        Raises:
            Unavailable: this machine cannot run a cluster; the message says what is missing.
        """
        requirements.check()
        for program in (*control_plane.PROGRAMS, *node.PROGRAMS, "kubectl"):
            binaries.binary(program)

    @classmethod
    def start(
        cls,
        *,
        hpa_sync_seconds: float = 5,
        apiserver_flags: Sequence[str] = (),
        controller_manager_flags: Sequence[str] = (),
        kubelet_settings: Mapping[str, Any] | None = None,
    ) -> Self:
        """Start a cluster and return when its node is Ready.

        Args:
            hpa_sync_seconds: how often the HPA controller looks at its metrics.
            apiserver_flags: further flags of the API server.
            controller_manager_flags: further flags of the controller manager.
            kubelet_settings: fields of KubeletConfiguration that differ.

        Raises:
            Unavailable: this machine cannot run it; the message says what is missing.
            ClusterError: it did not come up; the message shows the log.
        """
        cls.prepare()
        sync = f"--horizontal-pod-autoscaler-sync-period={hpa_sync_seconds}s"
        with ExitStack() as undo:
            place = Workplace.claim()
            undo.callback(place.release)
            undo.callback(place.sweep)
            namespaces = Namespaces.open(place)
            undo.callback(namespaces.close)
            cluster = cls(place, namespaces)
            cluster._node.kubelet_settings = kubelet_settings or {}
            cluster._bring_up(apiserver_flags, [sync, *controller_manager_flags])
            undo.pop_all()
        return cluster

    def stop(self) -> None:
        """End every process and remove everything that the cluster created."""
        with ExitStack() as undo:
            undo.callback(self._place.release)
            undo.callback(self._place.sweep)
            undo.callback(self._namespaces.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def kubeconfig(
        self, name: str = _ADMIN, *, user: str | None = None, organizations: Sequence[str] = ()
    ) -> Path:
        """Return a kubeconfig for use on the node, of ``admin`` or of ``user`` in those groups.

        A user may be a service account: ``system:serviceaccount:<namespace>:<name>``.
        """
        if name not in self._kubeconfigs:
            made = self._control_plane.kubeconfig(name, user or name, organizations)
            self._kubeconfigs[name] = made
        return self._kubeconfigs[name]

    def kubectl(self, *arguments: str, stdin: str | None = None, as_user: str = _ADMIN) -> str:
        """Run kubectl on the node and return its output.

        Raises:
            ClusterError: it failed; with its standard error.
        """
        return self._namespaces.run(self.kubectl_command(*arguments, as_user=as_user), stdin=stdin)

    def kubectl_command(self, *arguments: str, as_user: str = _ADMIN) -> list[str]:
        """Return the command of ``kubectl``, for ``popen`` where it is to go on running."""
        program = str(binaries.binary("kubectl"))
        return [program, f"--kubeconfig={self.kubeconfig(as_user)}", *arguments]

    def get(self, *arguments: str) -> dict[str, Any]:
        """Return the object or list that ``kubectl get`` finds."""
        found: dict[str, Any] = json.loads(self.kubectl("get", *arguments, "--output=json"))
        return found

    def apply(self, manifests: Sequence[Mapping[str, Any]] | str) -> str:
        """Apply manifests, given as objects or as YAML text."""
        if not isinstance(manifests, str):
            items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
            manifests = json.dumps(items)
        return self.kubectl("apply", "--filename=-", stdin=manifests)

    def until(
        self,
        attempt: Callable[[], T | None],
        *,
        what: str,
        seconds: float = _READY_SECONDS,
        log: str | None = None,
    ) -> T:
        """Repeat ``attempt`` until it returns something true, and return that.

        One that raises ClusterError, because something does not exist yet, is repeated as well; a
        failure shows the end of the named log.
        """

        def tolerant() -> T | None:
            try:
                return attempt()
            except waiting.ClusterError:
                return None

        path = self.logs / f"{log}.log" if log else None
        return waiting.until(tolerant, what=what, seconds=seconds, log=path)

    def enter_command(self, command: Sequence[str]) -> list[str]:
        """Return the arguments that run a command on the node, for callers that start it."""
        return self._namespaces.enter_command(command)

    def run(self, *command: str, stdin: str | None = None) -> str:
        """Run a short command on the node and return its output."""
        return self._namespaces.run(command, stdin=stdin)

    def popen(
        self, command: Sequence[str], *, log: str, env: Mapping[str, str] | None = None
    ) -> processes.NodeProcess:
        """Start a process on the node, which ends with the cluster and logs to ``logs/<log>.log``.

        Its environment is the node's own plus ``env``; its working directory is ``/``.
        """
        return self._namespaces.popen(command, log=log, env=env)

    def outside(self, path: str) -> Path:
        """Return the path outside of something under the node's /run or /var/lib/kubelet.

        Unix sockets there can be connected to: paths are independent of network namespaces.
        """
        if not path.startswith(init.PRIVATE_FOLDERS):
            return Path(path)
        return self._place.node / path.lstrip("/")

    def import_image(self, archive: Path) -> None:
        """Load a docker-archive or OCI archive, for pods with ``imagePullPolicy: Never``."""
        self._node.import_image(archive)

    def container_pids(self) -> dict[str, int]:
        """Return the PID on the node of each running container, sandboxes included, by its id.

        Raises:
            ClusterError: the runtime does not answer.
        """
        return self._node.container_pids()

    def kill_api_server(self) -> None:
        """Kill the API server; everything else goes on without it."""
        self._control_plane.kill_api_server()

    def start_api_server(self) -> None:
        """Start the API server again, with what it knew, and return once it is ready."""
        self._control_plane.start_api_server()

    def start_device_plugin(
        self, resource: str, devices: Sequence[str], *, seconds: float = _READY_SECONDS
    ) -> processes.NodeProcess:
        """Offer devices to the kubelet, and return once the node lists them as allocatable."""
        command = [sys.executable, "-m", device_plugin.__name__, f"--resource={resource}"]
        log = f"device-plugin-{resource.replace('/', '-')}"
        plugin = self.popen([*command, *(f"--device={device}" for device in devices)], log=log)

        def offered() -> bool:
            plugin.require_alive()
            allocatable = self.get("node", self.node_name)["status"]["allocatable"]
            return int(allocatable.get(resource, 0)) == len(devices)

        waiting.until(offered, what=f"allocatable {resource}", seconds=seconds, log=plugin.log)
        return plugin

    def restart_kubelet(self) -> None:
        """Restart the kubelet; pods keep running, device plugins register again."""
        self._node.restart_kubelet(self._kubelet_kubeconfig())

    def _bring_up(
        self, apiserver_flags: Sequence[str], controller_manager_flags: Sequence[str]
    ) -> None:
        self._node.start_containerd()
        self._control_plane.start(
            admin=self.kubeconfig(_ADMIN, organizations=["system:masters"]),
            apiserver_flags=apiserver_flags,
            controller_manager_flags=controller_manager_flags,
        )
        self._node.import_pause_image()
        self._node.start_kubelet(self._kubelet_kubeconfig())
        self._node.start_proxy(self.kubeconfig("proxy", user="system:kube-proxy"))
        self.until(
            self._ready,
            what=f"{self.node_name} to be Ready",
            log="kubelet",
            seconds=_READY_SECONDS,
        )

    def _kubelet_kubeconfig(self) -> Path:
        user = f"system:node:{self.node_name}"
        return self.kubeconfig("kubelet", user=user, organizations=["system:nodes"])

    def _ready(self) -> bool:
        conditions = self.get("node", self.node_name)["status"]["conditions"]
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
        accounts = self.get("serviceaccounts", "--namespace=default")["items"]
        # A pod is refused until its namespace has the default service account.
        return ready and bool(accounts)
