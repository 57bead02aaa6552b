"""A node to run the exporter on: simulated GPUs behind the C library, and a kubelet that answers.

Everything on the way from the driver's interface to the exporter's port is the product's own.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from bench import processes
from bench.crowd import Crowd
from bench.errors import BenchError
from bench.processes import Child
from bench.programs.counted_exporter import PROC, TICK_SECONDS
from bench.programs.static_server import Page
from exporter.tenants.fake import FakeKubelet
from exporter.tenants.protocol import Allocation
from simulator.clock import RealTimeClock
from simulator.fleet import Fleet
from simulator.node import SimulatedNode
from slicewatch.wire.snapshot import decode
from testbed.api_server import free_port
from testbed.driver import build
from testbed.driver.feeder import DriverFeed

START_SECONDS: Final = 20.0
# As many as by default, whatever the tick: a window of more ticks costs more.
WINDOW_TICKS: Final = 15

# As Prometheus 3 asks by default.
ACCEPT: Final = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The machine as the exporter finds it.

    Attributes:
        environment: variables with which a process finds this driver.
        kubelet: the one that answers the exporter.
        crowd: the processes of its pods; None where nothing is known of them.
    """

    simulated: SimulatedNode
    environment: dict[str, str]
    kubelet: FakeKubelet
    crowd: Crowd | None = None

    def flags(self, port: int, tick_seconds: float) -> list[str]:
        """Return the flags of an exporter of this node; what is not named here is the default."""
        return [
            f"--listen=127.0.0.1:{port}",
            f"--node-name={self.simulated.name}",
            f"--kubelet-socket={self.kubelet.socket}",
            f"--tick-seconds={tick_seconds:g}",
            f"--window-seconds={WINDOW_TICKS * tick_seconds:g}",
            *([f"--container-links={self.crowd.links}"] if self.crowd else ()),
        ]

    def variables(self, tick_seconds: float) -> dict[str, str]:
        """Return the variables of an exporter of this node, and of its peers."""
        found = self.environment | {TICK_SECONDS: f"{tick_seconds:g}"}
        return found if self.crowd is None else found | {PROC: str(self.crowd.proc)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """A running exporter process."""

    child: Child
    url: str

    async def ticks(self, client: aiohttp.ClientSession) -> int:
        """Return how many snapshots it has published; 0 before the first."""
        async with client.get(f"{self.url}/snapshot") as answer:
            if answer.status != 200:
                return 0
            return decode(await answer.read()).snapshot.sequence

    async def ready(self, client: aiohttp.ClientSession) -> bool:
        """Tell whether it reads devices and knows who holds them."""
        async with client.get(f"{self.url}/snapshot") as answer:
            if answer.status != 200:
                return False
            frame = decode(await answer.read())
        layout = frame.layout
        return layout is not None and bool(layout.tenants) and all(frame.snapshot.up)

    async def follow(self, client: aiohttp.ClientSession) -> None:
        """Read the stream as an adapter does, until cancelled."""
        async with client.get(f"{self.url}/snapshot?watch=true") as stream:
            async for _ in stream.content.iter_any():
                pass

    async def page(self, client: aiohttp.ClientSession, *, encoding: str) -> Page:
        """Return ``/metrics`` as a scraper gets it, not decoded.

        Raises:
            BenchError: it is refused.
        """
        headers = {"Accept": ACCEPT, "Accept-Encoding": encoding}
        url = f"{self.url}/metrics"
        async with client.get(url, headers=headers, auto_decompress=False) as answer:
            if answer.status != 200:
                raise BenchError(f"GET {url}: {answer.status}")
            kept = {name: answer.headers[name] for name in _KEPT if name in answer.headers}
            return Page(body=await answer.read(), headers=kept)


_KEPT: Final = ("Content-Type", "Content-Encoding", "Vary")


@asynccontextmanager
async def node(
    fleet: Fleet, folder: Path, *, moving: bool = True, crowd: Crowd | None = None
) -> AsyncIterator[Node]:
    """Let the first node of a fleet run, with its driver's file and its kubelet.

    Args:
        fleet: on a clock that runs by itself.
        folder: for the driver's file and the kubelet's socket.
        moving: refresh the driver's file all the time, which takes a sixth of a core; otherwise
            every read finds the same values.
        crowd: the processes of the pods.

    Raises:
        Unavailable: the driver cannot be built here.
    """
    simulated = fleet.nodes[0]
    state, kubelet = folder / "nvml-state", FakeKubelet(folder / "kubelet.sock")
    kubelet.give(
        Allocation(
            namespace=held.namespace, pod=held.pod, container=held.container,
            resource=held.resource, device_id=device_id,
        )
        for held in fleet.truth.allocations(simulated.name, fleet.now)
        for device_id in held.device_ids
    )  # fmt: skip
    feed = DriverFeed(simulated, state)
    async with kubelet:
        with feed if moving else nullcontext():
            yield Node(
                simulated=simulated,
                environment=build.environment(state),
                kubelet=kubelet,
                crowd=crowd,
            )


def dense() -> Fleet:
    """Return the fleet with as many devices as a node can have: 8 GPUs of 7 MIG instances."""
    return Fleet.named("dense_mig", clock=RealTimeClock())


@asynccontextmanager
async def exporter(
    of: Node, folder: Path, client: aiohttp.ClientSession, *, tick_seconds: float,
    program: tuple[str, ...] = ("cli", "exporter"),
) -> AsyncIterator[Exporter]:  # fmt: skip
    """Run an exporter process of a node until the body ends; ready when it begins."""
    port = free_port()
    arguments = [*program, *of.flags(port, tick_seconds)]
    variables = of.variables(tick_seconds)
    async with processes.running("exporter", arguments, folder, variables) as child:
        running = Exporter(child=child, url=f"http://127.0.0.1:{port}")
        await processes.until(
            lambda: running.ready(client),
            what="an exporter that knows its devices and tenants",
            seconds=START_SECONDS,
            child=child,
        )
        yield running
