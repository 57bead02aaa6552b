"""etcd, API server, controller manager and scheduler: arguments, order and readiness."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from testbed import binaries
from testbed.cluster import init, kubeconfig, pki, processes, waiting
from testbed.cluster.namespaces import Namespaces

SERVER: Final = f"https://{init.ADDRESS}:6443"
PROGRAMS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_ETCD: Final = "http://127.0.0.1:2379"
_SERVICE_NETWORK: Final = "10.96.0.0/16"
_SERVICE_NAMES: Final = (
    "localhost",
    "kubernetes.default",
    "kubernetes.default.svc",
    "127.0.0.1",
    "10.96.0.1",
    init.ADDRESS,
)
_READY_SECONDS: Final = 60.0
_FRONT_PROXY_CLIENT: Final = "front-proxy-client"


@dataclass(kw_only=True)
class ControlPlane:
    """What the processes of the control plane have in common."""

    namespaces: Namespaces
    pki: pki.Pki
    folder: Path
    _server: processes.NodeProcess | None = None
    _server_flags: Sequence[str] = ()
    _admin: Path | None = None

    def kubeconfig(self, name: str, user: str, organizations: Sequence[str] = ()) -> Path:
        """Write a kubeconfig for a user with a client certificate."""
        return kubeconfig.with_certificate(
            self.folder / f"{name}.kubeconfig",
            server=SERVER,
            client=self.pki.issue(name, common_name=user, organizations=organizations),
            ca=self.pki.ca,
        )

    def start(
        self,
        *,
        admin: Path,
        apiserver_flags: Sequence[str],
        controller_manager_flags: Sequence[str],
    ) -> None:
        """Start everything, and return once the API server is ready."""
        self._start("etcd", self._etcd())
        self._server_flags, self._admin = [*self._apiserver(), *apiserver_flags], admin
        self.start_api_server()
        manager = [*self._controller_manager(), *controller_manager_flags]
        self._start("kube-controller-manager", manager)
        self._start("kube-scheduler", self._scheduler())

    def start_api_server(self) -> None:
        """Start the API server, and return once it is ready."""
        server = self._server = self._start("kube-apiserver", self._server_flags)

        def ready() -> bool:
            server.require_alive()
            return self._answers()

        waiting.until(ready, what="the API server", seconds=_READY_SECONDS, log=server.log)

    def kill_api_server(self) -> None:
        """Kill the API server; what it has kept is in etcd."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()

    def _start(self, program: str, arguments: Sequence[str]) -> processes.NodeProcess:
        command = [str(binaries.binary(program)), *arguments]
        return self.namespaces.popen(command, log=program)

    def _answers(self) -> bool:
        kubectl = [str(binaries.binary("kubectl")), f"--kubeconfig={self._admin}"]
        try:
            return self.namespaces.run([*kubectl, "get", "--raw", "/readyz"]) == "ok"
        except waiting.ClusterError:
            return False

    def _etcd(self) -> list[str]:
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={_ETCD}",
            f"--advertise-client-urls={_ETCD}",
            "--listen-peer-urls=http://127.0.0.1:2380",
            "--unsafe-no-fsync",  # The state lives no longer than the test, and disks are slow.
        ]

    def _apiserver(self) -> list[str]:
        serving = self.pki.issue("apiserver", sans=_SERVICE_NAMES, client=False)
        return [
            f"--etcd-servers={_ETCD}",
            # Not loopback: pods reach kubernetes.default there through kube-proxy.
            f"--advertise-address={init.ADDRESS}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={self.pki.ca}",
            f"--service-cluster-ip-range={_SERVICE_NETWORK}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged",
            *self._service_account_flags(),
            *self._front_proxy_flags(),
            *self._kubelet_flags(),
        ]

    def _service_account_flags(self) -> list[str]:
        return [
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.pki.service_account_public_key}",
            f"--service-account-signing-key-file={self.pki.service_account_key}",
        ]

    def _front_proxy_flags(self) -> list[str]:
        client = self.pki.issue(_FRONT_PROXY_CLIENT, ca=pki.FRONT_PROXY_AUTHORITY)
        return [
            f"--requestheader-client-ca-file={self.pki.front_proxy_ca}",
            f"--requestheader-allowed-names={_FRONT_PROXY_CLIENT}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={client.certificate}",
            f"--proxy-client-key-file={client.key}",
        ]

    def _kubelet_flags(self) -> list[str]:
        client = self.pki.issue("kubelet-client", organizations=["system:masters"])
        return [
            f"--kubelet-client-certificate={client.certificate}",
            f"--kubelet-client-key={client.key}",
            f"--kubelet-certificate-authority={self.pki.ca}",
            "--kubelet-preferred-address-types=InternalIP",
        ]

    def _controller_manager(self) -> list[str]:
        return [
            *self._client_flags("controller-manager", "system:kube-controller-manager"),
            "--use-service-account-credentials",
            # Each controller queries the API server as it starts, slowly at the default rate limit.
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            f"--service-account-private-key-file={self.pki.service_account_key}",
            f"--root-ca-file={self.pki.ca}",
        ]

    def _scheduler(self) -> list[str]:
        return self._client_flags("scheduler", "system:kube-scheduler")

    def _client_flags(self, name: str, user: str) -> list[str]:
        path = self.kubeconfig(name, user)
        return [
            f"--kubeconfig={path}",
            f"--authentication-kubeconfig={path}",
            f"--authorization-kubeconfig={path}",
            "--leader-elect=false",
        ]
