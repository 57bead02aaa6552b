"""A fake kubelet: PodResources v1 on a real socket, with scripted answers.

For the demo and for tests. It knows nothing about devices: it lists what it was given, and fails
the way it was asked to.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from exporter.tenants import messages
from exporter.tenants.messages import ContainerName
from exporter.tenants.protocol import Allocation, Offer

if TYPE_CHECKING:
    import grpc


class FakeKubelet:
    """Serves ``List`` from ``start`` to ``stop``, and may be started again after that.

    Attributes:
        hangs: while true, accepts every question and answers none.
        refusal: name of the gRPC status that answers every question, such as ``INTERNAL``, or
            None.
        garbage: bytes that are returned instead of the message, or None.
        asked: how many questions have arrived.
    """

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.hangs = False
        self.refusal: str | None = None
        self.garbage: bytes | None = None
        self.asked = 0
        self._answer = messages.encode(())
        self._offered = messages.encode_offers(())
        self._server: grpc.aio.Server | None = None

    def give(
        self, allocations: Iterable[Allocation], *, idle: Iterable[ContainerName] = ()
    ) -> None:
        """Set the answer to all further questions; ``idle`` containers hold nothing."""
        self._answer = messages.encode(allocations, idle)

    def offer(self, offers: Iterable[Offer]) -> None:
        """Set which devices the plugins of the node offer."""
        self._offered = messages.encode_offers(offers)

    async def start(self) -> None:
        """Listen on the socket, replacing any file at its path.

        Raises:
            RuntimeError: already started, or the socket cannot be made there.
        """
        import grpc.aio

        if self._server is not None:
            raise RuntimeError(f"the fake kubelet on {self.socket} is already running")
        server = grpc.aio.server()
        methods = {
            messages.LIST: grpc.unary_unary_rpc_method_handler(self._list),
            messages.ALLOCATABLE: grpc.unary_unary_rpc_method_handler(self._offers),
        }
        handler = grpc.method_handlers_generic_handler(messages.SERVICE, methods)
        server.add_generic_rpc_handlers((handler,))
        server.add_insecure_port(f"unix:{quote(str(self.socket.absolute()))}")
        await server.start()
        self._server = server

    async def stop(self) -> None:
        """Drop every question and remove the socket, as a kubelet does when it ends."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(grace=None)
            self.socket.unlink(missing_ok=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def _list(self, _: bytes, context: "grpc.aio.ServicerContext") -> bytes:
        self.asked += 1
        return await self._reply(self._answer, context)

    async def _offers(self, _: bytes, context: "grpc.aio.ServicerContext") -> bytes:
        return await self._reply(self._offered, context)

    async def _reply(self, answer: bytes, context: "grpc.aio.ServicerContext") -> bytes:
        import grpc

        if self.hangs:
            await asyncio.Event().wait()
        if self.refusal is not None:
            await context.abort(grpc.StatusCode[self.refusal], "told to refuse")
        return answer if self.garbage is None else self.garbage
