"""The backends that the rules may ask now: clients that live as long as their configuration."""

from collections.abc import Mapping

from adapter.sources.prometheus.backend import Backend, BackendConfig
from adapter.sources.prometheus.fault import BackendError, FaultClass


class Backends:
    """Clients by name. One whose configuration stays keeps its connections."""

    def __init__(self) -> None:
        self._clients: dict[str, Backend] = {}
        self._retired: list[Backend] = []

    def configure(self, wanted: Mapping[str, BackendConfig]) -> None:
        """Have a client for each of these and no other."""
        kept = {
            name: client
            for name, client in self._clients.items()
            if wanted.get(name) == client.config
        }
        self._retired += [c for name, c in self._clients.items() if name not in kept]
        made = {name: Backend(one) for name, one in wanted.items() if name not in kept}
        self._clients = kept | made

    def get(self, name: str) -> Backend:
        """Return a client.

        Raises:
            BackendError: there is none of this name any more.
        """
        client = self._clients.get(name)
        if client is None:
            raise BackendError(name, FaultClass.UNKNOWN, "describe it under backends")
        return client

    async def close_retired(self) -> None:
        """Close the clients that are no longer wanted. Their last queries fail."""
        while self._retired:
            await self._retired.pop().close()

    async def close(self) -> None:
        """Close all."""
        self._retired += self._clients.values()
        self._clients = {}
        await self.close_retired()
