"""The streams of many exporters, for an adapter to follow: a line a second from every node.

The values are made up, the frames are whole ones: every column of a real node, all of them
changing, and each node at its own moment of the second.
"""

import asyncio
import random
import sys
from typing import Final

import uvloop
from aiohttp import web

from bench import population
from bench.population import CONTAINER, GPUS_PER_NODE, NAMESPACE, Placed, gpu_uuid, node_name
from exporter.measure.row import METRICS, WINDOWED
from simulator import identity
from slicewatch.wire.layout import Device, Layout, Tenant
from slicewatch.wire.snapshot import Column, Frame, Snapshot, encode, narrowed

TICK_SECONDS: Final = 1.0
WINDOW_SECONDS: Final = 15.0
_RUN: Final = "bench"


def layout_of(number: int, pods: list[Placed]) -> Layout:
    """Return who is on a node: its GPUs, and a pod on each that has one."""
    name = node_name(number)
    return Layout(
        run=_RUN, number=1, node=name, driver="580.95.05", window_seconds=WINDOW_SECONDS,
        devices=tuple(
            Device(
                uuid=gpu_uuid(number, gpu), gpu=gpu, minor=gpu,
                model="NVIDIA H100 80GB HBM3", pci_bus_id=identity.pci_bus_id(gpu),
            )
            for gpu in range(GPUS_PER_NODE)
        ),
        tenants=tuple(
            Tenant(
                device=pod.gpu_uuid, namespace=NAMESPACE, pod=pod.name, container=CONTAINER,
                resource="nvidia.com/gpu",
            )
            for pod in pods
        ),
        tenants_known=True,
    )  # fmt: skip


def snapshot(sequence: int, dice: random.Random) -> Snapshot:
    """Return a tick in which everything has a new value."""

    def column() -> Column:
        return [dice.uniform(1.0, 99.0) for _ in range(GPUS_PER_NODE)]

    return Snapshot(
        run=_RUN, layout=1, sequence=sequence,
        up=[True] * GPUS_PER_NODE,
        ages=[dice.uniform(0.001, 0.01) for _ in range(GPUS_PER_NODE)],
        values={metric.name: column() for metric in METRICS},
        means={metric.name: column() for metric in WINDOWED},
        tenants_age=1.0,
    )  # fmt: skip


async def stream(request: web.Request) -> web.StreamResponse:
    """Write a line a second, of the families that the reader wants, until it leaves."""
    families = request.query["families"].split(",")
    number = int(request.match_info["node"])
    nodes = population.by_node()
    layout: Layout | None = layout_of(number, nodes[number])
    dice = random.Random(number)  # noqa: S311 - values of a benchmark, the same in every run
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    await response.prepare(request)
    loop = asyncio.get_running_loop()
    phase = number / len(nodes) * TICK_SECONDS
    sequence = 0
    while True:
        sequence += 1
        shown = narrowed(snapshot(sequence, dice), families)
        await response.write(encode(Frame(layout=layout, snapshot=shown)))
        layout = None
        await asyncio.sleep(TICK_SECONDS - (loop.time() - phase) % TICK_SECONDS)


async def serve(port: int) -> None:
    """Serve until standard input ends, which it does with whoever started this."""
    app = web.Application()
    app.router.add_get("/{node}/snapshot", stream)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        await asyncio.to_thread(sys.stdin.buffer.read)
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        loop.run(serve(int(sys.argv[1])))
