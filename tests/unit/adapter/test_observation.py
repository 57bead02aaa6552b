"""The page of the plain port, for the families that tell of the adapter's own operation."""

from collections import Counter
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from adapter.observation import DropMetrics, ReloadMetrics, SecurityMetrics
from adapter.outcome import Absence
from adapter.plain import PlainPort
from adapter.readiness import Readiness
from adapter.registration import Registration, Standing, of_file
from adapter.settings import AdapterSettings
from adapter.sources.source import StreamFault, Target
from adapter.trust import Refused, Trust
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Metric
from slicewatch.catalog.own import (
    ADAPTER,
    CERTIFICATE_ENDS,
    DROPPED_VALUES,
    EXPORTER_AGE,
    EXPORTER_CONNECTED,
    PODS_SYNCED,
    REFUSED_HANDSHAKES,
    REGISTERED,
    REJECTED_LINES,
    RELOAD_TIME,
    RELOAD_VALID,
    SAMPLE_AGE,
    STREAM_FAULTS,
)
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import ServiceReference
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.service.server import Address, serving
from testbed import fleet
from testbed.front_proxy import ApiPort

Samples = dict[str, dict[tuple[str, ...], float]]
GOLDEN = """\
slicewatch_adapter_api_service_registered ('v1beta1.external.metrics.k8s.io', 'other') 0
slicewatch_adapter_api_service_registered ('v1beta2.custom.metrics.k8s.io', '') 1
slicewatch_adapter_config_last_reload_successful () 0
slicewatch_adapter_dropped_values_total ('no_device',) 2
slicewatch_adapter_dropped_values_total ('stale',) 1
slicewatch_adapter_exporter_connected ('http://n3:9400',) 0
slicewatch_adapter_exporter_connected ('n1',) 1
slicewatch_adapter_pods_synced () 1
slicewatch_adapter_refused_handshakes_total ('untrusted',) 3
slicewatch_adapter_rejected_lines_total ('http://n3:9400',) 1
slicewatch_adapter_rejected_lines_total ('n1',) 0
slicewatch_adapter_stream_faults_total ('silent',) 2
slicewatch_adapter_stream_faults_total ('tls',) 1
"""
TIMES = {EXPORTER_AGE.name, SAMPLE_AGE.name, CERTIFICATE_ENDS.name, RELOAD_TIME.name}
OURS = {
    CERTIFICATE_ENDS, DROPPED_VALUES, EXPORTER_AGE, EXPORTER_CONNECTED, PODS_SYNCED,
    REFUSED_HANDSHAKES, REGISTERED, REJECTED_LINES, RELOAD_TIME, RELOAD_VALID, SAMPLE_AGE,
    STREAM_FAULTS,
}  # fmt: skip


async def scraped(port: ApiPort, observed: PlainPort) -> Samples:
    """Return the samples of our families, by the values of their labels."""
    readiness = Readiness(gate=port.gate, pods=port.cache, source=port.source)
    async with (
        serving(observed.app(readiness), Address("127.0.0.1", 0)) as address,
        aiohttp.ClientSession() as client,
    ):
        await (await client.get(f"http://{address}/metrics")).read()
        # A second scrape adds nothing to the first.
        text = await (await client.get(f"http://{address}/metrics")).text()
    names = {metric.name for metric in OURS}
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in names:
                found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def registration(**standings: Standing) -> Registration:
    made = Registration(
        FakeKube(),
        service=ServiceReference(namespace="gpu", name="adapter"),
        names=(),
        bundle=of_file(""),
    )
    made.standings = dict(standings)
    return made


async def test_the_page_tells_of_streams_security_drops_and_reloads(tmp_path: Path) -> None:
    """prometheus-adapter #218: there was nothing to see of the adapter itself."""
    port = ApiPort(tmp_path)
    port.receive(fleet.frame(fleet.layout([fleet.gpu(0)])))
    port.source.receive(Target("http://n3:9400"), b"nonsense")
    port.source.faults.update({StreamFault.SILENT: 2, StreamFault.TLS: 1})
    trust = Trust(port.gate, AdapterSettings())
    trust.refused[Refused.UNTRUSTED] = 3
    standings = {
        "v1beta2.custom.metrics.k8s.io": Standing.OURS,
        "v1beta1.external.metrics.k8s.io": Standing.OTHER,
    }
    metrics = OwnMetrics(ADAPTER)
    security = SecurityMetrics(
        metrics, gate=port.gate, trust=trust, registration=registration(**standings)
    )
    dropped = Counter({Absence.NO_DEVICE: 2, Absence.STALE: 1})
    reload = ReloadMetrics(metrics)
    reload.report(True)
    reload.report(False)
    page = PlainPort(
        metrics,
        port.page(),
        port.source,
        port.cache,
        [security.observe, DropMetrics(metrics, dropped).observe],
    )
    found = await scraped(port, page)
    lines = [
        f"{name} {labels} {value:g}"
        for name, series in found.items()
        if name not in TIMES
        for labels, value in series.items()
    ]
    assert "\n".join(sorted(lines)) + "\n" == GOLDEN
    assert found.keys() == {metric.name for metric in OURS}
    assert found[CERTIFICATE_ENDS.name].keys() == {("serving",), ("front-proxy-ca",)}
    age, oldest = found[EXPORTER_AGE.name]["n1",], found[SAMPLE_AGE.name]["n1",]
    assert oldest >= age


@pytest.mark.parametrize(
    "metric", sorted(OURS, key=repr), ids=[m.name for m in sorted(OURS, key=repr)]
)
def test_each_of_them_is_declared_with_a_sentence(metric: Metric[None]) -> None:
    assert CATALOG[metric.name] is metric
    page = generate_latest(OwnMetrics(ADAPTER).registry).decode()
    assert f" {metric.help}\n" in page
