"""Requests of the metrics API: the adapter beside a server that gives out its answers.

Both over the same mutual TLS and five kept connections, as many as an HPA controller has workers.
Behind the adapter stands a cluster of many nodes whose exporters send a line a second each, so
that what it has computed grows old as it does in production.
"""

from pathlib import Path
from typing import Final

from bench import population, processes
from bench.adapters import START_SECONDS, WORKERS, RunningAdapter, adapter
from bench.load import Load
from bench.peer import static
from bench.programs.static_server import Page
from bench.report import Goal, Of, Row, Unit
from bench.rounds import Comparison, alternately
from testbed.api_server import free_port

ROUNDS: Final = 7
# By pods, so that each load takes about a second.
REQUESTS: Final = {4: 3_000, 100: 2_000, 1000: 1_000}
HEADERS: Final = (
    "Accept: application/vnd.kubernetes.protobuf, */*",
    "X-Remote-User: system:serviceaccount:kube-system:horizontal-pod-autoscaler",
    "X-Remote-Group: system:serviceaccounts",
)
GOAL: Final = Goal(limit=0.5, of=Of.RATIO, least=True)


async def measure(folder: Path) -> list[Row]:
    """Return times and rates of requests for pools of each size."""
    port = free_port()
    nodes = len(population.by_node())
    exporters = [f"http://127.0.0.1:{port}/{number}" for number in range(nodes)]
    manifests = [pod.manifest() for pod in population.pods()]
    fleet = ["bench.programs.exporter_fleet", str(port)]
    async with (
        processes.running("exporters", fleet, folder),
        adapter(manifests, population.NAMESPACE, exporters, folder) as ours,
    ):
        pages = {population.path(pool): await _page(ours, pool) for pool in population.POOLS}
        async with static(pages, folder, ours.trust.identity) as peer:
            return [row for pool in population.POOLS for row in await _compared(ours, peer, pool)]


async def _page(ours: RunningAdapter, pool: int) -> Page:
    """Wait until every pod of a pool has its value, and return the answer."""
    path = population.path(pool)

    async def complete() -> bool:
        return len(await ours.values(path)) == pool

    await processes.until(
        complete, what=f"the values of {pool} pods", seconds=START_SECONDS, child=ours.child
    )
    return Page(body=await ours.body(path), headers={"Content-Type": "application/json"})


async def _compared(ours: RunningAdapter, peer: str, pool: int) -> list[Row]:
    path = population.path(pool)
    load = Load(
        connections=WORKERS, requests=REQUESTS[pool], headers=HEADERS,
        identity=ours.trust.client,
    )  # fmt: skip
    rounds = await alternately(
        ROUNDS, lambda: load.on(f"{ours.url}{path}"), lambda: load.on(f"{peer}{path}")
    )
    name = f"query: {pool:,} pods"
    return [
        _row(f"{name}, p50", Comparison.of(rounds, lambda t: t.p50), Unit.MILLISECONDS),
        _row(f"{name}, p99", Comparison.of(rounds, lambda t: t.p99), Unit.MILLISECONDS),
        _row(
            f"{name}, requests",
            Comparison.of(rounds, lambda t: t.per_second), Unit.PER_SECOND, GOAL,
        ),
    ]  # fmt: skip


def _row(figure: str, compared: Comparison, unit: Unit, goal: Goal | None = None) -> Row:
    return Row(
        figure=figure, value=compared.value, unit=unit, peer=compared.peer,
        ratio=compared.ratio, spread=compared.spread, goal=goal,
    )  # fmt: skip
