"""A monitor that is killed, refused or left without an answer at any of its writes still converges.

Each test is a fault from its beginning to its end on a node of a real API server, with one request
of the monitor interrupted; the monitor is a process, its clock is fast.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from health import book, record
from health.book import CONFIG_MAP_NAME
from health.checks.model import Condition
from health.names import CORDONED, STATE
from health.source import FakeExporter
from slicewatch.catalog.power import TEMPERATURE
from slicewatch.catalog.readings.power import Temperature
from slicewatch.kube.client import ApiServer
from slicewatch.kube.errors import NotFoundError
from slicewatch.kube.nodes import WHOLE_NODE, WholeNode
from slicewatch.kube.objects import CONFIG_MAP
from slicewatch.service.tasks import background
from testbed import binaries, evidence
from testbed.api_server import ApiServerProcesses
from testbed.health import shipped
from testbed.health.bare_nodes import OTHERS_TAINT, BareNodes
from testbed.health.monitors import MonitorProcess, speaking
from testbed.health.relay import Asked, Interruption, Relay
from testbed.require import skip_or_fail

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SECONDS = 60.0
COOL = {TEMPERATURE: Temperature(celsius=40)}
WELL = (evidence.gpu(0, readings=COOL), evidence.gpu(1, readings=COOL))
LOST = (evidence.gpu(0, silent="gpu_is_lost", silent_seconds=60), WELL[1])
# What a monitor writes from its start to the end of a fault; heartbeats may come on top.
COURSE = [
    "record", "conditions",
    "budget", "cordon", "conditions", "event", "event",
    "uncordon", "budget", "conditions", "event", "event",
]  # fmt: skip
WRITES = len(COURSE)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareNodes]:
    try:
        for name in ("etcd", "kube-apiserver", "kubectl"):
            binaries.binary(name)
    except binaries.Unavailable as missing:
        skip_or_fail(str(missing))
    folder = tmp_path_factory.mktemp("health")
    with ApiServerProcesses(folder) as server:
        nodes = BareNodes(server, folder)
        nodes.apply_rights()
        yield nodes


@dataclass
class Episode:
    """A node with its exporter and its monitor, whose requests go through a relay."""

    name: str
    admin: ApiServer
    exporter: FakeExporter
    relay: Relay
    monitor: MonitorProcess

    async def node(self) -> WholeNode:
        return await self.admin.get(WHOLE_NODE, self.name)

    async def holds_slot(self) -> bool:
        try:
            kept = await self.admin.get(CONFIG_MAP, CONFIG_MAP_NAME, shipped.NAMESPACE)
        except NotFoundError:
            return False
        return self.name in book.read(kept.data).slots

    async def until(self, what: str, holds: Callable[[WholeNode], Awaitable[bool]]) -> WholeNode:
        """Wait; all the time, a cordon comes with our mark and nothing of others is touched."""
        async with asyncio.timeout(SECONDS):
            while True:
                node = await self.node()
                assert node.spec.unschedulable == (CORDONED in node.annotations), what
                assert node.spec.taints == (OTHERS_TAINT,)
                assert node.annotations["example.com/owner"] == "platform"
                assert node.metadata.labels["example.com/rack"] == "r7"
                if await holds(node):
                    return node
                await asyncio.sleep(0.05)

    async def in_service(self, node: WholeNode) -> bool:
        return (
            not node.spec.unschedulable
            and says(node, Condition.UNHEALTHY, "False")
            and STATE in node.annotations
            and not record.decode(node.annotations[STATE]).faults
            and not await self.holds_slot()
        )

    async def out_of_service(self, node: WholeNode) -> bool:
        return (
            node.spec.unschedulable
            and node.annotations[CORDONED].startswith("gpu_lost/")
            and says(node, Condition.UNHEALTHY, "True")
            and bool(record.decode(node.annotations[STATE]).faults)
            and await self.holds_slot()
        )


def says(node: WholeNode, condition: Condition, status: str) -> bool:
    found = node.condition(condition)
    return found is not None and found.status == status


@asynccontextmanager
async def episode(
    nodes: BareNodes, folder: Path, interruption: Interruption | None = None, at: int = 0
) -> AsyncIterator[Episode]:
    name = (await nodes.add_node()).metadata.name
    trust = ssl.create_default_context(cafile=str(nodes.server.pki.ca))
    relay = Relay(server=nodes.address, trust=trust, interrupt=interruption, at=at)
    exporter = FakeExporter(replace(evidence.evidence(WELL), node=name))
    path = folder / "evidence.sock"
    async with (
        nodes.client() as admin,
        relay.serving() as server,
        speaking(exporter, path),
    ):
        flags = [
            f"--kubeconfig={await nodes.monitor(name, server=server)}",
            f"--evidence-socket={path}", f"--namespace={shipped.NAMESPACE}",
            "--listen=127.0.0.1:0", "--good-polls=2", "--boot-grace=0",
        ]  # fmt: skip
        monitor = MonitorProcess(flags, {"NODE_NAME": name})
        relay.die = monitor.kill
        async with background(("monitor", monitor.run())):
            yield Episode(name, admin, exporter, relay, monitor)


async def through_a_fault(one: Episode, ends: Callable[[], bool]) -> None:
    """Let a GPU fail and recover; events are written last, and nothing tells that they are."""

    async def over(_: WholeNode) -> bool:
        return ends()

    await one.until("in service at first", one.in_service)
    one.exporter.state = replace(one.exporter.state, gpus=LOST)
    await one.until("out of service", one.out_of_service)
    one.exporter.state = replace(one.exporter.state, gpus=WELL)
    node = await one.until("in service again", one.in_service)
    others = {c.type for c in node.status.conditions} - set(Condition)
    assert others == {"Ready", "DiskPressure"}
    await one.until("the last write", over)


def course(asked: list[Asked], name: str) -> list[str]:
    """Return what was written, in words; the node's spec and annotations are one of three."""
    spec = iter(("record", "cordon", "uncordon"))
    words = {name: "node", "status": "conditions", "events": "event"}
    last = [one.path.rpartition("/")[2] for one in asked]
    named = [words.get(one, "budget") for one in last]
    return [next(spec) if one == "node" else one for one in named]


async def test_a_fault_takes_few_writes_and_the_budget_frames_the_cordon(
    nodes: BareNodes, tmp_path: Path
) -> None:
    async with episode(nodes, tmp_path) as one:
        events = COURSE.count("event")
        await through_a_fault(
            one, lambda: course(one.relay.writes, one.name).count("event") >= events
        )
        written = list(one.relay.writes)
        assert one.monitor.starts == 1
    assert {asked.status // 100 for asked in written} == {2}
    conditions = [word for word in course(written, one.name) if word == "conditions"]
    heartbeats = len(conditions) - COURSE.count("conditions")
    assert 0 <= heartbeats <= 1
    others = [word for word in course(written, one.name) if word != "conditions"]
    assert others == [word for word in COURSE if word != "conditions"]


@pytest.mark.parametrize("at", range(1, WRITES + 1))
@pytest.mark.parametrize("interruption", Interruption)
async def test_a_monitor_converges_when_interrupted(
    nodes: BareNodes, tmp_path: Path, interruption: Interruption, at: int
) -> None:
    async with episode(nodes, tmp_path, interruption, at) as one:
        starts = 1 + (interruption is Interruption.FATAL)
        await through_a_fault(
            one, lambda: len(one.relay.writes) >= at and one.monitor.starts == starts
        )
