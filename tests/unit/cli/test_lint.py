"""The command: exit status, both outputs, and what it asks a backend."""

import io
import json
import subprocess
import sys
import time

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapter.sources.prometheus.fault import BackendError
from advisor.rules.check import Need
from advisor.rules.checks import report
from advisor.rules.files import subject_of
from cli.lint import Options, run_lint
from cli.lint.backend import backend_of, with_facts

RULES = """\
rules:
- seriesQuery: 'gpu{pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum(rate(<<.Series>>{<<.LabelMatchers>>}[1m])) by (<<.GroupBy>>)'
externalRules:
- seriesQuery: queue
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (topic)'
- seriesQuery: broken
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>})) by'
"""
AUTOSCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: x, namespace: ml}
spec:
  maxReplicas: 3
  scaleTargetRef: {kind: Deployment, name: x}
  metrics:
  - type: External
    external: {metric: {name: Queue}, target: {type: AverageValue, averageValue: 1m}}
"""


@pytest.fixture
def file(tmp_path):
    def write(text, name="rules.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def lint(*files, **options):
    stream = io.StringIO()
    return run_lint(Options(files=files, **options), stream), stream.getvalue()


def test_a_fault_is_shown_with_place_fix_and_check(file):
    path = file(RULES.replace("by (<<.GroupBy>>)", ""))
    status, text = lint(path)
    assert status == 1
    joined = " ".join(text.split())
    assert f"{path}:2: rules[0]" in joined
    assert "-> write sum(...) by (<<.GroupBy>>) [no-object-label]" in joined
    assert "errors: 1, warnings: 0" in joined


def test_what_was_not_checked_is_said(file):
    _, text = lint(file(RULES))
    assert f"without {Need.AUTOSCALERS}: summed-series" in " ".join(text.split())
    _, text = lint(file(RULES), verbose=True)
    assert f"not checked: short-window, which needs {Need.INTERVAL}" in text


def test_the_same_as_json(file):
    status, text = lint(file(RULES), scrape_interval="1m", as_json=True)
    read = json.loads(text)
    assert status == 1
    (finding,) = read["findings"]
    assert finding["check"] == "short-window"
    assert finding["place"]["line"] == 2
    assert {"check": "missing-label", "partly": False, "lacks": ["--prometheus"]} in read[
        "unchecked"
    ]


def test_without_errors_the_status_is_0(file):
    assert lint(file(RULES))[0] == 0


@pytest.mark.parametrize(
    "options",
    [
        {"scrape_interval": "often"},
        {"prometheus": "prometheus:9090"},
        {"prometheus": "http://user:secret@x"},
        {"prometheus": "http://127.0.0.1:9"},
    ],
)
def test_what_cannot_be_done_is_said_with_status_2(file, capsys, options):
    status, text = lint(file(RULES), **options)
    assert (status, text) == (2, "")
    said = capsys.readouterr().err
    assert said.startswith("slicewatch lint: ")
    assert "secret@" not in said


def test_a_file_that_does_not_exist_is_said_with_status_2(capsys):
    assert lint("missing.yaml")[0] == 2
    assert "missing.yaml" in capsys.readouterr().err


def test_the_command_reads_the_standard_input():
    done = subprocess.run(
        [sys.executable, "-m", "cli", "lint", "-", "-o", "json"],
        input="rules: {default: true}\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["findings"][0]["check"] == "rules-elsewhere"


class Prometheus:
    """Answers as the HTTP API does; one series name is unknown to its parser."""

    def __init__(self):
        self.queries = []
        self.ends = []

    async def query(self, request):
        form = await request.post()
        text = form["query"]
        self.queries.append(text)
        if "broken" in text and "count_over_time" not in text:
            said = {"status": "error", "errorType": "bad_data", "error": "unexpected by"}
            return web.json_response(said, status=400)
        value = "10" if "count_over_time" in text else "3e9"
        topics = [{}] if "by (topic)" not in text else [{"topic": "a"}, {"topic": "b"}]
        result = [{"metric": labels, "value": [time.time(), value]} for labels in topics]
        data = {"resultType": "vector", "result": result}
        return web.json_response({"status": "success", "data": data})

    async def labels(self, request):
        fields = {**request.query, **await request.post()}
        self.ends.append(float(fields["end"]))
        labels = ["__name__", "namespace", "pod", "exported_pod", "topic"]
        return web.json_response({"status": "success", "data": labels})

    def server(self):
        application = web.Application()
        application.router.add_post("/prefix/api/v1/query", self.query)
        application.router.add_route("*", "/prefix/api/v1/labels", self.labels)
        return TestServer(application)


async def test_a_backend_is_asked_for_labels_intervals_and_results():
    prometheus, now = Prometheus(), time.time()
    subject = subject_of([("rules.yaml", RULES), ("hpa.yaml", AUTOSCALER)])
    async with prometheus.server() as server:
        backend = backend_of(str(server.make_url("/prefix/")), "", "")
        try:
            known = await with_facts(subject, backend, now)
        finally:
            await backend.close()
    found = {finding.check: finding for finding in report(known, asked_backend=True).findings}
    assert "60 s" in found["short-window"].what
    assert "exported_pod" in found["exporter-label"].what
    assert "2 series" in found["summed-series"].what
    assert "3e+09" in found["overflow"].what
    assert "unexpected by" in found["refused-query"].what
    assert 'sum(queue{namespace="ml"}) by (topic)' in prometheus.queries
    # prometheus-adapter #499: an end of 0 is refused by some backends
    assert prometheus.ends == pytest.approx([now] * len(prometheus.ends), abs=1e-3)


async def test_a_backend_that_is_away_is_one_error_and_not_one_per_rule():
    subject = subject_of([("rules.yaml", RULES)])
    backend = backend_of("http://127.0.0.1:9", "", "")
    with pytest.raises(BackendError, match=r"127\.0\.0\.1:9"):
        await with_facts(subject, backend, time.time())
    await backend.close()
