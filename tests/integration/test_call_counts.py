"""What a scrape costs the driver and the kubelet, counted where the calls arrive."""

import pytest

from bench import calls
from testbed.binaries import Unavailable
from testbed.require import skip_or_fail

SECONDS = 11.0


@pytest.mark.timeout(120)
async def test_scrapes_cost_neither_the_driver_nor_the_kubelet_a_call(tmp_path, monkeypatch):
    """However many scrape: dcgm-exporter and others read the device while a scraper waits."""
    monkeypatch.setattr(calls, "SECONDS", SECONDS)
    try:
        nvml, kubelet = await calls.measure(tmp_path)
    except Unavailable as missing:
        skip_or_fail(str(missing))
    assert nvml.peer > 500
    # What is read every ten seconds falls into eleven of them once or twice.
    assert nvml.value == pytest.approx(nvml.peer, rel=0.05)
    assert abs(kubelet.value - kubelet.peer) <= 1
    assert kubelet.peer >= 1
