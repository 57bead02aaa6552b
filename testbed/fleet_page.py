"""The fleet page over a fleet that is not there: ``python -m testbed.fleet_page --nodes 1000``.

Pools of several models, whole, partitioned and shared GPUs, loads that move; some nodes are silent,
cordoned or unhealthy. Only the page is served.
"""

import argparse
import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from adapter.cluster.pods import Pods
from adapter.fleet.fleet import Fleet
from adapter.fleet.page import FleetPage
from adapter.sources.fake import FakeSource
from adapter.sources.source import Target
from adapter.view import View
from slicewatch.kube.objects import Metadata, Node, NodeSaying, NodeSpec, NodeStatus
from slicewatch.service.server import Address, serving
from slicewatch.service.tasks import background
from slicewatch.wire.layout import Device, Tenant
from slicewatch.wire.snapshot import encode
from testbed import fleet

POOL_LABEL: Final = "nvidia.com/gpu.product"
POOLS: Final = ("A100-SXM4-80GB", "H100-80GB-HBM3", "H200", "L40S", "")
# Each node once in so long, a few at a time: the page is what is looked at, not this.
ROUND_SECONDS: Final = 10.0
STEP: Final = 5
GPUS: Final = 8
SILENT_EVERY, CORDONED_EVERY, UNHEALTHY_EVERY = 97, 61, 211


@dataclass(slots=True)
class Imagined:
    """A fleet of so many nodes.

    Attributes:
        source: what the page is made of.
    """

    nodes: int
    source: FakeSource = field(default_factory=FakeSource)
    _objects: dict[str, Node] = field(default_factory=dict)

    async def run(self) -> None:
        """Let the loads move, until cancelled."""
        while True:
            for number in range(self.nodes):
                if number % SILENT_EVERY:
                    self._send(number)
                if number % STEP == 0:
                    await asyncio.sleep(ROUND_SECONDS * STEP / self.nodes)

    @asynccontextmanager
    async def serving(self, address: Address) -> AsyncIterator[Address]:
        """Serve the page while the body runs."""
        for number in range(self.nodes):
            self._objects[f"gpu-{number:04}"] = _node(number)
            self._send(number)
        made = self._fleet()
        app = web.Application()
        FleetPage(made).add(app)
        tasks = background(("loads", self.run()), ("fleet", made.run()))
        async with tasks, serving(app, address) as at:
            yield at

    def _fleet(self) -> Fleet:
        view = View(Pods(), self.source, max_age_seconds=15.0)
        return Fleet(view, self._objects.get, pool_label=POOL_LABEL, pods_known=lambda: True)

    def _send(self, number: int) -> None:
        name = f"gpu-{number:04}"
        devices = list(_devices(name, number))
        now = asyncio.get_running_loop().time()
        busy: list[float | None] = [
            None
            if device.mig_enabled
            else 50 + 50 * math.sin(now / 60 + number * 0.7 + place * 1.3)
            for place, device in enumerate(devices)
        ]
        rows = fleet.layout(devices, list(_tenants(devices, number)), node=name)
        lost = number % UNHEALTHY_EVERY == 1
        up = [not (lost and device.gpu == 0) for device in devices]
        shot = fleet.snapshot(rows, {"gpu_utilization": busy}, up=up)
        self.source.receive(Target(f"http://{name}:9400"), encode(fleet.frame(rows, shot)))


def _node(number: int) -> Node:
    pool = POOLS[number % len(POOLS)]
    said = []
    if number % UNHEALTHY_EVERY == 1:
        said = [NodeSaying(type="GPUUnhealthy", status="True", message="GPU 0: it is lost")]
    return Node(
        metadata=Metadata(
            name=f"gpu-{number:04}", labels={POOL_LABEL: pool} if pool else {}
        ),
        spec=NodeSpec(unschedulable=number % CORDONED_EVERY == 2),
        status=NodeStatus(conditions=tuple(said)),
    )  # fmt: skip


def _devices(node: str, number: int) -> list[Device]:
    if POOLS[number % len(POOLS)] != "A100-SXM4-80GB":
        return [fleet.gpu(index, node=node) for index in range(GPUS)]
    found = []
    for index in range(GPUS):
        found.append(fleet.gpu(index, node=node, mig_enabled=True))
        found += [fleet.mig(index, part, node=node) for part in range(7)]
    return found


def _tenants(devices: list[Device], number: int) -> list[Tenant]:
    return [
        fleet.tenant(device.uuid, f"serve-{number}-{place}", namespace=f"team-{place % 5}")
        for place, device in enumerate(devices)
        if not device.mig_enabled and (place + number) % 4
    ]


async def _main(nodes: int, port: int) -> None:
    async with Imagined(nodes).serving(Address("127.0.0.1", port)) as address:
        print(f"http://{address}/ until Ctrl-C", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--port", type=int, default=9480)
    chosen = parser.parse_args()
    asyncio.run(_main(chosen.nodes, chosen.port))
