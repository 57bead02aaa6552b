"""Every query of every dashboard on real Prometheus servers that scrape real processes.

What kube-state-metrics would show is a page of text here, since it cannot be had; all else is what
exporters, adapters and a health monitor show of a fleet with every kind of GPU.
"""

import asyncio
import json
import os
import re
import ssl
import sys
import urllib.parse
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import yaml

from alerts.files import rule_file
from alerts.index import GROUPS
from dashboards.index import DASHBOARDS, filled
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.nodes import WHOLE_NODE
from slicewatch.kube.objects import CONFIG_MAP, POD
from slicewatch.service.server import Address, serving
from testbed import fleet, kube_server
from testbed.adapter_process import ExporterStub, World, authentication
from testbed.adapter_process import running as adapter
from testbed.api_server import free_port
from testbed.binaries import Unavailable
from testbed.cluster.pki import Pki
from testbed.observed import previews
from testbed.promql_servers import Page, configured
from testbed.require import skip_or_fail
from testbed.scripted_prometheus import ScriptedPrometheus, failure, success
from tests.integration.processes import ROOT
from tests.integration.test_health_process import Node, ending

pytestmark = pytest.mark.timeout(300)

# Where pictures of the dashboards go, for the docs.
PREVIEWS = os.environ.get("SLICEWATCH_PREVIEWS", "")
DEADLINE_SECONDS = 120
SCENARIO = ROOT / "testbed" / "observed" / "scenario.yaml"
RULES = """
rules:
- seriesQuery: queue_depth
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
"""
HPA = 'namespace="inference",horizontalpodautoscaler="chat"'
KUBE_STATE_METRICS = f"""
kube_horizontalpodautoscaler_spec_target_metric{{{HPA},metric_name="gpu_utilization",metric_target_type="average"}} 70
kube_horizontalpodautoscaler_spec_min_replicas{{{HPA}}} 2
kube_horizontalpodautoscaler_spec_max_replicas{{{HPA}}} 20
kube_horizontalpodautoscaler_status_current_replicas{{{HPA}}} 3
kube_horizontalpodautoscaler_status_desired_replicas{{{HPA}}} 4
kube_horizontalpodautoscaler_status_condition{{{HPA},condition="ScalingActive",status="false"}} 0
"""
QUERIES = [
    (f"{board.name}: {panel.title}: {number}", query.expr)
    for board in DASHBOARDS
    for panel in board.panels
    for number, query in enumerate(panel.queries)
]


