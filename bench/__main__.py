"""``python -m bench``: measures all parts one after the other and prints one table."""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import aiohttp

from bench import (
    calls,
    host,
    memory,
    nvitop,
    prometheus_adapter,
    promql,
    queries,
    scale,
    scrapes,
    step,
    tick,
)
from bench.errors import BenchError
from bench.report import Lacking, Row, table
from slicewatch.kube.errors import KubeError
from testbed.binaries import Unavailable
from testbed.cluster.waiting import ClusterError

Part = Callable[[Path], Awaitable[list[Row]]]

PARTS: Final[dict[str, Part]] = {
    "tick": tick.measure,
    "calls": calls.measure,
    "nvitop": nvitop.measure,
    "memory": memory.measure,
    "scrapes": scrapes.measure,
    "queries": queries.measure,
    "scale": scale.measure,
    "promql": promql.measure,
    "prometheus-adapter": prometheus_adapter.measure,
    "step": step.measure,
}
INTERRUPTED: Final = 130
_BREAKS: Final = (
    BenchError, ClusterError, KubeError, aiohttp.ClientError, OSError, ExceptionGroup,
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Run the parts that were asked for; return the exit status.

    A goal that is missed is no failure: on a busy machine it may be the machine's. A part that
    could not be measured is one if it broke, or if SLICEWATCH_REQUIRE=all says that nothing may
    lack.
    """
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=list(PARTS), metavar="PART",
        help=f"measure this part only; may be repeated ({', '.join(PARTS)})",
    )  # fmt: skip
    parser.add_argument(
        "--nodes", type=_sizes, default=scale.NODES, metavar="N,N,…",
        help="sizes of the clusters of the part scale (10,500)",
    )  # fmt: skip
    parser.add_argument(
        "--api-server", type=scale.Server, default=scale.Server.PREPARED,
        choices=list(scale.Server),
        help="where they are: on prepared pages, or played by kwok on a real kube-apiserver",
    )  # fmt: skip
    given = parser.parse_args(arguments)
    chosen = partial(scale.measure, sizes=given.nodes, server=given.api_server)
    parts = PARTS | {"scale": chosen}
    try:
        return asyncio.run(_bench({name: parts[name] for name in given.only or PARTS}))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return INTERRUPTED


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(","))


async def _bench(parts: Mapping[str, Part]) -> int:
    _stop_on_sigterm()
    print(f"{host.description()}\n")
    began = time.monotonic()
    rows: list[Row] = []
    lacking: list[Lacking] = []
    for name, part in parts.items():
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        measured = await _measured(name, part)
        if isinstance(measured, Lacking):
            lacking.append(measured)
        else:
            rows += measured
    print(table(rows), *lacking, sep="\n")
    print(f"\nin {time.monotonic() - began:.0f} s; ours and peers in turns, medians of the rounds")
    everything = os.environ.get("SLICEWATCH_REQUIRE") == "all"
    return int(any(each.broken or everything for each in lacking))


async def _measured(name: str, part: Part) -> list[Row] | Lacking:
    """Measure a part; one that cannot be measured does not cost the others."""
    try:
        with tempfile.TemporaryDirectory(prefix="slicewatch-bench-") as folder:
            return await part(Path(folder))
    except Unavailable as missing:
        return Lacking(part=name, reason=str(missing), broken=False)
    except _BREAKS as error:
        traceback.print_exception(error)
        return Lacking(part=name, reason=str(error), broken=True)


def _stop_on_sigterm() -> None:
    """End as Ctrl-C does, so that every process that was started is ended."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
