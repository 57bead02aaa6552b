"""The scale benchmark on a real API server: everything is there, and read with few rights."""

from pathlib import Path
from typing import Any

import pytest

from adapter.sources.discovery import selection
from bench import grid, kwok, scale
from bench.networks import BENCHMARKS
from bench.population import GPUS_PER_NODE, NAMESPACE
from slicewatch.kube.cache import PAGE_SIZE
from slicewatch.kube.client import ApiServer
from slicewatch.kube.configuration import connect
from slicewatch.kube.errors import ForbiddenError
from slicewatch.kube.objects import ENDPOINT_SLICE, NODE, POD, SECRET, Kind, Selection
from testbed import require
from testbed.binaries import Unavailable

pytestmark = pytest.mark.timeout(300)

NODES = 5
SECONDS = 3.0
EVERYTHING = Selection()
EXPORTERS = selection(grid.SERVICE, grid.EXPORTERS_NAMESPACE)


async def listed(
    server: ApiServer, kind: Kind[Any], chosen: Selection = EVERYTHING
) -> tuple[Any, ...]:
    page = await server.list(kind, chosen, limit=PAGE_SIZE)
    assert not page.more
    return page.objects


async def test_nodes_pods_and_endpoints_are_there_for_an_account_that_may_read_them_only(
    tmp_path: Path,
) -> None:
    try:
        async with kwok.cluster(NODES, 9400, tmp_path) as cluster:
            server = ApiServer(await connect(str(cluster.kubeconfig)))
            try:
                nodes, pods = await listed(server, NODE), await listed(server, POD)
                (piece,) = await listed(server, ENDPOINT_SLICE, EXPORTERS)
                with pytest.raises(ForbiddenError, match="slicewatch:slicewatch-adapter"):
                    await server.create(POD, {"metadata": {"name": "of-its-own"}}, NAMESPACE)
                with pytest.raises(ForbiddenError):
                    await server.list(SECRET, EVERYTHING, limit=PAGE_SIZE)
            finally:
                await server.close()
    except Unavailable as why:
        require.skip_or_fail(str(why))
    assert [node.status.allocatable["nvidia.com/gpu"] for node in nodes] == ["8"] * NODES
    assert {pod.spec.node_name for pod in pods} == {node.metadata.name for node in nodes}
    assert {pod.status.phase for pod in pods} == {"Running"}
    assert len({pod.status.pod_ip for pod in pods}) == len(pods) == NODES * GPUS_PER_NODE
    assert [one.addresses for one in piece.endpoints] == [
        (grid.address(node, BENCHMARKS),) for node in range(NODES)
    ]
    assert len(cluster.seconds) == 3


async def test_the_adapter_is_measured_there_as_on_prepared_pages(tmp_path: Path) -> None:
    """Whoever asks for a pool that has no values, or fewer than its pods, fails the measurement."""
    try:
        found = await scale.of_size(NODES, tmp_path, seconds=SECONDS, server=scale.Server.KWOK)
    except Unavailable as why:
        require.skip_or_fail(str(why))
    assert len(found.asked.seconds) == SECONDS * scale.REQUESTS_PER_SECOND
    assert found.made
    assert found.cores > 0.0
