"""Beside nvitop-exporter: another exporter in Python, on the same C library at the same polling.

It is installed into an environment of its own in the user's cache, so that the project's locks
stay what they are; where it cannot be had, the part says so.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp

from bench import fleets, processes
from bench import node as nodes
from bench.crowd import crowd
from bench.processes import Child
from bench.report import Goal, Of, Row, Unit
from testbed.api_server import free_port
from testbed.binaries import Unavailable

VERSION: Final = "1.7.2"
POLLING_SECONDS: Final = 1.0
SECONDS: Final = 30.0
START_SECONDS: Final = 30.0
INSTALL_SECONDS: Final = 180.0
GOAL: Final = Goal(limit=0.1, of=Of.RATIO)
_CLOCK_TICKS: Final = os.sysconf("SC_CLK_TCK")


async def measure(folder: Path) -> list[Row]:
    """Return the CPU time of both in a second, each polling once a second."""
    program = await _program()
    async with (
        aiohttp.ClientSession() as client,
        crowd(folder) as people,
        nodes.node(fleets.dense(people), folder, crowd=people) as machine,
        nodes.exporter(
            machine, folder, client, tick_seconds=POLLING_SECONDS,
            program=("bench.programs.counted_exporter",),
        ) as ours,
        _other(program, machine, folder, client) as other,
    ):  # fmt: skip
        own, peer = await asyncio.gather(_milliseconds(ours.child), _milliseconds(other))
    return [
        Row(
            figure=f"nvitop-exporter {VERSION}: CPU in a second, polling at 1 Hz",
            value=own, unit=Unit.MILLISECONDS, peer=peer, ratio=own / peer, goal=GOAL,
        )
    ]  # fmt: skip


async def _milliseconds(child: Child) -> float:
    before = _cpu_seconds(child.pid)
    await asyncio.sleep(SECONDS)
    return 1000 * (_cpu_seconds(child.pid) - before) / SECONDS


def _cpu_seconds(pid: int) -> float:
    """Return user and system time of all threads, as the kernel counts it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS


@asynccontextmanager
async def _other(
    program: Path, machine: nodes.Node, folder: Path, client: aiohttp.ClientSession
) -> AsyncIterator[Child]:
    port = free_port()
    arguments = ["nvitop_exporter", f"--port={port}", f"--interval={POLLING_SECONDS:g}"]
    async with processes.running(
        "nvitop-exporter", arguments, folder, machine.environment, python=program
    ) as child:

        async def serves() -> bool:
            async with client.get(f"http://127.0.0.1:{port}/metrics") as answer:
                return machine.simulated.gpus[-1].uuid in await answer.text()

        await processes.until(serves, what="nvitop-exporter", seconds=START_SECONDS, child=child)
        yield child


async def _program() -> Path:
    """Return an interpreter that has it.

    Raises:
        Unavailable: it cannot be installed here.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "slicewatch" / f"nvitop-exporter-{VERSION}"
    python = home / "bin" / "python"
    if (home / "complete").exists():
        return python
    shutil.rmtree(home, ignore_errors=True)
    await _run(sys.executable, "-m", "venv", str(home))
    await _run(str(python), "-m", "pip", "install", "--quiet", f"nvitop-exporter=={VERSION}")
    (home / "complete").touch()
    return python


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(INSTALL_SECONDS):
            _, said = await process.communicate()
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise Unavailable(
            f"installing nvitop-exporter takes over {INSTALL_SECONDS:g} s"
        ) from error
    if process.returncode:
        why = said.decode(errors="replace").strip()[-300:]
        raise Unavailable(f"nvitop-exporter {VERSION} cannot be installed: {why}")
