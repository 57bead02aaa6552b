"""A device plugin for fake GPUs: the kubelet allocates ids that a test chose.

Runs on the node as ``python -m testbed.cluster.device_plugin --resource nvidia.com/gpu
--device GPU-aaaa``. It registers again whenever the kubelet restarts, which is when the kubelet
removes the plugin's socket. The messages are generated in the checkout's root::

    proto=testbed/cluster/device_plugin
    python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. $proto.proto
    sed -i '1i # mypy: disable-error-code=type-arg' ${proto}_pb2.pyi
"""

import argparse
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from pathlib import Path
from typing import Final

import grpc

from testbed.cluster import device_plugin_pb2 as messages

FOLDER: Final = Path("/var/lib/kubelet/device-plugins")
_KUBELET: Final = FOLDER / "kubelet.sock"
_API_VERSION: Final = "v1beta1"
_REPLICA_MARK: Final = "::"
_POLL_SECONDS: Final = 0.2
_REGISTER_SECONDS: Final = 5.0
_THREADS: Final = 4


class Plugin:
    """The service of one resource with a fixed set of healthy devices."""

    def __init__(self, resource: str, devices: Sequence[str]) -> None:
        self.resource = resource
        self.socket = FOLDER / f"slicewatch-{resource.replace('/', '-')}.sock"
        self._devices = devices

    def serve(self, stop: threading.Event) -> None:
        """Serve and register, again after every start of the kubelet, until stopped."""
        while not stop.is_set():
            server = self._started()
            try:
                if self._registered():
                    _wait_while(self.socket.exists, stop)
                else:
                    stop.wait(_POLL_SECONDS)
            finally:
                server.stop(grace=None).wait()

    def _started(self) -> grpc.Server:
        self.socket.unlink(missing_ok=True)
        server = grpc.server(futures.ThreadPoolExecutor(_THREADS))
        server.add_generic_rpc_handlers((self._handler(),))
        server.add_insecure_port(f"unix://{self.socket}")
        server.start()
        return server

    def _registered(self) -> bool:
        request = messages.RegisterRequest(
            version=_API_VERSION,
            endpoint=self.socket.name,
            resource_name=self.resource,
            options=messages.DevicePluginOptions(),
        )
        with grpc.insecure_channel(f"unix://{_KUBELET}") as channel:
            register = channel.unary_unary(
                f"/{_API_VERSION}.Registration/Register",
                messages.RegisterRequest.SerializeToString,
                messages.Empty.FromString,
            )
            try:
                register(request, timeout=_REGISTER_SECONDS)
            except grpc.RpcError as error:
                print(f"not registered; the kubelet may be starting: {error}", flush=True)
                return False
        print(f"registered {self.resource}", flush=True)
        return True

    def _handler(self) -> grpc.GenericRpcHandler:
        unary = grpc.unary_unary_rpc_method_handler
        calls = {
            "GetDevicePluginOptions": unary(
                self._options,
                messages.Empty.FromString,
                messages.DevicePluginOptions.SerializeToString,
            ),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                self._list_and_watch,
                messages.Empty.FromString,
                messages.ListAndWatchResponse.SerializeToString,
            ),
            "Allocate": unary(
                self._allocate,
                messages.AllocateRequest.FromString,
                messages.AllocateResponse.SerializeToString,
            ),
        }
        return grpc.method_handlers_generic_handler(f"{_API_VERSION}.DevicePlugin", calls)

    def _options(
        self, _request: messages.Empty, _context: grpc.ServicerContext
    ) -> messages.DevicePluginOptions:
        return messages.DevicePluginOptions()

    def _list_and_watch(
        self, _request: messages.Empty, context: grpc.ServicerContext
    ) -> Iterator[messages.ListAndWatchResponse]:
        # The list never changes; if the stream ended, the plugin would count as dead.
        ended = threading.Event()
        context.add_callback(ended.set)
        devices = [messages.Device(id=device, health="Healthy") for device in self._devices]
        yield messages.ListAndWatchResponse(devices=devices)
        ended.wait()

    def _allocate(
        self, request: messages.AllocateRequest, _context: grpc.ServicerContext
    ) -> messages.AllocateResponse:
        responses = [
            messages.ContainerAllocateResponse(
                envs={"NVIDIA_VISIBLE_DEVICES": _visible(container.device_ids)}
            )
            for container in request.container_requests
        ]
        return messages.AllocateResponse(container_responses=responses)


def _wait_while(condition: Callable[[], bool], stop: threading.Event) -> None:
    while condition() and not stop.wait(_POLL_SECONDS):
        continue


def _visible(device_ids: Sequence[str]) -> str:
    # To the container, replicas of one GPU are one GPU.
    return ",".join(dict.fromkeys(device.split(_REPLICA_MARK)[0] for device in device_ids))


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resource", required=True, help="for example nvidia.com/mig-1g.10gb")
    parser.add_argument("--device", action="append", required=True, help="a device id; repeatable")
    arguments = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    Plugin(arguments.resource, arguments.device).serve(stop)


if __name__ == "__main__":
    _main()
