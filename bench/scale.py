"""What the adapter costs, and how old what it serves is, over the size of the cluster.

The adapter is started by its command line. It finds the exporters by EndpointSlices and lists pods
and nodes from an API server: one with prepared pages, or a real one whose nodes and pods are kwok's.
Each exporter streams a line a second. While it is measured, autoscalers ask as often as their
controller lets them, each time for another pool.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from bench import grid, host, kwok, processes
from bench.adapters import RunningAdapter, started
from bench.errors import BenchError
from bench.population import GPUS_PER_NODE, node_name
from bench.report import Goal, Of, Row, Unit
from testbed.api_server import free_port, kubeconfig

NODES: Final = (10, 500)
START_SECONDS: Final = 180.0
SETTLING_SECONDS: Final = 5.0
# As long as the adapter's history, which has its full size only then.
SECONDS: Final = 60.0
REQUESTS_PER_SECOND: Final = 20.0
CPU_GOAL: Final = Goal(limit=100.0, of=Of.VALUE)
MEMORY_GOAL: Final = Goal(limit=1000.0, of=Of.VALUE)
AGE_GOAL: Final = Goal(limit=2.0, of=Of.VALUE)
REQUEST_GOAL: Final = Goal(limit=2.0, of=Of.RATIO)


class Server(StrEnum):
    """What the adapter lists and watches pods and nodes from."""

    PREPARED = "prepared"
    KWOK = "kwok"


_TITLES: Final = {Server.PREPARED: "scale", Server.KWOK: "scale, kwok"}


@dataclass(slots=True, kw_only=True)
class Asked:
    """What became of the requests: how long each took, and how old each of its values was."""

    seconds: list[float] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How an adapter does on a cluster of a size. Times in seconds, memory in megabytes.

    Attributes:
        made: how long each step of making the cluster took; empty for prepared pages.
    """

    nodes: int
    server: Server
    made: Mapping[str, float]
    start: float
    cores: float
    resident: float
    asked: Asked


async def measure(
    folder: Path, sizes: Sequence[int] = NODES, server: Server = Server.PREPARED
) -> list[Row]:
    """Return the rows of all sizes; the smallest is the peer of the others' requests."""
    found: list[Figures] = []
    for nodes in sorted(sizes):
        place = folder / str(nodes)
        place.mkdir()
        found.append(await of_size(nodes, place, seconds=SECONDS, server=server))
    return [row for figures in found for row in _rows(figures, found[0])]


async def of_size(
    nodes: int, folder: Path, *, seconds: float, server: Server = Server.PREPARED
) -> Figures:
    """Return how an adapter does on a cluster, from so many seconds of questions."""
    async with _surroundings(nodes, folder, server) as cluster:
        began = time.monotonic()
        flags = [f"--kubeconfig={cluster.kubeconfig}", f"--exporter-service={grid.SERVICE}"]
        flags += [f"--exporter-namespace={grid.EXPORTERS_NAMESPACE}"]
        flags += [f"--service-namespace={grid.EXPORTERS_NAMESPACE}", "--drain-seconds=0"]
        async with started(["adapter", *flags], folder) as ours:
            await processes.until(
                lambda: _complete(ours, nodes), what=f"the values of {nodes} nodes",
                seconds=START_SECONDS, child=ours.child, every_seconds=0.5,
            )  # fmt: skip
            start = time.monotonic() - began
            await asyncio.sleep(SETTLING_SECONDS)
            began, used = time.monotonic(), host.cpu_seconds(ours.child.pid)
            asked = await _asked(ours, nodes, seconds)
            passed = time.monotonic() - began
            return Figures(
                nodes=nodes, server=server, made=cluster.seconds, start=start, asked=asked,
                cores=(host.cpu_seconds(ours.child.pid) - used) / passed,
                resident=host.memory(ours.child.pid).resident,
            )  # fmt: skip


@asynccontextmanager
async def _surroundings(nodes: int, folder: Path, server: Server) -> AsyncIterator[grid.Cluster]:
    """Run an API server that knows the cluster, and the exporters of its nodes."""
    port = free_port()
    fleet = ["bench.programs.replayed_fleet", str(port), str(nodes)]
    async with (
        _CLUSTERS[server](nodes, port, folder) as cluster,
        processes.running("fleet", fleet, folder),
    ):
        yield cluster


