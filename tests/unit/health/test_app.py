"""The monitor as a whole: what it serves, on a fake cluster and beside a fake exporter."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from health.app import monitoring
from health.checks.index import CHECKS
from health.checks.model import Condition, Subject
from health.settings import HealthSettings
from health.source import FakeExporter, Silence
from slicewatch.catalog import health as catalog
from slicewatch.kube.errors import UnavailableError
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.nodes import WHOLE_NODE
from slicewatch.service.server import Address
from testbed import evidence

DEADLINE_SECONDS = 20


class Site:
    def __init__(self):
        self.kube = FakeKube()
        self.exporter = FakeExporter(evidence.evidence([evidence.gpu(0), evidence.gpu(1)]))

    @asynccontextmanager
    async def serving(self, **settings):
        known = HealthSettings(
            node_name="node-1", listen=Address("127.0.0.1", 0), check_interval=5.0, **settings
        )
        async with (
            monitoring(known, self.kube, self.exporter) as address,
            aiohttp.ClientSession(f"http://{address}") as session,
        ):
            yield session


@pytest.fixture
async def site():
    made = Site()
    await made.kube.create(WHOLE_NODE, {"metadata": {"name": "node-1"}})
    return made


async def get(session, path):
    async with session.get(path) as answer:
        return answer.status, await answer.text()


async def until(session, path, status):
    async with asyncio.timeout(DEADLINE_SECONDS):
        while (found := await get(session, path))[0] != status:
            pass
    return found[1]


async def test_it_is_ready_once_a_turn_got_to_its_end(site):
    async with site.serving() as session:
        assert await until(session, "/readyz", 200) == "ok\n"
    node = await site.kube.get(WHOLE_NODE, "node-1")
    assert node.condition(Condition.UNMONITORED).status == "False"


async def test_without_the_api_server_it_lives_is_not_ready_and_says_why(site):
    site.kube.fail_next(UnavailableError("the API server is away"), 1000)
    async with site.serving() as session:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while "is away" not in (said := await get(session, "/readyz"))[1]:
                pass
        assert said == (500, "[-]turn begin: the API server is away\n")
        assert await get(session, "/livez") == (200, "ok\n")


async def test_without_an_exporter_it_is_ready_all_the_same(site):
    site.exporter.fail_next(Silence.NO_SOCKET, 1000)
    async with site.serving() as session:
        await until(session, "/readyz", 200)


async def test_its_page_has_a_state_for_each_check_and_gpu(site):
    async with site.serving() as session:
        await until(session, "/readyz", 200)
        text = (await get(session, "/metrics"))[1]
    families = {family.name: family for family in text_string_to_metric_families(text)}
    shown = {
        (sample.labels["check"], sample.labels["gpu"])
        for sample in families[catalog.CHECK_STATE.name].samples
    }
    gpus = {Subject.GPU: ("0", "1"), Subject.NODE: ("",)}
    assert shown == {(check.id, gpu) for check in CHECKS for gpu in gpus[check.subject]}


async def test_every_metric_of_the_catalog_is_on_its_page(site):
    async with site.serving() as session:
        await until(session, "/readyz", 200)
        text = (await get(session, "/metrics"))[1]
    for metric in catalog.METRICS:
        assert f"# TYPE {metric.name} {metric.kind}" in text


async def test_the_end_leaves_the_node_as_it_is(site):
    async with site.serving() as session:
        await until(session, "/readyz", 200)
        before = await site.kube.get(WHOLE_NODE, "node-1")
    assert await site.kube.get(WHOLE_NODE, "node-1") == before
