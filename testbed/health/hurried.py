"""A health monitor whose clock is fast: the product's own parts and settings, hours in minutes.

Between two polls, until a fault is over, until the next heartbeat: what a monitor waits for is told
by its clock. What it asks of others takes the time that it takes.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from health import source
from health.agent import Clocks
from health.app import monitoring
from health.settings import HealthSettings
from slicewatch.kube.client import ApiServer
from slicewatch.kube.configuration import connect
from slicewatch.service import process
from slicewatch.service.server import Address

VARIABLE: Final = "HURRIED"
"""How many times as fast the clock runs."""


def clocks(speed: float) -> Clocks:
    """Return clocks of which the one that durations are taken from is fast."""
    return Clocks(
        monotonic=lambda: time.monotonic() * speed,
        rest=lambda seconds: asyncio.sleep(seconds / speed),
    )


@asynccontextmanager
async def hurried(settings: HealthSettings, speed: float) -> AsyncIterator[Address]:
    """Run a monitor while the body runs, as ``health.app.serve`` does."""
    reconnect = partial(connect, settings.kubeconfig)
    server = ApiServer(await reconnect(), reconnect)
    try:
        async with (
            source.exporter_socket(settings.evidence_socket) as exporter,
            monitoring(settings, server, exporter, clocks(speed)) as address,
        ):
            yield address
    finally:
        await server.close()


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a monitor until a signal ends it; return the exit status."""

    async def serve(settings: HealthSettings) -> None:
        async with hurried(settings, float(environment[VARIABLE])):
            await asyncio.Event().wait()

    def prepare(settings: HealthSettings) -> process.Program:
        return process.Program(lambda: serve(settings))

    known = {key: value for key, value in environment.items() if key != VARIABLE}
    return process.run("health", HealthSettings, prepare, arguments, known)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], os.environ))