@asynccontextmanager
async def demo():
    """Exporters of the scenario and their adapter; yields addresses and what to ask for."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cli", "demo", "--simulated", f"--scenario={SCENARIO}",
        f"--port={port}", cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        text = ""
        async with asyncio.timeout(60):
            while "What a HorizontalPodAutoscaler gets" not in text or "v1beta2'" not in text:
                text += (await process.stdout.readline()).decode()
        nodes = dict(re.findall(r"http://(\S+)/ +exporter of (\S+)", text))
        (plain,) = re.findall(r"http://(\S+)/ +the whole fleet", text)
        yield nodes, plain, re.findall(r"--cert (\S+) '(https://[^']+)'", text)
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def monitored(folder):
    """A health monitor, with its exporter, of a node whose GPU is lost."""
    kube = FakeKube()
    await kube.create(WHOLE_NODE, {"metadata": {"name": "n"}})
    async with serving(kube_server.app(kube), Address("127.0.0.1", 0)) as address:
        node = Node(folder, kube, address)
        async with ending(await node.exporter()) as exporter, ending(await node.monitor()) as own:
            yield exporter.address, own.address


def broken(asked):
    """Name a series, and fail to give its values."""
    if asked.path.endswith("/series"):
        return success([{"__name__": "queue_depth", "namespace": "ml", "pod": "web-a"}])
    return failure(500, "internal", "out of order")


@asynccontextmanager
async def with_rules(folder):
    """An adapter with a rule on a backend that has names and no values."""
    (folder / "rules.yaml").write_text(RULES)
    world = World(kube=FakeKube(), exporter=ExporterStub(), pki=Pki(folder / "pki"))
    await world.kube.create(CONFIG_MAP, authentication(world.pki), "kube-system")
    await world.kube.create(POD, fleet.pod_json("web-a"), "ml")
    backend = ScriptedPrometheus()
    backend.say = broken
    async with backend.serving():
        flags = (f"--rules-files={folder / 'rules.yaml'}", f"--prometheus-url={backend.url}")
        async with adapter(world, folder, *flags):
            yield world


async def ask_on(requests, world):
    """Ask as autoscalers do, for what there is and for what there is not."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    trusting.load_cert_chain(requests[0][0])
    paths = [url for _, url in requests]
    base = paths[0].partition("/apis/")[0] + "/apis/custom.metrics.k8s.io/v1beta2/namespaces/"
    paths += [
        f"{base}batch/pods/*/gpu_memory_used_bytes",
        f"{base}vision/pods/*/gpu_power_usage_watts",
    ]
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as client,
        world.client() as other,
    ):
        while True:
            for path in paths:
                async with client.get(path):
                    pass
            rule = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ml/pods/*/queue_depth"
            async with other.get(rule):
                pass
            # Its only exporter goes and comes back.
            world.exporter.talks = not world.exporter.talks
            await asyncio.sleep(1)


def configuration(jobs, folder):
    for group in GROUPS:
        document = yaml.safe_load(rule_file(group))
        document["groups"][0]["interval"] = "2s"
        (folder / f"{group.name}.rules").write_text(yaml.safe_dump(document))
    scrapes = [
        {
            "job_name": f"{job}",
            "honor_labels": True,
            "static_configs": [
                {"targets": [address], "labels": {"node": node} if node else {}}
                for address, node in targets
            ],
        }
        for job, targets in jobs.items()
    ]
    return yaml.safe_dump({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "2s"},
        "rule_files": [str(folder / "*.rules")],
        "scrape_configs": scrapes,
    })  # fmt: skip


class Answers:
    """Which queries have had a result."""

    def __init__(self, url, client):
        self.url, self.client = url, client
        self.without = dict(QUERIES)
        self.refused = {}

    async def look(self):
        uuids = [s["uuid"] for s in await self._series("count by (uuid) (gpu_up)")] or ["none"]
        for name, expr in list(self.without.items()):
            for uuid in uuids if "$uuid" in expr else [""]:
                if await self._series(filled(expr, {"uuid": uuid} if uuid else {}), name):
                    self.without.pop(name)
                    break

    async def busiest(self):
        (found,) = await self._series('topk(1, gpu_utilization{gpu_instance=""})')
        return found

    async def _series(self, expr, name=""):
        query = urllib.parse.urlencode({"query": expr})
        async with self.client.get(f"{self.url}/api/v1/query?{query}") as answer:
            said = json.loads(await answer.read())
        if said["status"] != "success":
            self.refused[name] = said["error"]
            return []
        return [one["metric"] for one in said["data"]["result"]]


@pytest.mark.parametrize("version", ["prometheus-2", "prometheus-3"])
async def test_every_query_is_understood_and_has_a_result(version, tmp_path):
    for name in ("node", "rules", "server"):
        (tmp_path / name).mkdir()
    async with AsyncExitStack() as stack:
        nodes, plain, requests = await stack.enter_async_context(demo())
        exporter, monitor = await stack.enter_async_context(monitored(tmp_path / "node"))
        world = await stack.enter_async_context(with_rules(tmp_path / "rules"))
        page = stack.enter_context(Page(KUBE_STATE_METRICS).serving())
        asking = asyncio.ensure_future(ask_on(requests, world))
        stack.callback(asking.cancel)
        jobs = {
            "slicewatch-exporter": [*nodes.items(), (exporter, "n")],
            "slicewatch-adapter": [(plain, ""), (world.plain.removeprefix("http://"), "")],
            "slicewatch-health": [(monitor, "n")],
            "kube-state-metrics": [(page, "")],
        }
        try:
            text = configuration(jobs, tmp_path / "server")
            server = stack.enter_context(configured(version, text, tmp_path / "server"))
        except Unavailable as reason:
            skip_or_fail(str(reason))
        client = await stack.enter_async_context(aiohttp.ClientSession())
        answers = Answers(server.url, client)
        deadline = asyncio.get_running_loop().time() + DEADLINE_SECONDS
        while answers.without and asyncio.get_running_loop().time() < deadline:
            await answers.look()
            await asyncio.sleep(1)
        assert not asking.done(), asking.exception()
        if PREVIEWS:
            found = await answers.busiest()
            chosen = {"uuid": found["uuid"], "node": found["node"]}
            await previews.draw(server.url, Path(PREVIEWS), **chosen)
    assert answers.refused == {}
    assert answers.without == {}
