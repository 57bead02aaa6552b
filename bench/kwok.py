"""A cluster of ``bench.grid`` on a real kube-apiserver with its etcd; kwok plays nodes and pods.

What the adapter lists and watches there was created, admitted, stored and changed as everywhere,
and it is read with the token of a service account that has the rights of the guide and no others.
Nothing of it is aggregated: who asks for metrics is still the benchmark, as the front proxy.
"""

import asyncio
import json
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

import msgspec

from bench import grid, networks, population, processes
from bench.errors import BenchError
from bench.population import GPUS_PER_NODE, NAMESPACE
from bench.processes import Child
from slicewatch.kube.cache import PAGE_SIZE
from slicewatch.kube.client import ApiServer
from slicewatch.kube.configuration import connect
from slicewatch.kube.nodes import WHOLE_NODE
from slicewatch.kube.objects import ENDPOINT_SLICE, NODE, POD, Kind, O, Selection
from testbed.api_server import ApiServerProcesses, kubeconfig
from testbed.binaries import binary
from testbed.chain import manifests
from testbed.chain.replicas import of_guide

PROGRAMS: Final = ("etcd", "kube-apiserver", "kubectl", "kwok")
STAGES: Final = Path(__file__).with_name("kwok.yaml")
BUILD_SECONDS: Final = 1800.0
COMMAND_SECONDS: Final = 60.0
# More only wait for one another: the API server and etcd share the machine with the benchmark.
CREATED_AT_ONCE: Final = 16
_NODE_ADDRESS: Final = IPv4Address("192.0.2.1")
_POD_ADDRESSES: Final = "10.128.0.0/12"
_NOT_RUNNING: Final = f"{POD.path()}?fieldSelector=status.phase%21%3DRunning&limit=1"

Manifest = dict[str, Any]


class _Some(msgspec.Struct, frozen=True):
    """A list of which only matters whether there is anything in it."""

    items: tuple[msgspec.Raw, ...] = ()


@asynccontextmanager
async def cluster(nodes: int, exporters_port: int, folder: Path) -> AsyncIterator[grid.Cluster]:
    """Run a cluster while the body runs, in a network in which every exporter has an address.

    Raises:
        Unavailable: a program is neither here nor can it be built, or this user is not root.
        BenchError: it does not come to be within ``BUILD_SECONDS``.
        ClusterError: the API server does not start.
        KubeError: the API server refuses something.
    """
    for name in PROGRAMS:
        await asyncio.to_thread(binary, name)
    place = folder / "api-server"
    place.mkdir()
    with networks.own(), ApiServerProcesses(place) as server:
        admin = server.kubeconfig(server.admin)
        _apply_rights(admin, place)
        async with processes.program("kwok", _command(admin), folder) as kwok:
            seconds: dict[str, float] = {}
            async with _client(admin) as client:
                await _populate(client, nodes, exporters_port, kwok, seconds)
            config = _of_account(server, admin, folder)
            async with _client(config) as client:
                await _listed(client, nodes, seconds)
            yield grid.Cluster(kubeconfig=config, seconds=seconds)


def _command(admin: Path) -> list[str]:
    return [
        str(binary("kwok")), f"--kubeconfig={admin}", f"--config={STAGES}", "--manage-all-nodes",
        f"--cidr={_POD_ADDRESSES}", f"--node-ip={_NODE_ADDRESS}",
    ]  # fmt: skip


@asynccontextmanager
async def _client(config: Path) -> AsyncIterator[ApiServer]:
    server = ApiServer(await connect(str(config)))
    try:
        yield server
    finally:
        await server.close()


def _apply_rights(admin: Path, folder: Path) -> None:
    """Apply what the guide tells users to, but for the APIServices: there is no way back here."""
    spaces = [manifests.namespace(name) for name in (grid.EXPORTERS_NAMESPACE, NAMESPACE)]
    rights = [one for one in of_guide() if one["kind"] != "APIService"]
    file = folder / "rights.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*spaces, *rights]}))
    _kubectl(admin, "apply", f"--filename={file}")


