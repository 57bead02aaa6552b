"""The kubelet of this node, asked over the Unix socket of its PodResources service.

gRPC and the messages cost several megabytes of memory and are imported with the first question,
so that an exporter without a kubelet does not pay for them.

In a pod, mount the socket's folder and not the socket: a kubelet that restarts creates a new file,
and a mounted file stays the old one forever.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote

from exporter.tenants.protocol import (
    Allocation,
    DeadlineError,
    Offer,
    PodResourcesError,
    RefusedError,
    UnreachableError,
)

if TYPE_CHECKING:
    import grpc

DEFAULT_SOCKET = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
DEFAULT_DEADLINE_SECONDS = 5.0

# A dense node with long names exceeds gRPC's own limit of 4 MiB.
MAX_ANSWER_BYTES = 32 * 2**20

# Decoding 5 MiB takes a quarter of a second, too long for a loop that ticks; the usual answer of
# ten kilobytes takes a millisecond, too little to be worth a thread.
LARGE_ANSWER_BYTES = 256 * 2**10

# The kernel's sun_path is 108 bytes with its final zero.
MAX_SOCKET_PATH_BYTES = 107

# gRPC's own pause between attempts grows to two minutes: fine for networks, too long for a process
# on the same machine that is back after a few seconds.
RECONNECT_MILLISECONDS = (100, 2_000)

Call = Callable[..., Awaitable[bytes]]
R = TypeVar("R")


class Kubelet:
    """The real ``PodResources``: one channel, opened by the first question and kept.

    As an async context manager it closes the channel at the end.

    Survives restarts of the kubelet: questions fail at once while it is away and work again
    within ``RECONNECT_MILLISECONDS`` of its return.
    """

    def __init__(
        self,
        socket: Path = DEFAULT_SOCKET,
        *,
        deadline_seconds: float = DEFAULT_DEADLINE_SECONDS,
    ) -> None:
        """Remember where to ask.

        Raises:
            ValueError: the path is too long for a socket, or the deadline is not above 0.
        """
        if len(os.fsencode(socket)) > MAX_SOCKET_PATH_BYTES:
            raise ValueError(
                f"the path of the kubelet's socket is longer than the {MAX_SOCKET_PATH_BYTES} bytes "
                f"that the kernel allows: {socket}; mount its folder at a shorter path"
            )
        if not deadline_seconds > 0:
            raise ValueError(
                f"the kubelet's deadline must be above 0 seconds, not {deadline_seconds:g}"
            )
        self.socket = socket
        self.deadline_seconds = deadline_seconds
        self._channel: grpc.aio.Channel | None = None
        self._calls: dict[str, Call] = {}

    async def list(self) -> tuple[Allocation, ...]:
        """Ask, and wait for at most the deadline; promises and errors are the protocol's."""
        from exporter.tenants import messages

        return await self._ask(messages.LIST, messages.decode)

    async def offers(self) -> tuple[Offer, ...]:
        """Ask, and wait for at most the deadline; promises and errors are the protocol's."""
        from exporter.tenants import messages

        return await self._ask(messages.ALLOCATABLE, messages.decode_offers)

    async def close(self) -> None:
        """Close the channel; the next question opens another."""
        channel, self._channel = self._channel, None
        self._calls.clear()
        if channel is not None:
            await channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _ask(self, method: str, decode: Callable[[bytes], R]) -> R:
        # By default gRPC writes its own lines to standard error, between our JSON ones.
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
        from grpc.aio import AioRpcError

        from exporter.tenants import messages

        call = self._calls.get(method) or self._open(method)
        try:
            answer = await call(messages.REQUEST, timeout=self.deadline_seconds)
            if len(answer) > LARGE_ANSWER_BYTES:
                return await asyncio.to_thread(decode, answer)
            return decode(answer)
        except AioRpcError as error:
            raise self._explained(error) from error
        except messages.MessageError as error:
            raise RefusedError(
                f"what answers on {self.socket} does not speak PodResources v1: {error}"
            ) from error

    def _open(self, method: str) -> Call:
        from exporter.tenants import messages

        if self._channel is None:
            self._channel = self._connected()
        call: Call = self._channel.unary_unary(f"/{messages.SERVICE}/{method}")
        self._calls[method] = call
        return call

    def _connected(self) -> "grpc.aio.Channel":
        import grpc.aio

        first, longest = RECONNECT_MILLISECONDS
        return grpc.aio.insecure_channel(
            f"unix:{quote(str(self.socket.absolute()))}",
            options=(
                ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
                ("grpc.initial_reconnect_backoff_ms", first),
                ("grpc.max_reconnect_backoff_ms", longest),
                # By default the path of the socket, which Go's server rejects as a malformed host.
                ("grpc.default_authority", "localhost"),
            ),
        )

    def _explained(self, error: Any) -> PodResourcesError:  # noqa: ANN401 - gRPC has no types
        import grpc

        code, details = error.code(), error.details()
        if code is grpc.StatusCode.UNAVAILABLE:
            return UnreachableError(
                f"no kubelet answers on {self.socket}: {details}; is the folder mounted, and "
                f"is this process allowed to open the socket?"
            )
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return DeadlineError(
                f"the kubelet on {self.socket} did not answer within {self.deadline_seconds:g} s"
            )
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return RefusedError(
                f"what answers on {self.socket} does not serve PodResources v1 (Kubernetes 1.20 "
                f"and newer do): {details}"
            )
        return RefusedError(f"the kubelet on {self.socket} refused: {code.name}: {details}")
