"""The same pods asked for by a rule on Prometheus and straight from the exporters, side by side.

One adapter process follows all exporters and has prometheus-adapter's rule for dcgm-exporter's
name, so that whatever else it has to do it does on both ways. The Prometheus is a real one; what
it is asked is counted there.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from bench import population, processes
from bench.adapters import START_SECONDS, RunningAdapter, started
from bench.autoscalers import Rhythm, played
from bench.errors import BenchError
from bench.load import Load, Timing
from bench.programs.adapter_server import Pods
from bench.prometheus import NAMES, Prometheus, prometheus
from bench.queries import HEADERS
from bench.report import Goal, Of, Row, Unit
from bench.rounds import Comparison, alternately
from testbed.api_server import free_port
from testbed.promql_servers import Name

AUTOSCALERS: Final = 20
ROUNDS: Final = 3
# By pods, so that each load takes at least as long as a result of a query is used again (5 s): what
# asking Prometheus costs is in every load.
REQUESTS: Final = {4: 24_000, 100: 20_000, 1000: 8_000}
# As many questions a second as the controller asks at most by default; so do 300 autoscalers at its
# usual rate.
FAST: Final = Rhythm(autoscalers=AUTOSCALERS, every_seconds=1.0, rounds=20)
# The usual rate; spread evenly, few of them find an answer that was got for another one.
USUAL: Final = Rhythm(autoscalers=AUTOSCALERS, every_seconds=15.0, rounds=2)
GOAL: Final = Goal(limit=0.1, of=Of.VALUE)

METRIC: Final = "gpu_utilization_by_rule"
LABEL: Final = "autoscaler"
RULES: Final = f"""\
rules:
- seriesQuery: 'DCGM_FI_DEV_GPU_UTIL{{namespace!="",pod!=""}}'
  resources:
    overrides: {{namespace: {{resource: namespace}}, pod: {{resource: pod}}}}
  name: {{as: {METRIC}}}
  metricsQuery: 'avg(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """An adapter with a rule, and the Prometheus that the rule asks.

    Attributes:
        rules: the file of the rule, which prometheus-adapter reads as well.
    """

    adapter: RunningAdapter
    prometheus: Prometheus
    rules: Path

    def load(self, pool: int) -> Load:
        """Return twenty autoscalers that ask about a pool as fast as they are answered."""
        return Load(
            connections=AUTOSCALERS, requests=REQUESTS[pool], headers=HEADERS,
            identity=self.adapter.trust.client,
        )  # fmt: skip

    async def by_rule(self, pool: int) -> Timing:
        """Return how such a load is answered by the rule."""
        return await self.load(pool).on(self.adapter.url + population.path(pool, METRIC))

    async def direct(self, pool: int) -> Timing:
        """Return how it is answered from the exporters."""
        return await self.load(pool).on(self.adapter.url + population.path(pool))

    async def in_rhythm(self, rhythm: Rhythm) -> tuple[Timing, float]:
        """Return how autoscalers are answered by the rule, and queries for each of their questions."""
        tls = self.adapter.trust.context()
        connector = aiohttp.TCPConnector(ssl=tls, limit=rhythm.autoscalers)
        async with aiohttp.ClientSession(self.adapter.url, connector=connector) as client:
            return await asked(client, rhythm, self.prometheus)


async def measure(folder: Path) -> list[Row]:
    """Return both ways side by side, and what Prometheus is asked, for each of its versions."""
    rows: list[Row] = []
    for name in NAMES:
        place = folder / name
        place.mkdir()
        async with chain(name, place) as both:
            title = f"promql: Prometheus {both.prometheus.version}"
            for pool in population.POOLS:
                rows += await _compared(f"{title}, {pool:,} pods", both, pool)
            rows += await _in_rhythm(title, both, FAST, GOAL)
            rows += await _in_rhythm(title, both, USUAL)
    return rows


@asynccontextmanager
async def chain(name: Name, folder: Path) -> AsyncIterator[Chain]:
    """Run exporters, Prometheus and adapter; ready when both ways have all values.

    Raises:
        Unavailable: this machine has no such Prometheus.
    """
    port = free_port()
    exporters = [f"http://127.0.0.1:{port}/{n}" for n in range(len(population.by_node()))]
    rules, pods = folder / "rules.yaml", folder / "pods.json"
    rules.write_text(RULES)
    pods.write_bytes(
        msgspec.json.encode(Pods(namespace=population.NAMESPACE, manifests=manifests()))
    )
    fleet = ["bench.programs.exporter_fleet", str(port)]
    async with prometheus(name, folder) as server:
        program = [
            "bench.programs.adapter_server", str(pods), f"--exporters={','.join(exporters)}",
            f"--rules-files={rules}", f"--prometheus-url={server.url}",
        ]  # fmt: skip
        async with (
            processes.running("exporters", fleet, folder),
            started(program, folder) as adapter,
        ):
            await _complete(adapter)
            yield Chain(adapter=adapter, prometheus=server, rules=rules)


def manifests() -> list[dict[str, Any]]:
    """Return the pods, each labelled with the one autoscaler whose pods it belongs to."""
    found = []
    for number, pod in enumerate(population.pods()):
        manifest = pod.manifest()
        manifest["metadata"]["labels"][LABEL] = str(number % AUTOSCALERS)
        found.append(manifest)
    return found


async def asked(
    client: aiohttp.ClientSession, rhythm: Rhythm, server: Prometheus
) -> tuple[Timing, float]:
    """Let autoscalers ask an adapter; return times, and queries that a question made.

    Args:
        client: of the adapter, with its address.
        rhythm: when they ask; each asks about its own pods.
        server: the Prometheus that the adapter asks.

    Raises:
        BenchError: a question was refused; says how.
    """

    async def ask(number: int) -> None:
        path = population.question(METRIC, f"{LABEL}={number}")
        async with client.get(path, headers=headers()) as answer:
            body = await answer.read()
        if answer.status != 200:
            raise BenchError(f"GET {path}: {answer.status}: {body[:300].decode()}")

    before = await server.queries()
    times = await played(rhythm, ask)
    return times, (await server.queries() - before) / rhythm.questions


def headers() -> dict[str, str]:
    """Return what the API server adds to a request of an autoscaler."""
    return dict(header.split(": ", 1) for header in HEADERS)


async def _complete(adapter: RunningAdapter) -> None:
    """Wait until every pod has its value on both ways."""
    largest = max(population.POOLS)
    for path in (population.path(largest), population.path(largest, METRIC)):

        async def complete(path: str = path) -> bool:
            return len(await adapter.values(path)) == largest

        await processes.until(
            complete, what=f"the values of {largest} pods at {path}", seconds=START_SECONDS,
            child=adapter.child,
        )  # fmt: skip


async def _compared(name: str, both: Chain, pool: int) -> list[Row]:
    return rows_of(
        name,
        await alternately(ROUNDS, lambda: both.by_rule(pool), lambda: both.direct(pool)),
    )


def rows_of(name: str, rounds: list[tuple[Timing, Timing]]) -> list[Row]:
    """Return percentiles and rates of two that took turns."""
    quantities = (
        ("p50", Comparison.of(rounds, lambda t: t.p50), Unit.MILLISECONDS),
        ("p99", Comparison.of(rounds, lambda t: t.p99), Unit.MILLISECONDS),
        ("requests", Comparison.of(rounds, lambda t: t.per_second), Unit.PER_SECOND),
    )
    return [
        Row(
            figure=f"{name}, {what}", value=compared.value, unit=unit, peer=compared.peer,
            ratio=compared.ratio, spread=compared.spread,
        )
        for what, compared, unit in quantities
    ]  # fmt: skip


async def _in_rhythm(
    title: str, both: Chain, rhythm: Rhythm, goal: Goal | None = None
) -> list[Row]:
    times, queries = await both.in_rhythm(rhythm)
    name = rhythm_name(title, rhythm)
    return [
        Row(figure=f"{name}, p50", value=times.p50, unit=Unit.MILLISECONDS),
        Row(figure=f"{name}, p99", value=times.p99, unit=Unit.MILLISECONDS),
        Row(figure=f"{name}, per question", value=queries, unit=Unit.QUERIES, goal=goal),
    ]


def rhythm_name(title: str, rhythm: Rhythm) -> str:
    """Return what the rows of autoscalers in a rhythm begin with."""
    return f"{title}, {rhythm.autoscalers} HPAs, one question each per {rhythm.every_seconds:g} s"
