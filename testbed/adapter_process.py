"""The adapter's real process on loopback, fed by a fake API server and an exporter stub."""

import asyncio
import json
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar

import aiohttp
from aiohttp import web

from slicewatch.kube.fake import FakeKube
from slicewatch.service.server import Address, serving
from slicewatch.wire.snapshot import Frame, encode
from testbed import fleet, kube_server
from testbed.api_server import kubeconfig
from testbed.cluster.pki import FRONT_PROXY_AUTHORITY, Certificate, Pki

LOOPBACK: Final = Address("127.0.0.1", 0)
SECONDS: Final = 20.0
"""How long a test waits for what should happen at once."""
_TICK_SECONDS: Final = 0.05

T = TypeVar("T")


async def eventually(attempt: Callable[[], Awaitable[T]], what: str) -> T:
    """Repeat ``attempt`` until its result is true, and return that.

    Raises:
        AssertionError: it is not within ``SECONDS``.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + SECONDS
    while not (found := await attempt()):
        if loop.time() > deadline:
            raise AssertionError(f"timed out waiting for {what}")
        await asyncio.sleep(_TICK_SECONDS)
    return found


class ExporterStub:
    """Streams like an exporter: the layout first, then one snapshot per tick.

    Attributes:
        utilization: of each device; may be changed at any time, like ``layout``.
        streams: how many have been opened.
        talks: while False, open streams end and new ones are refused.
    """

    def __init__(self) -> None:
        self.layout = fleet.layout(
            [fleet.gpu(0), fleet.gpu(1)],
            [fleet.tenant("GPU-n1-0", "web-a"), fleet.tenant("GPU-n1-1", "web-b")],
        )
        self.utilization: list[float | None] = [30.0, 90.0]
        self.streams = 0
        self.talks = True

    def app(self) -> web.Application:
        """Return the application to serve."""
        app = web.Application()
        app.router.add_get("/snapshot", self._stream)
        return app

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") != "true" or not self.talks:
            raise web.HTTPServiceUnavailable
        self.streams += 1
        answer = web.StreamResponse()
        await answer.prepare(request)
        sequence, sent = 0, None
        while self.talks:
            sequence += 1
            columns = {"gpu_utilization": list(self.utilization)}
            snapshot = fleet.snapshot(self.layout, columns, sequence=sequence)
            layout = self.layout if sent is not self.layout else None
            sent = self.layout
            await answer.write(encode(Frame(layout=layout, snapshot=snapshot)))
            await asyncio.sleep(_TICK_SECONDS)
        return answer


@dataclass(kw_only=True)
class World:
    """The surroundings of one adapter process.

    Attributes:
        discovers: the process has to find the exporter; by default its address is a setting.
        api, plain: addresses of the process's ports once it serves.
        log: what it has logged, oldest first.
        process: the adapter, once it has been started.
    """

    kube: FakeKube
    exporter: ExporterStub
    pki: Pki
    discovers: bool = False
    exporter_address: str = ""
    api: str = ""
    plain: str = ""
    log: list[dict[str, Any]] = field(default_factory=list)
    process: asyncio.subprocess.Process | None = None

    def client(self, certificate: Certificate | None = None) -> aiohttp.ClientSession:
        """Return a client for the API port with a certificate, by default the front proxy's."""
        shown = certificate or self.pki.issue("front-proxy-client", ca=FRONT_PROXY_AUTHORITY)
        context = ssl.create_default_context(cafile=str(self.pki.ca))
        context.load_cert_chain(shown.certificate, shown.key)
        return aiohttp.ClientSession(self.api, connector=aiohttp.TCPConnector(ssl=context))


def authentication(pki: Pki) -> dict[str, Any]:
    """Return the ConfigMap in which a cluster of these authorities publishes its front proxy."""
    return {
        "metadata": {"name": "extension-apiserver-authentication"},
        "data": {
            "requestheader-client-ca-file": pki.front_proxy_ca.read_text(),
            "requestheader-allowed-names": '["front-proxy-client"]',
            "client-ca-file": pki.ca.read_text(),
        },
    }


@asynccontextmanager
async def running(world: World, folder: Path, *flags: str) -> AsyncIterator[None]:
    """Run an adapter in ``world`` while the body runs; it must exit cleanly when asked to."""
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(serving(kube_server.app(world.kube), LOOPBACK))
        exporter = await stack.enter_async_context(serving(world.exporter.app(), LOOPBACK))
        world.exporter_address = f"http://{exporter}"
        config = folder / "kubeconfig"
        config.write_text(kubeconfig(f"http://{kube}", {"token": "any"}))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "adapter",
            *_flags(world, config),
            *flags,
            stderr=asyncio.subprocess.PIPE,
        )
        world.process = process
        reader = asyncio.ensure_future(_follow(world, process))
        try:
            await eventually(lambda: _serves(world, process), "the adapter to serve")
            yield
        finally:
            world.exporter.talks = False
            status = await _end(process)
            await reader
            if status != 0:
                raise AssertionError(f"the adapter ended with {status}: {world.log[-5:]}")


def _flags(world: World, config: Path) -> list[str]:
    own = world.pki.issue("adapter", sans=["127.0.0.1"], client=False)
    told = [] if world.discovers else [f"--exporters={world.exporter_address}"]
    return [
        f"--listen={LOOPBACK}",
        f"--plain-listen={LOOPBACK}",
        f"--kubeconfig={config}",
        f"--tls-cert-file={own.certificate}",
        f"--tls-key-file={own.key}",
        "--max-age-seconds=2",
        "--drain-seconds=0",
        *told,
    ]


async def _follow(world: World, process: asyncio.subprocess.Process) -> None:
    if process.stderr is None:
        raise ValueError("the process was started without a pipe")
    async for line in process.stderr:
        try:
            world.log.append(json.loads(line))
        except json.JSONDecodeError:
            world.log.append({"event": line.decode(errors="replace")})
        entry = world.log[-1]
        if entry.get("event") == "serving":
            world.api, world.plain = f"https://{entry['api']}", f"http://{entry['plain']}"


async def _serves(world: World, process: asyncio.subprocess.Process) -> bool:
    """Tell whether it admits the front proxy; until then, every handshake fails."""
    if process.returncode is not None:
        raise AssertionError(f"the adapter ended: {world.log}")
    if not world.plain:
        return False
    async with (
        aiohttp.ClientSession(world.plain) as client,
        client.get("/readyz/front-proxy") as answer,
    ):
        return answer.status == HTTPStatus.OK


async def _end(process: asyncio.subprocess.Process) -> int:
    if process.returncode is None:
        process.terminate()
    return await asyncio.wait_for(process.wait(), SECONDS)
