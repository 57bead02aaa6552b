"""The static peer as a running process."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from bench import processes
from bench.programs.static_server import Identity, Page, Site
from testbed.api_server import free_port

START_SECONDS: Final = 10.0


@asynccontextmanager
async def static(
    pages: Mapping[str, Page], folder: Path, identity: Identity | None = None
) -> AsyncIterator[str]:
    """Serve pages by path from a process of its own; yield its base URL."""
    port = free_port()
    file = folder / "site.json"
    site = Site(port=port, pages=dict(pages), identity=identity)
    file.write_bytes(msgspec.json.encode(site))
    arguments = ["bench.programs.static_server", str(file)]
    async with processes.running("static", arguments, folder) as child:

        async def listens() -> bool:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return True

        await processes.until(
            listens, what="the static server", seconds=START_SECONDS, child=child
        )
        yield f"http{'s' if identity else ''}://127.0.0.1:{port}"