@asynccontextmanager
async def _prepared(nodes: int, exporters_port: int, folder: Path) -> AsyncIterator[grid.Cluster]:
    api = free_port()
    cluster = ["bench.programs.cluster_server", str(api), str(nodes), str(exporters_port)]
    config = folder / "kubeconfig"
    config.write_text(kubeconfig(f"http://127.0.0.1:{api}", {"token": "any"}))
    async with processes.running("cluster", cluster, folder) as child:

        async def listens() -> bool:
            _, writer = await asyncio.open_connection("127.0.0.1", api)
            writer.close()
            return True

        await processes.until(listens, what="the cluster", seconds=START_SECONDS, child=child)
        yield grid.Cluster(kubeconfig=config)


_CLUSTERS: Final[
    dict[Server, Callable[[int, int, Path], AbstractAsyncContextManager[grid.Cluster]]]
] = {Server.PREPARED: _prepared, Server.KWOK: kwok.cluster}


async def _complete(ours: RunningAdapter, nodes: int) -> bool:
    """Tell whether the last node has its value; then, whether all have, and a pool's pods."""
    of_nodes = f"/apis/custom.metrics.k8s.io/v1beta2/nodes/{{}}/{grid.STAMPED}"
    for path, many in ((node_name(nodes - 1), 1), ("*", nodes)):
        if len(await ours.values(of_nodes.format(path))) != many:
            return False
    members = range(0, nodes * GPUS_PER_NODE, grid.pools(nodes))
    return len(await ours.values(grid.path(0))) == len(members)


async def _asked(ours: RunningAdapter, nodes: int, seconds: float) -> Asked:
    """Ask for one pool after the other; one that is answered late holds up no other."""
    loop, pools, asked = asyncio.get_running_loop(), grid.pools(nodes), Asked()
    began = loop.time()
    async with asyncio.TaskGroup() as group:
        for number in range(round(seconds * REQUESTS_PER_SECOND)):
            await asyncio.sleep(began + number / REQUESTS_PER_SECOND - loop.time())
            group.create_task(_ask_once(ours, number % pools, asked))
    return asked


async def _ask_once(ours: RunningAdapter, pool: int, asked: Asked) -> None:
    began = time.monotonic()
    stamps = await ours.values(grid.path(pool))
    ended = time.monotonic()
    if not stamps:
        raise BenchError(f"pool {pool} has no values any more{ours.child.tail()}")
    asked.seconds.append(ended - began)
    asked.ages += [ended - stamp for stamp in stamps]


def _rows(one: Figures, smallest: Figures) -> list[Row]:
    name = f"{_TITLES[one.server]}: {one.nodes:,} nodes"
    limits = statistics.quantiles(one.asked.ages, n=100)
    last = max(one.asked.ages)
    return [
        *(Row(figure=f"{name}: {step}", value=value, unit=Unit.SECONDS)
          for step, value in one.made.items()),
        Row(figure=f"{name}, {one.nodes * GPUS_PER_NODE:,} pods: until all have values",
            value=one.start, unit=Unit.SECONDS),
        Row(figure=f"{name}: share of a core", value=one.cores * 100, unit=Unit.PERCENT,
            goal=CPU_GOAL),
        Row(figure=f"{name}: resident memory", value=one.resident, unit=Unit.MEGABYTES,
            goal=MEMORY_GOAL),
        Row(figure=f"{name}: age of values, p50", value=limits[49], unit=Unit.SECONDS),
        Row(figure=f"{name}: age of values, p99", value=limits[98], unit=Unit.SECONDS),
        Row(figure=f"{name}: age of values, oldest", value=last, unit=Unit.SECONDS, goal=AGE_GOAL),
        _request(f"{name}: request for {grid.POOL} pods, p50", one, smallest, 50),
        _request(f"{name}: request for {grid.POOL} pods, p99", one, smallest, 99),
    ]  # fmt: skip


def _request(figure: str, one: Figures, smallest: Figures, percent: int) -> Row:
    def of(figures: Figures) -> float:
        return statistics.quantiles(figures.asked.seconds, n=100)[percent - 1] * 1000

    if one is smallest:
        return Row(figure=figure, value=of(one), unit=Unit.MILLISECONDS)
    return Row(
        figure=figure, value=of(one), unit=Unit.MILLISECONDS, peer=of(smallest),
        ratio=of(one) / of(smallest), goal=REQUEST_GOAL if percent == 50 else None,
    )  # fmt: skip
