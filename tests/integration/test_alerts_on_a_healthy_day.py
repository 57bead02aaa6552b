"""No alert fires on a day in which nothing is wrong, on both Prometheus releases.

A day of an exporter on the simulator's clock becomes the past of a real server. Each expression is
asked for over the whole of it; it would fire where it holds for as long as it has to.
"""

import asyncio
import json
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

from alerts.index import alerts
from testbed import debian
from testbed.binaries import Unavailable, binary
from testbed.observed.cases import seconds
from testbed.observed.day import DAY_SECONDS, SCRAPE_SECONDS, openmetrics, scraped
from testbed.promql_servers import configured
from testbed.require import skip_or_fail

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def day():
    return asyncio.run(scraped())


@pytest.fixture(scope="module", params=["prometheus-2", "prometheus-3"])
def server(request, day, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    ends = time.time() // SCRAPE_SECONDS * SCRAPE_SECONDS
    past = folder / "past.txt"
    with past.open("w") as file:
        file.writelines(f"{line}\n" for line in openmetrics(day, ends))
    try:
        if request.param == "prometheus-2":
            promtool = debian.program("promtool", package="prometheus")
        else:
            promtool = str(binary("promtool"))
        command = [promtool, "tsdb", "create-blocks-from", "openmetrics", past, folder / "data"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, done.stderr
        past.unlink()
        with configured(request.param, "scrape_configs: []", folder) as started:
            yield started.url, ends
    except Unavailable as reason:
        skip_or_fail(str(reason))


def held(server, expr):
    """Return for how many seconds on end an expression held, at the longest, and of what."""
    url, ends = server
    begins = ends - DAY_SECONDS + 2 * SCRAPE_SECONDS
    asked = {"query": expr, "start": begins, "end": ends, "step": SCRAPE_SECONDS}
    request = f"{url}/api/v1/query_range?{urllib.parse.urlencode(asked)}"
    with urllib.request.urlopen(request, timeout=60) as answer:
        found = json.loads(answer.read())["data"]["result"]
    longest, whose = -1.0, None
    for series in found:
        began = before = None
        for at, _ in series["values"]:
            if before is None or at - before > SCRAPE_SECONDS * 1.5:
                began = at
            before = at
            if at - began > longest:
                longest, whose = at - began, series["metric"]
    return longest, whose


def test_the_day_has_what_alerts_look_at(server):
    for expr in (
        "gpu_utilization > 90",
        "gpu_sampled_seconds_total > 0",
        "gpu_tenants_allocated > 1",
        "resets(gpu_busy_seconds_total[1d]) > 0",
        'gpu_mig_info{profile="3g.40gb"}',
    ):
        assert held(server, expr)[1] is not None, expr


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)
def test_an_alert_is_silent_on_a_healthy_day(server, alert):
    longest, whose = held(server, alert.expr.strip())
    limit = seconds(alert.hold) if alert.hold else 0.0
    assert longest < limit or longest < 0, whose
