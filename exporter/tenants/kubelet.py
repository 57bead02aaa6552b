"""The kubelet of this node, asked over the Unix socket of its PodResources service.

gRPC and the messages cost several megabytes of memory and are imported with the first question,
so that an exporter without a kubelet does not pay for them.

In a pod, mount the socket's folder and not the socket: a kubelet that restarts makes a new file,
and a mounted file stays the old one for ever.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from exporter.tenants.protocol import (
    Allocation,
    DeadlineError,
    PodResourcesError,
    RefusedError,
    UnreachableError,
)

if TYPE_CHECKING:
    import grpc

DEFAULT_SOCKET = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
DEFAULT_DEADLINE_SECONDS = 5.0

# A dense node with long names passes gRPC's own limit of 4 MiB.
MAX_ANSWER_BYTES = 32 * 2**20

# Reading 5 MiB takes a quarter of a second, too long for a loop that ticks; the usual answer of
# ten kilobytes takes a millisecond, less than a thread is worth.
LARGE_ANSWER_BYTES = 256 * 2**10

# The kernel's sun_path is 108 bytes with its final zero.
MAX_SOCKET_PATH_BYTES = 107

# gRPC's own pause between attempts grows to two minutes: made for networks, too long for a
# process on the same machine that is back after a few seconds.
RECONNECT_MILLISECONDS = (100, 2_000)

Call = Callable[..., Awaitable[bytes]]


class Kubelet:
    """The real ``PodResources``: one channel, opened by the first question and kept.

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
            ValueError: the kernel cannot have a socket of that path, or the deadline is no time.
        """
        if len(os.fsencode(socket)) > MAX_SOCKET_PATH_BYTES:
            raise ValueError(
                f"the path of the kubelet's socket is longer than {MAX_SOCKET_PATH_BYTES} bytes, "
                f"which no socket's can be: {socket}; mount its folder somewhere shorter"
            )
        if not deadline_seconds > 0:
            raise ValueError(
                f"the deadline of the kubelet must be above 0 seconds, not {deadline_seconds:g}"
            )
        self.socket = socket
        self.deadline_seconds = deadline_seconds
        self._channel: grpc.aio.Channel | None = None
        self._call: Call | None = None

    async def list(self) -> tuple[Allocation, ...]:
        """Ask, and wait for at most the deadline; promises and errors are the protocol's."""
        # gRPC writes lines of its own to standard error, between our JSON ones, unless told not to.
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
        from grpc.aio import AioRpcError

        from exporter.tenants import messages

        call = self._call or self._open()
        try:
            answer = await call(messages.REQUEST, timeout=self.deadline_seconds)
            if len(answer) > LARGE_ANSWER_BYTES:
                return await asyncio.to_thread(messages.decode, answer)
            return messages.decode(answer)
        except AioRpcError as error:
            raise self._explained(error) from error
        except messages.MessageError as error:
            raise RefusedError(
                f"what answers on {self.socket} does not speak PodResources v1: {error}"
            ) from error

    async def close(self) -> None:
        """Close the channel; the next question opens another."""
        channel, self._channel, self._call = self._channel, None, None
        if channel is not None:
            await channel.close()

    def _open(self) -> Call:
        import grpc.aio

        from exporter.tenants import messages

        first, longest = RECONNECT_MILLISECONDS
        self._channel = grpc.aio.insecure_channel(
            f"unix:{quote(str(self.socket.absolute()))}",
            options=(
                ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
                ("grpc.initial_reconnect_backoff_ms", first),
                ("grpc.max_reconnect_backoff_ms", longest),
                # Otherwise the path of the socket, which Go's server takes for a malformed host.
                ("grpc.default_authority", "localhost"),
            ),
        )
        call: Call = self._channel.unary_unary(f"/{messages.SERVICE}/{messages.LIST}")
        self._call = call
        return call

    def _explained(self, error: Any) -> PodResourcesError:  # noqa: ANN401 - gRPC has no types
        import grpc

        code, details = error.code(), error.details()
        if code is grpc.StatusCode.UNAVAILABLE:
            return UnreachableError(
                f"no kubelet answers on {self.socket}: {details}; is the folder mounted, and "
                f"may this process open the socket?"
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
