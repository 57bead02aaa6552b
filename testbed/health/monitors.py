"""Monitors as processes that can be killed, and exporters that say what a test lets them say."""

import asyncio
import multiprocessing
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from aiohttp import web

from health.source import Cursor, FakeExporter
from slicewatch.wire.evidence import encode
from testbed.health import hurried

SPEED: Final = 200.0
"""An interval of a minute is 0.3 s."""
_END_SECONDS: Final = 20.0

# What a monitor imports is imported once; each then begins at once, and is a process all the same.
_processes: Final = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([hurried.__name__])


class MonitorProcess:
    """One monitor on one node, which begins anew whenever it ends, as a pod's container does.

    Args:
        flags: the monitor's, see ``health.settings``.
        environment: its variables.
        speed: of its clock.
    """

    def __init__(
        self, flags: list[str], environment: dict[str, str], speed: float = SPEED
    ) -> None:
        self._arguments = flags, {**environment, hurried.VARIABLE: str(speed)}
        self._process = self._start()
        self.starts = 1

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        self._process.kill()

    async def run(self) -> None:
        """Start it again whenever it has ended; once cancelled, end it for good."""
        try:
            while True:
                await asyncio.to_thread(self._process.join)
                self._process = self._start()
                self.starts += 1
        finally:
            self._process.terminate()
            self._process.join(_END_SECONDS)

    def _start(self) -> BaseProcess:
        process = _processes.Process(target=_run, args=self._arguments, daemon=True)
        process.start()
        return process


def _run(flags: list[str], environment: dict[str, str]) -> None:
    sys.exit(hurried.run(flags, environment))


@asynccontextmanager
async def speaking(exporter: FakeExporter, path: Path) -> AsyncIterator[None]:
    """Let an exporter answer on a Unix socket while the body runs."""

    async def evidence(request: web.Request) -> web.Response:
        query = request.query
        cursor = Cursor(run=query.get("run", ""), newest=int(query.get("after", "0")))
        body = encode(exporter.answer(cursor))
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_get("/evidence", evidence)
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.UnixSite(runner, str(path)).start()
        yield
    finally:
        await runner.cleanup()
