"""Nodes at a kube-apiserver that no machine is behind, and the accounts of their monitors.

A monitor's token is what the kubelet would have mounted: asked for the monitors' account and bound
to a pod of the node, which is how the API server comes to put the node's name into it.
"""

import itertools
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from slicewatch.kube.client import ApiServer
from slicewatch.kube.configuration import connect
from slicewatch.kube.nodes import WHOLE_NODE, WholeNode
from slicewatch.kube.objects import POD
from testbed import binaries
from testbed.api_server import ApiServerProcesses, kubeconfig
from testbed.health import shipped

OTHERS_TAINT: Final = {"key": "example.com/dedicated", "value": "ml", "effect": "NoSchedule"}
_NODE: Final[dict[str, Any]] = {
    "metadata": {
        "labels": {"nvidia.com/gpu.product": "H100", "example.com/rack": "r7"},
        "annotations": {"example.com/owner": "platform"},
    },
    "spec": {"podCIDR": "10.1.0.0/24", "taints": [OTHERS_TAINT]},
}
_STATUS: Final[dict[str, Any]] = {
    "capacity": {"cpu": "8", "nvidia.com/gpu": "8"},
    "allocatable": {"cpu": "8", "nvidia.com/gpu": "8"},
    "addresses": [{"type": "InternalIP", "address": "192.0.2.7"}],
    "conditions": [
        {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"},
        {"type": "DiskPressure", "status": "False", "reason": "Enough", "message": "enough"},
    ],
}


class BareNodes:
    """Monitored nodes of one API server.

    Args:
        server: running.
        folder: for kubeconfig files.
    """

    def __init__(self, server: ApiServerProcesses, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self._admin = server.kubeconfig(server.admin)
        self._numbers = itertools.count(1)

    @property
    def address(self) -> str:
        """Where the API server is."""
        return f"https://127.0.0.1:{self.server.port}"

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl as the administrator and return its output."""
        command = [str(binaries.binary("kubectl")), f"--kubeconfig={self._admin}", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def apply_rights(self) -> None:
        """Apply what is shipped, except for the DaemonSet."""
        files = [f"--filename={shipped.FOLDER / name}" for name in shipped.RIGHTS]
        self.kubectl("apply", *files)

    @asynccontextmanager
    async def client(self, file: Path | None = None) -> AsyncIterator[ApiServer]:
        """Yield a client for a kubeconfig file, by default the administrator's."""
        server = ApiServer(await connect(str(file or self._admin)))
        try:
            yield server
        finally:
            await server.close()

    async def add_node(self, **metadata: dict[str, str]) -> WholeNode:
        """Return a new node, on which others have left their marks, with a name of its own."""
        name = f"node-{next(self._numbers)}"
        head = {**_NODE["metadata"], **metadata, "name": name}
        spec = {**_NODE["spec"], "providerID": f"test:///{name}"}
        async with self.client() as admin:
            await admin.create(WHOLE_NODE, {"metadata": head, "spec": spec})
            # The API server taints every new node as not ready.
            await admin.patch(WHOLE_NODE, name, {"spec": {"taints": [OTHERS_TAINT]}})
            return await admin.patch(WHOLE_NODE, name, {"status": _STATUS}, subresource="status")

    async def monitor(
        self, node: str, account: str = shipped.ACCOUNT, *, server: str = ""
    ) -> Path:
        """Return a kubeconfig of the monitor on a node: its token is bound to a pod there.

        Args:
            node: its name.
            account: of the monitors.
            server: where it is to find the API server, if not there.
        """
        name = f"{account}-{node}"
        container = {"name": "monitor", "image": "none"}
        spec = {"nodeName": node, "serviceAccountName": account, "containers": [container]}
        async with self.client() as admin:
            body = {"metadata": {"name": name}, "spec": spec}
            pod = await admin.create(POD, body, shipped.NAMESPACE)
        bound = {"kind": "Pod", "name": name, "uid": pod.metadata.uid}
        return await self.token(account, bound, server=server)

    async def token(
        self, account: str, bound: dict[str, str] | None = None, *, server: str = ""
    ) -> Path:
        """Return a kubeconfig with a token of an account, bound to an object or to none."""
        path = f"/api/v1/namespaces/{shipped.NAMESPACE}/serviceaccounts/{account}/token"
        reference = {"boundObjectRef": {"apiVersion": "v1", **bound}} if bound else {}
        async with self.client() as admin:
            answer = msgspec.json.decode(
                await admin._exchange("POST", path, {"spec": reference})  # noqa: SLF001 - a verb that the product has no use for
            )
        file = self.folder / f"{account}-{next(self._numbers)}.kubeconfig"
        user = {"token": answer["status"]["token"]}
        file.write_text(kubeconfig(server or self.address, user, self.server.pki.ca))
        return file
