"""Our adapter beside prometheus-adapter: the same rule, the same Prometheus, the same questions.

prometheus-adapter lists the pods and asks for the user's rights at an API server while it answers,
so it gets a real one, which is not shared with anything. Its clients' limit of five requests a
second is lifted: with it, five answers a second are all it gives.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp

from bench import population, processes
from bench.adapters import FRONT_PROXY
from bench.errors import BenchError
from bench.load import Load, Timing
from bench.processes import Child
from bench.promql import (
    AUTOSCALERS,
    FAST,
    GOAL,
    METRIC,
    Chain,
    asked,
    chain,
    headers,
    manifests,
    rhythm_name,
    rows_of,
)
from bench.queries import HEADERS
from bench.report import Goal, Row, Unit
from bench.rounds import alternately
from testbed.api_server import ApiServerProcesses, free_port
from testbed.binaries import PROGRAMS, binary
from testbed.cluster.pki import FRONT_PROXY_AUTHORITY, Certificate
from testbed.promql_servers import Name

NAME: Final = "prometheus-adapter"
BACKEND: Final[Name] = "prometheus-3"
ROUNDS: Final = 3
# By pods, so that each load of the peer takes a few seconds.
REQUESTS: Final = {4: 800, 100: 200, 1000: 60}
START_SECONDS: Final = 60.0
# At a thousand pods it takes seconds for each.
ANSWER_SECONDS: Final = 30
# Requests that are under way at once while the pods are created.
_CREATED_AT_ONCE: Final = 16
_UNTHROTTLED: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A running prometheus-adapter, asked as the API server asks it."""

    child: Child
    client: aiohttp.ClientSession
    url: str
    identity: Certificate

    async def answered(self, pool: int) -> Timing:
        """Return how it answers twenty autoscalers that ask about a pool."""
        load = Load(
            connections=AUTOSCALERS, requests=REQUESTS[pool], headers=HEADERS,
            identity=self.identity, timeout_seconds=ANSWER_SECONDS,
        )  # fmt: skip
        return await load.on(self.url + population.path(pool, METRIC))

    async def values(self, pool: int) -> int:
        """Return how many pods of a pool have a value; 0 while it does not answer."""
        path = population.path(pool, METRIC)
        accept = headers() | {"Accept": "application/json"}
        async with self.client.get(path, headers=accept) as answer:
            return len((await answer.json())["items"]) if answer.status == 200 else 0


async def measure(folder: Path) -> list[Row]:
    """Return times, rates and queries of both."""
    await asyncio.to_thread(binary, NAME)
    title = f"{NAME} {PROGRAMS[NAME].version}"
    async with chain(BACKEND, folder) as ours, _peer(folder / NAME, ours) as peer:
        rows: list[Row] = []
        for pool in population.POOLS:
            rows += await _compared(f"{title}, {pool:,} pods", ours, peer, pool)
        rows += await _in_rhythm(title, ours, peer)
    return rows


async def _compared(name: str, ours: Chain, peer: Peer, pool: int) -> list[Row]:
    rounds = await alternately(ROUNDS, lambda: ours.by_rule(pool), lambda: peer.answered(pool))
    return rows_of(name, rounds)


async def _in_rhythm(title: str, ours: Chain, peer: Peer) -> list[Row]:
    times, queries = await ours.in_rhythm(FAST)
    peers, peers_queries = await asked(peer.client, FAST, ours.prometheus)
    name = rhythm_name(title, FAST)
    return [
        _row(f"{name}, p50", times.p50, peers.p50, Unit.MILLISECONDS),
        _row(f"{name}, p99", times.p99, peers.p99, Unit.MILLISECONDS),
        _row(f"{name}, per question", queries, peers_queries, Unit.QUERIES, GOAL),
    ]


def _row(figure: str, value: float, peer: float, unit: Unit, goal: Goal | None = None) -> Row:
    return Row(figure=figure, value=value, unit=unit, peer=peer, ratio=value / peer, goal=goal)


@asynccontextmanager
async def _peer(folder: Path, ours: Chain) -> AsyncIterator[Peer]:
    """Run prometheus-adapter with the rules and the Prometheus of ours."""
    with ApiServerProcesses(folder) as api:
        await _create_pods(api)
        serving = api.pki.issue(NAME, sans=["127.0.0.1"], client=False)
        identity = api.pki.issue(FRONT_PROXY, ca=FRONT_PROXY_AUTHORITY)
        port = free_port()
        kubeconfig = api.kubeconfig(api.admin)
        command = [
            str(binary(NAME)), f"--config={ours.rules}", f"--prometheus-url={ours.prometheus.url}",
            # The names of a thousand pods do not fit into the URL of a GET.
            "--prometheus-verb=POST", "--metrics-relist-interval=1m",
            f"--client-qps={_UNTHROTTLED}", f"--client-burst={_UNTHROTTLED}",
            f"--lister-kubeconfig={kubeconfig}", f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            # The API server here publishes the authority and the names, but not the headers.
            f"--requestheader-client-ca-file={api.pki.front_proxy_ca}",
            f"--requestheader-allowed-names={FRONT_PROXY}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--bind-address=127.0.0.1", f"--secure-port={port}",
            f"--tls-cert-file={serving.certificate}", f"--tls-private-key-file={serving.key}",
        ]  # fmt: skip
        url = f"https://127.0.0.1:{port}"
        connector = aiohttp.TCPConnector(ssl=_context(serving, identity), limit=AUTOSCALERS)
        async with (
            processes.program(NAME, command, folder) as child,
            aiohttp.ClientSession(url, connector=connector) as client,
        ):
            peer = Peer(child=child, client=client, url=url, identity=identity)
            await _complete(peer)
            yield peer


async def _complete(peer: Peer) -> None:
    """Wait until every pod has its value."""
    for pool in population.POOLS:

        async def complete(pool: int = pool) -> bool:
            return await peer.values(pool) == pool

        await processes.until(
            complete, what=f"{NAME}'s values of {pool} pods", seconds=START_SECONDS,
            child=peer.child,
        )  # fmt: skip


async def _create_pods(api: ApiServerProcesses) -> None:
    connector = aiohttp.TCPConnector(ssl=_context(api.admin, api.admin), limit=_CREATED_AT_ONCE)
    url = f"https://127.0.0.1:{api.port}"
    async with aiohttp.ClientSession(url, connector=connector) as client:
        namespace = {"metadata": {"name": population.NAMESPACE}}
        await _create(client, "/api/v1/namespaces", namespace)
        path = f"/api/v1/namespaces/{population.NAMESPACE}/pods"
        async with asyncio.TaskGroup() as group:
            for manifest in manifests():
                name = manifest["metadata"]["name"]
                group.create_task(_create(client, path, population.accepted(manifest)), name=name)


async def _create(client: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> None:
    async with client.post(path, json=body) as answer:
        if answer.status != 201:
            raise BenchError(f"POST {path}: {answer.status}: {(await answer.text())[:300]}")


def _context(server: Certificate, client: Certificate) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(server.authority))
    context.load_cert_chain(client.certificate, client.key)
    return context
