"""A real kube-apiserver with its etcd, on loopback and without nodes: seconds instead of minutes.

For code that only talks to the API. Whatever needs a kubelet, running pods or an aggregated API is
tested on the whole cluster in ``testbed.cluster``.
"""

import socket
import ssl
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from http import HTTPStatus
from http.client import HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import yaml

from testbed import binaries
from testbed.cluster.pki import Certificate, Pki
from testbed.cluster.waiting import until

START_SECONDS: Final = 90.0
END_SECONDS: Final = 30.0
_PUBLISHED: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


def free_port() -> int:
    """Return a loopback port on which nothing is listening at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def kubeconfig(server: str, user: Mapping[str, object], authority: Path | None = None) -> str:
    """Return a kubeconfig for one user on one server."""
    cluster = {"server": server} | ({"certificate-authority": str(authority)} if authority else {})
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "cluster", "cluster": cluster}],
            "users": [{"name": "user", "user": dict(user)}],
            "contexts": [{"name": "it", "context": {"cluster": "cluster", "user": "user"}}],
            "current-context": "it",
        }
    )


class ApiServerProcesses:
    """kube-apiserver and etcd. A context manager; both end with it.

    Attributes:
        admin: certificate of a user who may do everything.
        nobody: certificate of a user without any rights.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pki = Pki(folder / "pki")
        self.port = free_port()
        self.admin = self.pki.issue("admin", organizations=["system:masters"])
        self.nobody = self.pki.issue("nobody")
        self._undo = ExitStack()
        self._etcd = f"http://127.0.0.1:{free_port()}"

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            etcd = self._start_etcd()
            undo.callback(lambda: self._end(etcd))
            self._server = self._start_server()
            undo.callback(lambda: self._end(self._server))
            self._await_ready()
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._undo.close()

    def restart(self) -> None:
        """Restart kube-apiserver, which makes it forget old versions."""
        self._end(self._server)
        self._server = self._start_server()
        self._await_ready()

    def kubeconfig(self, certificate: Certificate) -> Path:
        """Return a kubeconfig file for the user named in a certificate."""
        path = self.folder / f"{certificate.certificate.stem}.kubeconfig"
        user = {
            "client-certificate": str(certificate.certificate),
            "client-key": str(certificate.key),
        }
        path.write_text(kubeconfig(f"https://127.0.0.1:{self.port}", user, self.pki.ca))
        return path

    def _start_etcd(self) -> subprocess.Popen[bytes]:
        peers = f"http://127.0.0.1:{free_port()}"
        return self._start(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={self._etcd}",
            f"--advertise-client-urls={self._etcd}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
        )

    def _start_server(self) -> subprocess.Popen[bytes]:
        serving = self.pki.issue("apiserver", sans=["127.0.0.1"], client=False)
        return self._start(
            "kube-apiserver",
            f"--etcd-servers={self._etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=192.0.2.1",  # Loopback is not allowed here, and nobody connects.
            f"--secure-port={self.port}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={self.pki.ca}",
            f"--requestheader-client-ca-file={self.pki.front_proxy_ca}",
            "--requestheader-allowed-names=front-proxy-client",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://tests.invalid",
            f"--service-account-key-file={self.pki.service_account_public_key}",
            f"--service-account-signing-key-file={self.pki.service_account_key}",
            "--disable-admission-plugins=ServiceAccount",  # No controller creates accounts here.
            "--service-cluster-ip-range=10.0.0.0/24",
        )

    def _start(self, name: str, *flags: str) -> subprocess.Popen[bytes]:
        program = str(binaries.binary(name))
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [program, *flags], stdout=log, stderr=subprocess.STDOUT, cwd=self.folder
            )

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _await_ready(self) -> None:
        context = ssl.create_default_context(cafile=str(self.pki.ca))
        context.load_cert_chain(self.admin.certificate, self.admin.key)

        def ready() -> bool:
            connection = HTTPSConnection("127.0.0.1", self.port, timeout=5, context=context)
            try:
                return all(_found(connection, path) for path in ("/readyz", _PUBLISHED))
            except OSError:
                return False
            finally:
                connection.close()

        log = self.folder / "kube-apiserver.log"
        until(ready, what="kube-apiserver", seconds=START_SECONDS, log=log)


def _found(connection: HTTPSConnection, path: str) -> bool:
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    return answer.status == HTTPStatus.OK
