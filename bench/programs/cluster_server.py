"""An API server that knows a whole cluster of ``bench.grid``, in prepared pages.

A process of its own, so that what it needs is not taken for the adapter's. It lists and watches
what the adapter follows; nothing changes, so that a watch only has its bookmarks.
"""

import asyncio
import sys
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import uvloop
from aiohttp import web

from bench import grid
from bench.population import NAMESPACE
from slicewatch.kube.objects import (
    ENDPOINT_SLICE,
    NODE,
    POD,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
    Kind,
)

PAGE: Final = 500
BOOKMARK_SECONDS: Final = 30.0
_VERSION: Final = {"resourceVersion": "1"}

Manifests = Iterator[dict[str, Any]]


def contents(nodes: int, exporters_port: int) -> Iterator[tuple[Kind[Any], str, Manifests]]:
    """Yield each kind with the namespace of its objects, and the objects."""
    pods = (pod for node in range(nodes) for pod in grid.pods_on(node, nodes))
    yield POD, NAMESPACE, (pod.manifest() for pod in pods)
    yield NODE, "", map(grid.node_manifest, range(nodes))
    yield ENDPOINT_SLICE, grid.EXPORTERS_NAMESPACE, grid.slices(nodes, exporters_port)
    yield RESOURCE_QUOTA, "", iter(())
    yield PRIORITY_CLASS, "", iter(())


class Collection:
    """The objects of a kind."""

    def __init__(self, kind: Kind[Any], namespace: str, manifests: Manifests) -> None:
        whole = [_whole(one, namespace) for one in manifests]
        starts = range(0, len(whole) or 1, PAGE)
        self._pages = {
            str(at or ""): msgspec.json.encode(
                {
                    "kind": f"{kind.name}List", "apiVersion": kind.api_version,
                    "metadata": _VERSION | _continued(at + PAGE, len(whole)),
                    "items": whole[at : at + PAGE],
                }
            )
            for at in starts
        }  # fmt: skip
        about = {"kind": kind.name, "apiVersion": kind.api_version, "metadata": _VERSION}
        self._bookmark = msgspec.json.encode({"type": "BOOKMARK", "object": about}) + b"\n"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Return a page, or watch."""
        if "watch" in request.query:
            return await self._watch(request)
        page = self._pages[request.query.get("continue", "")]
        return web.Response(body=page, content_type="application/json")

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        await answer.prepare(request)
        while True:
            await answer.write(self._bookmark)
            await asyncio.sleep(BOOKMARK_SECONDS)


def _whole(manifest: dict[str, Any], namespace: str) -> dict[str, Any]:
    head = {"namespace": namespace, "uid": f"uid-{manifest['metadata']['name']}", **_VERSION}
    return manifest | {"metadata": head | manifest["metadata"]}


def _continued(at: int, total: int) -> dict[str, str]:
    return {"continue": str(at)} if at < total else {}


async def serve(port: int, nodes: int, exporters_port: int) -> None:
    """Serve until standard input ends, which it does with whoever started this."""
    app = web.Application()
    for kind, namespace, manifests in contents(nodes, exporters_port):
        collection = Collection(kind, namespace, manifests)
        for path in {kind.path(), kind.path(namespace)}:
            app.router.add_get(path, collection.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        await asyncio.to_thread(sys.stdin.buffer.read)
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        loop.run(serve(*map(int, sys.argv[1:])))
