"""The monitor as a process, between an exporter process of a simulated node and an API server."""

import asyncio
import signal
import sys
import tarfile
from contextlib import asynccontextmanager

import pytest

from health import names
from health.checks.model import Condition
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.nodes import WHOLE_NODE
from slicewatch.service.server import Address, serving
from testbed import kube_server
from testbed.api_server import kubeconfig
from tests.integration.processes import ROOT, Process, exporter

pytestmark = pytest.mark.timeout(120)

DEADLINE_SECONDS = 60
SCENARIO = """
seed: monitored
nodes: [{name: n, gpus: [{model: H100-80GB, count: 2}]}]
faults: [{kind: lost, node: n, gpu: 1, at: 15s, for: 1h}]
"""


class Node:
    """A node whose GPU 1 is lost, its exporter, and the API server that knows it."""

    def __init__(self, folder, kube, address):
        self.folder, self.kube, self.address = folder, kube, address
        self.socket = folder / "evidence.sock"
        self.config = folder / "kubeconfig"
        self.config.write_text(kubeconfig(f"http://{address}", {"token": "any"}))

    async def exporter(self):
        scenario = self.folder / "scenario.yaml"
        scenario.write_text(SCENARIO)
        return await asyncio.to_thread(
            exporter, "--simulate", str(scenario), "--kubelet-socket", "",
            "--evidence-socket", str(self.socket), "--node-name", "n",
        )  # fmt: skip

    async def monitor(self, *arguments):
        command = [
            sys.executable, "-m", "cli", "health", "--node-name=n", "--listen=127.0.0.1:0",
            f"--kubeconfig={self.config}", f"--evidence-socket={self.socket}",
            "--namespace=monitoring", "--check-interval=5s", *arguments,
        ]  # fmt: skip
        announced = r'"address": "([^"]+)".*"event": "serving"'
        return await asyncio.to_thread(Process, command, announced)

    async def slicewatch(self, *arguments):
        done = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "cli", *arguments, cwd=ROOT,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        out, _ = await done.communicate()
        return done.returncode, out.decode()

    async def until(self, holds):
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not holds(node := await self.kube.get(WHOLE_NODE, "n")):
                await asyncio.to_thread(lambda: None)
        return node


def is_unhealthy(node):
    said = node.condition(Condition.UNHEALTHY)
    return said is not None and said.status == "True"


@asynccontextmanager
async def ending(process):
    try:
        yield process
    finally:
        await asyncio.to_thread(process.end)


@pytest.fixture
async def node(tmp_path):
    kube = FakeKube()
    await kube.create(WHOLE_NODE, {"metadata": {"name": "n"}})
    async with serving(kube_server.app(kube), Address("127.0.0.1", 0)) as address:
        yield Node(tmp_path, kube, address)


async def test_a_lost_gpu_cordons_its_node_and_the_end_of_the_monitor_changes_nothing(node):
    async with ending(await node.exporter()), ending(await node.monitor()) as monitor:
        cordoned = await node.until(lambda found: found.spec.unschedulable)
        assert cordoned.annotations[names.CORDONED].startswith("gpu_lost/")
        unhealthy = await node.until(is_unhealthy)
        assert "GPU 1" in unhealthy.condition(Condition.UNHEALTHY).message
        page = await asyncio.to_thread(monitor.get, "/metrics")
        assert 'gpu_health_check_state{check="gpu_lost",gpu="1",state="unhealthy"' in page
        code, text = await node.slicewatch(
            "health", "status", f"--kubeconfig={node.config}", "-n", "monitoring"
        )
        assert code == 1, text
        assert "n: cordoned by its monitor for gpu_lost" in text
        assert "slots held: 1" in text
        archive = node.folder / "gpu-1.tar.gz"
        code, text = await node.slicewatch(
            "health", "evidence", f"--socket={node.socket}", f"--output={archive}", "--gpu=1"
        )
        assert code == 0, text
        with tarfile.open(archive) as written:
            assert "gpu-1/gpu-1.json" in written.getnames()
        monitor.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(monitor.process.wait, 20) == 0
    left = await node.kube.get(WHOLE_NODE, "n")
    assert left.spec.unschedulable
    assert names.CORDONED in left.annotations
    assert is_unhealthy(left)


async def test_without_an_exporter_nothing_is_assumed(node):
    async with ending(await node.monitor()) as monitor:
        await asyncio.to_thread(monitor.wait_for, r"there is no socket")
        found = await node.kube.get(WHOLE_NODE, "n")
        assert not found.spec.unschedulable
        assert await asyncio.to_thread(monitor.get, "/livez") == "ok\n"


async def test_a_dry_run_writes_nothing(node):
    before = await node.kube.get(WHOLE_NODE, "n")
    async with ending(await node.exporter()), ending(await node.monitor("--dry-run")) as monitor:
        await asyncio.to_thread(
            monitor.wait_for,
            r"dry run: not written.*unschedulable|unschedulable.*dry run: not written",
        )
        assert await node.kube.get(WHOLE_NODE, "n") == before