def _of_account(server: ApiServerProcesses, admin: Path, folder: Path) -> Path:
    """Return a kubeconfig of the adapter's service account, with a token for an hour."""
    token = _kubectl(
        admin, "create", "token", manifests.SERVICE, f"--namespace={manifests.NAMESPACE}",
        "--duration=1h",
    )  # fmt: skip
    file = folder / "adapter.kubeconfig"
    address = f"https://127.0.0.1:{server.port}"
    file.write_text(kubeconfig(address, {"token": token.strip()}, server.pki.ca))
    return file


def _kubectl(admin: Path, *arguments: str) -> str:
    command = [str(binary("kubectl")), f"--kubeconfig={admin}", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
    )
    if done.returncode:
        raise BenchError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


async def _populate(
    client: ApiServer, nodes: int, exporters_port: int, kwok: Child, seconds: dict[str, float]
) -> None:
    """Create everything, and return once kwok has brought it to life."""
    pods = (pod.manifest() for node in range(nodes) for pod in grid.pods_on(node, nodes))
    slices = grid.slices(nodes, exporters_port, networks.BENCHMARKS)
    try:
        async with asyncio.timeout(BUILD_SECONDS):
            with _timed("creating nodes and pods", seconds):
                await _create(client, NODE, map(grid.node_manifest, range(nodes)))
                await _create(client, POD, map(population.accepted, pods), NAMESPACE)
                await _create(client, ENDPOINT_SLICE, slices, grid.EXPORTERS_NAMESPACE)
            with _timed("from there until kwok runs all pods", seconds):
                await _alive(client, nodes, kwok)
    except TimeoutError as error:
        raise BenchError(
            f"{nodes:,} nodes and their pods do not run after {BUILD_SECONDS:g} s: "
            f"try fewer{kwok.tail()}"
        ) from error


async def _create(
    client: ApiServer, kind: Kind[O], bodies: Iterator[Manifest], namespace: str = ""
) -> None:
    """Create objects, so many at a time; the first that is refused ends it."""

    async def work() -> None:
        for body in bodies:
            await client.create(kind, body, namespace)

    async with asyncio.TaskGroup() as group:
        for _ in range(CREATED_AT_ONCE):
            group.create_task(work())


async def _alive(client: ApiServer, nodes: int, kwok: Child) -> None:
    async def running() -> bool:
        return not (await client.read(_NOT_RUNNING, _Some)).items

    async def ready() -> bool:
        found = [node.condition("Ready") for node in await _all(client, WHOLE_NODE)]
        return sum(one is not None and one.status == "True" for one in found) == nodes

    for attempt, what in ((running, "kwok to run all pods"), (ready, "the nodes to be Ready")):
        await processes.until(
            attempt, what=what, seconds=BUILD_SECONDS, child=kwok, every_seconds=0.5
        )


async def _listed(client: ApiServer, nodes: int, seconds: dict[str, float]) -> None:
    """List as the adapter does, and insist that everything is there.

    Raises:
        BenchError: it is not.
    """
    with _timed("listing nodes and pods as the adapter does", seconds):
        found = await _all(client, NODE)
        pods = await _all(client, POD)
    running = sum(pod.status.phase == "Running" for pod in pods)
    if (len(found), running) != (nodes, nodes * GPUS_PER_NODE):
        raise BenchError(f"of {nodes:,} nodes {len(found):,} exist, with {running:,} running pods")


async def _all(client: ApiServer, kind: Kind[O]) -> list[O]:
    page = await client.list(kind, Selection(), limit=PAGE_SIZE)
    found = list(page.objects)
    while page.more:
        page = await client.list(kind, Selection(), limit=PAGE_SIZE, more=page.more)
        found += page.objects
    return found


@contextmanager
def _timed(step: str, seconds: dict[str, float]) -> Iterator[None]:
    began = time.monotonic()
    yield
    seconds[step] = time.monotonic() - began
