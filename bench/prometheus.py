"""A Prometheus that scrapes the pods of the benchmark: the exporters' own pages, once a second.

What a node shows is what its exporter would show to users who chose the one metric that their
autoscalers need, under dcgm-exporter's name as well. The pages are rendered once: to a query it
does not matter whether values change, and rendering them would take the core that is measured.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from bench import population
from bench.errors import BenchError
from bench.peer import static
from bench.programs.exporter_fleet import layout_of, snapshot
from bench.programs.static_server import Page
from exporter.families import chosen
from exporter.publication import Publication
from slicewatch.catalog import CATALOG
from slicewatch.catalog.dcgm import HostLabel
from slicewatch.service.exposition import Format
from testbed import promql_servers
from testbed.binaries import binary
from testbed.promql_servers import Name

SCRAPE_SECONDS: Final = 1
NAMES: Final[tuple[Name, ...]] = ("prometheus-2", "prometheus-3")
_HANDLER: Final = "/api/v1/query"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """A running Prometheus.

    Attributes:
        url: of its API, without ``/api/v1``.
        version: what it says of itself, without what a distribution adds.
    """

    url: str
    version: str
    client: aiohttp.ClientSession

    async def queries(self) -> int:
        """Return how many instant queries it has answered or refused since its start."""
        async with self.client.get(f"{self.url}/metrics") as answer:
            return instant_queries(await answer.text())


def instant_queries(page: str) -> int:
    """Return the instant queries that a page of Prometheus about itself counts.

    Raises:
        BenchError: it counts none: not even the one that its start was waited for with.
    """
    counted = [
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == "prometheus_http_requests_total"
        and sample.labels["handler"].endswith(_HANDLER)
    ]
    if not sum(counted):
        raise BenchError(f"Prometheus counts no requests to {_HANDLER} on its own page")
    return int(sum(counted))


@asynccontextmanager
async def prometheus(name: Name, folder: Path) -> AsyncIterator[Prometheus]:
    """Run a Prometheus that scrapes the pages of all nodes.

    Raises:
        Unavailable: this machine has none of this version.
        BenchError: it does not start.
    """
    if name == "prometheus-3":
        # The first time it is built, for minutes.
        await asyncio.to_thread(binary, "prometheus")
    async with (
        static(pages(), folder) as exporters,
        aiohttp.ClientSession() as client,
        AsyncExitStack() as stack,
    ):
        configuration = scrapes(exporters.removeprefix("http://"))
        try:
            started = stack.enter_context(promql_servers.configured(name, configuration, folder))
        except AssertionError as error:
            raise BenchError(str(error)) from error
        version = await _version(client, started.url)
        yield Prometheus(url=started.url, version=version, client=client)


async def _version(client: aiohttp.ClientSession, url: str) -> str:
    async with client.get(f"{url}/api/v1/status/buildinfo") as answer:
        said = msgspec.json.decode(await answer.read(), type=_BuildInfo)
    return said.data["version"].partition("+")[0]


class _BuildInfo(msgspec.Struct):
    """What it says of its build."""

    data: dict[str, str]


def pages() -> dict[str, Page]:
    """Return what the exporter of each node shows, by path."""
    families = chosen(tuple(CATALOG), [population.METRIC])
    headers = {"Content-Type": Format.TEXT.value, "Content-Encoding": "gzip"}
    shown = {}
    for number, pods in enumerate(population.by_node()):
        dice = random.Random(number)  # noqa: S311 - values of a benchmark, the same in every run
        publication = Publication(families, lambda _: b"", aliases=HostLabel.CAPITAL)
        publication.publish(layout_of(number, pods), snapshot(1, dice))
        body = publication.exposition(Format.TEXT, compressed=True)
        shown[_path(number)] = Page(body=body, headers=headers)
    return shown


def scrapes(address: str) -> str:
    """Return a configuration that scrapes every node's page at one address."""
    targets = [
        {
            "targets": [address],
            "labels": {
                "__metrics_path__": _path(number), "instance": population.node_name(number),
            },
        }
        for number in range(len(population.by_node()))
    ]  # fmt: skip
    job = {
        "job_name": "exporters",
        "scrape_interval": f"{SCRAPE_SECONDS}s",
        "scrape_timeout": f"{SCRAPE_SECONDS}s",
        # As users of prometheus-adapter have it: a pod's name is that of the workload.
        "honor_labels": True,
        "static_configs": targets,
    }
    # What is JSON is YAML.
    return msgspec.json.encode({"scrape_configs": [job]}).decode()


def _path(number: int) -> str:
    return f"/{number}/metrics"
