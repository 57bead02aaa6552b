"""The plain port: what it says about the exporters' streams."""

from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapter.plain import PlainPort
from adapter.readiness import Readiness
from adapter.sources.source import Target
from slicewatch.catalog.own import ADAPTER
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.service.server import Address, serving
from testbed import fleet
from testbed.front_proxy import ApiPort


@pytest.fixture
def port(tmp_path: Path) -> ApiPort:
    return ApiPort(tmp_path)


async def scrape(port: ApiPort) -> dict[str, dict[str, float]]:
    """Return the values of the exporters' metrics by node."""
    plain = PlainPort(OwnMetrics(ADAPTER), port.page(), port.source, port.cache)
    readiness = Readiness(gate=port.gate, pods=port.cache, source=port.source)
    async with (
        serving(plain.app(readiness), Address("127.0.0.1", 0)) as address,
        aiohttp.ClientSession() as client,
    ):
        for _ in range(2):  # A second scrape adds nothing to the first.
            async with client.get(f"http://{address}/metrics") as answer:
                text = await answer.text()
    return {
        sample.name: {s.labels["node"]: s.value for s in family.samples}
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "node" in sample.labels
    }


async def test_lines_that_were_rejected_are_counted_by_node(port: ApiPort) -> None:
    for node, bad in (("n1", 0), ("n2", 3)):
        port.receive(fleet.frame(fleet.layout([fleet.gpu(0, node=node)], node=node)))
        for _ in range(bad):
            port.source.receive(Target(f"http://{node}:9400"), b"nonsense")
    found = await scrape(port)
    assert found["slicewatch_adapter_rejected_lines_total"] == {"n1": 0.0, "n2": 3.0}
    assert found["slicewatch_adapter_exporter_connected"] == {"n1": 1.0, "n2": 1.0}
    assert found["slicewatch_adapter_exporter_age_seconds"].keys() == {"n1", "n2"}


async def test_an_exporter_that_never_sent_a_frame_is_known_by_its_address(port: ApiPort) -> None:
    port.source.receive(Target("http://n3:9400"), b"nonsense")
    found = await scrape(port)
    assert found["slicewatch_adapter_rejected_lines_total"] == {"http://n3:9400": 1.0}
    assert "slicewatch_adapter_exporter_age_seconds" not in found


async def test_a_forgotten_exporter_leaves_no_series(port: ApiPort) -> None:
    port.receive(fleet.frame(fleet.layout([fleet.gpu(0)])))
    port.source.remove(Target("http://n1:9400"))
    assert await scrape(port) == {}
