"""Every alert on real Prometheus servers, through a real Alertmanager, to a webhook.

The past of a server is made of the cases of ``alerts/tests``, which end now. Expressions are the
real ones; only how long they have to hold is left out, which promtool has shown.
"""

import subprocess
import threading
import time

import pytest
import yaml

from alerts.files import rule_file
from alerts.index import GROUPS, alerts
from testbed import debian
from testbed.binaries import Unavailable, binary
from testbed.observed import alertmanager
from testbed.observed.cases import cases, expand, openmetrics
from testbed.promql_servers import configured
from testbed.require import skip_or_fail

pytestmark = pytest.mark.timeout(240)

DEADLINE_SECONDS = 120
RECEIVERS = {"critical": "pager", "warning": "ticket", "info": "report"}
# By default an alert that Alertmanager was not there for is told a minute later.
RESEND = "--rules.alert.resend-delay=2s"
# They are about all scrapes of a server: in a server of their own they fire.
OF_THE_SERVER = {"SlicewatchExportersAbsent", "SlicewatchAdapterAbsent"}


def write_rules(folder):
    for group in GROUPS:
        document = yaml.safe_load(rule_file(group))
        for rule in document["groups"][0]["rules"]:
            rule.pop("for", None)
        document["groups"][0]["interval"] = "2s"
        (folder / f"{group.name}.yaml").write_text(yaml.safe_dump(document))
    return str(folder / "*.yaml")


def backfill(found, folder, promtool):
    text = folder / "past.txt"
    text.write_text(openmetrics(found, time.time()))
    done = subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", text, folder / "data"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def promtool_of(version):
    if version == "prometheus-2":
        return debian.program("promtool", package="prometheus")
    return str(binary("promtool"))


def told(version, found, folder, enough):
    """Return what the webhook is told of a server with this past, once that is enough."""
    (folder / "rules").mkdir()
    hook = alertmanager.Webhook()
    try:
        with hook.serving() as url, alertmanager.running(url, folder) as address:
            backfill(found, folder, promtool_of(version))
            configuration = yaml.safe_dump({
                "global": {"evaluation_interval": "2s"},
                "rule_files": [write_rules(folder / "rules")],
                "alerting": {
                    "alertmanagers": [{"static_configs": [{"targets": [address]}]}]
                },
            })  # fmt: skip
            with configured(version, configuration, folder, RESEND):
                deadline = time.monotonic() + DEADLINE_SECONDS
                while not enough(hook.told) and time.monotonic() < deadline:
                    threading.Event().wait(0.5)
    except Unavailable as reason:
        skip_or_fail(str(reason))
    return hook.told


@pytest.fixture(scope="module", params=["prometheus-2", "prometheus-3"])
def heard(request, tmp_path_factory):
    """What the webhook hears of all cases at once: receiver, alert, cluster and labels."""
    found = [case for case in cases() if case.alert not in OF_THE_SERVER]
    expected = {(case.alert, case.cluster) for case in found if case.fires}

    def complete(messages):
        return expected <= {(labels["alertname"], labels.get("cluster")) for _, labels in messages}

    return found, told(request.param, found, tmp_path_factory.mktemp(request.param), complete)


@pytest.mark.parametrize(
    "alert", [a for a in alerts() if a.name not in OF_THE_SERVER], ids=lambda alert: alert.name
)
def test_an_alert_reaches_who_is_to_be_told_and_stays_silent_where_it_should(heard, alert):
    found, messages = heard
    own = [case for case in found if case.alert == alert.name]
    firing = {case.cluster for case in own if case.fires}
    quiet = {case.cluster for case in own if not case.fires}
    of_alert = [(who, labels) for who, labels in messages if labels["alertname"] == alert.name]
    clusters = {labels.get("cluster") for _, labels in of_alert}
    assert firing <= clusters
    # What stays silent only since it does not last long enough fires here.
    assert {cluster for cluster in quiet & clusters if not alert.hold} == set()
    assert {who for who, _ in of_alert} == {RECEIVERS[alert.severity]}


@pytest.mark.parametrize("version", ["prometheus-2", "prometheus-3"])
def test_a_server_without_any_scrape_of_ours_says_so(version, tmp_path):
    messages = told(version, [], tmp_path, lambda heard: len(heard) >= len(OF_THE_SERVER))
    assert {labels["alertname"] for _, labels in messages} == OF_THE_SERVER
    assert {who for who, _ in messages} == {"pager"}


def test_the_notation_of_promtool_is_read_as_promtool_reads_it():
    assert list(expand("1x2 _x2 0+5x2 stale 7")) == [1, 1, 1, None, None, 0, 5, 10, None, 7]
    with pytest.raises(ValueError, match="'a': no value"):
        list(expand("a"))
