"""The node's half of a driver of resource claims: registers with the kubelet and prepares claims.

Runs on the node as ``python -m testbed.dra.driver --name gpu.nvidia.com --kubectl PATH
--kubeconfig FILE``. To prepare a claim is to say which devices the scheduler chose for it; nothing
is done to a device, and a container is told nothing about it. The messages are generated in the
checkout's root::

    for proto in testbed/dra/plugin_registration testbed/dra/dra_plugin; do
        python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. $proto.proto
        sed -i '1i # mypy: disable-error-code=type-arg' ${proto}_pb2.pyi
    done
"""

import argparse
import json
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any, Final

import grpc

from testbed.dra import dra_plugin_pb2 as dra
from testbed.dra import plugin_registration_pb2 as registration

FOLDER: Final = Path("/var/lib/kubelet/plugins_registry")
"""The kubelet registers the plugin of each socket that it finds here."""
REGISTERED: Final = "registered"
UNPREPARED: Final = "unprepared"

_TYPE: Final = "DRAPlugin"
_VERSION: Final = "v1.DRAPlugin"
_REGISTRATION: Final = "pluginregistration.Registration"
_SERVICE: Final = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
_KUBECTL_SECONDS: Final = 20
_THREADS: Final = 4

FindClaim = Callable[[str, str], dict[str, Any]]
"""Returns a ResourceClaim by namespace and name."""


class ClaimError(Exception):
    """A claim cannot be prepared; the message is for whoever describes the pod."""


class Driver:
    """The two services that the kubelet calls, on one socket.

    Args:
        name: of the driver, as ResourceSlices have it.
        find: reads claims from the API server.
    """

    def __init__(self, name: str, find: FindClaim) -> None:
        self.name = name
        self.socket = FOLDER / f"{name}.sock"
        self._find = find

    def serve(self, stop: threading.Event) -> None:
        """Serve until stopped; the kubelet notices by the socket, which is removed."""
        self.socket.unlink(missing_ok=True)
        server = grpc.server(futures.ThreadPoolExecutor(_THREADS))
        server.add_generic_rpc_handlers((self._registration(), self._claims()))
        server.add_insecure_port(f"unix://{self.socket}")
        server.start()
        stop.wait()
        self.socket.unlink(missing_ok=True)
        server.stop(grace=None).wait()

    def _registration(self) -> grpc.GenericRpcHandler:
        unary = grpc.unary_unary_rpc_method_handler
        calls = {
            "GetInfo": unary(
                self._info,
                registration.InfoRequest.FromString,
                registration.PluginInfo.SerializeToString,
            ),
            "NotifyRegistrationStatus": unary(
                self._notify,
                registration.RegistrationStatus.FromString,
                registration.RegistrationStatusResponse.SerializeToString,
            ),
        }
        return grpc.method_handlers_generic_handler(_REGISTRATION, calls)

    def _claims(self) -> grpc.GenericRpcHandler:
        unary = grpc.unary_unary_rpc_method_handler
        calls = {
            "NodePrepareResources": unary(
                self._prepare,
                dra.NodePrepareResourcesRequest.FromString,
                dra.NodePrepareResourcesResponse.SerializeToString,
            ),
            "NodeUnprepareResources": unary(
                self._unprepare,
                dra.NodeUnprepareResourcesRequest.FromString,
                dra.NodeUnprepareResourcesResponse.SerializeToString,
            ),
        }
        return grpc.method_handlers_generic_handler(_SERVICE, calls)

    def _info(
        self, _request: registration.InfoRequest, _context: grpc.ServicerContext
    ) -> registration.PluginInfo:
        return registration.PluginInfo(
            type=_TYPE, name=self.name, endpoint=str(self.socket), supported_versions=[_VERSION]
        )

    def _notify(
        self, status: registration.RegistrationStatus, _context: grpc.ServicerContext
    ) -> registration.RegistrationStatusResponse:
        said = REGISTERED if status.plugin_registered else f"refused: {status.error}"
        print(said, self.name, flush=True)
        return registration.RegistrationStatusResponse()

    def _prepare(
        self, request: dra.NodePrepareResourcesRequest, _context: grpc.ServicerContext
    ) -> dra.NodePrepareResourcesResponse:
        answers = {claim.uid: self._prepared(claim) for claim in request.claims}
        return dra.NodePrepareResourcesResponse(claims=answers)

    def _unprepare(
        self, request: dra.NodeUnprepareResourcesRequest, _context: grpc.ServicerContext
    ) -> dra.NodeUnprepareResourcesResponse:
        for claim in request.claims:
            print(UNPREPARED, f"{claim.namespace}/{claim.name}", flush=True)
        answers = {claim.uid: dra.NodeUnprepareResourceResponse() for claim in request.claims}
        return dra.NodeUnprepareResourcesResponse(claims=answers)

    def _prepared(self, claim: dra.Claim) -> dra.NodePrepareResourceResponse:
        try:
            devices = allocated(self._find(claim.namespace, claim.name), claim.uid, self.name)
        except ClaimError as error:
            print(f"not prepared: {error}", flush=True)
            return dra.NodePrepareResourceResponse(error=str(error))
        names = ", ".join(device.device_name for device in devices)
        print(f"prepared {claim.namespace}/{claim.name}: {names}", flush=True)
        return dra.NodePrepareResourceResponse(devices=devices)


def allocated(claim: dict[str, Any], uid: str, driver: str) -> Sequence[dra.Device]:
    """Return the devices of a driver that the scheduler chose for a claim.

    Args:
        claim: a ResourceClaim of resource.k8s.io/v1.
        uid: that the kubelet asked for.
        driver: whose devices.

    Raises:
        ClaimError: it is another claim of the same name, or nothing of it is allocated.
    """
    name = claim["metadata"]["name"]
    if claim["metadata"]["uid"] != uid:
        raise ClaimError(f"claim {name} was replaced by another; delete the pod that waits for it")
    allocation = claim.get("status", {}).get("allocation", {})
    results = allocation.get("devices", {}).get("results", [])
    devices = [
        dra.Device(
            request_names=[result["request"]],
            pool_name=result["pool"],
            device_name=result["device"],
        )
        for result in results
        if result["driver"] == driver
    ]
    if not devices:
        raise ClaimError(f"claim {name} has no device of {driver}; was its pod scheduled?")
    return devices


def _kubectl(program: str, kubeconfig: str) -> FindClaim:
    def find(namespace: str, name: str) -> dict[str, Any]:
        command = [program, f"--kubeconfig={kubeconfig}", "get", "resourceclaim", name]
        done = subprocess.run(
            [*command, f"--namespace={namespace}", "--output=json"],
            capture_output=True,
            text=True,
            timeout=_KUBECTL_SECONDS,
            check=False,
        )
        if done.returncode:
            raise ClaimError(f"claim {namespace}/{name} cannot be read: {done.stderr.strip()}")
        claim: dict[str, Any] = json.loads(done.stdout)
        return claim

    return find


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True, help="of the driver, such as gpu.nvidia.com")
    parser.add_argument("--kubectl", required=True, help="the program that reads claims")
    parser.add_argument("--kubeconfig", required=True, help="for it")
    arguments = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    Driver(arguments.name, _kubectl(arguments.kubectl, arguments.kubeconfig)).serve(stop)


if __name__ == "__main__":
    _main()
