"""The section ``workloadMetrics``: what people may write, and what they are told if they may not."""

from pathlib import Path

import pytest

from adapter.sources.workloads.declaration import Configuration, Idle, Type, WorkloadMetric
from adapter.sources.workloads.document import WorkloadsError, of_documents, of_section
from slicewatch.catalog.model import Combine
from slicewatch.promrules.sections import document
from slicewatch.service.documents import parse_yaml

GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "workload-metrics.md"
LATENCY = {"name": "latency", "series": "seconds", "type": "average"}


def faults(content):
    with pytest.raises(WorkloadsError) as caught:
        of_section(content)
    return list(caught.value.faults)


def fault_of(**changes):
    (fault,) = faults({"metrics": [LATENCY | changes]})
    place = "workloadMetrics.metrics[0]"
    assert fault.startswith(place)
    return fault.removeprefix(place)


def test_what_is_not_written_has_the_defaults_of_the_guide():
    made = of_section({"metrics": [{"series": "vllm:num_requests_waiting", "type": "gauge"}]})
    (metric,) = made.metrics
    assert metric == WorkloadMetric(
        name="vllm:num_requests_waiting", series="vllm:num_requests_waiting", type=Type.GAUGE
    )
    assert (metric.idle, metric.combine, metric.max_age_seconds) == (Idle.ABSENT, None, 15.0)
    assert (made.interval_seconds, made.insecure_skip_verify) == (5.0, False)


def test_everything_that_can_be_written_has_its_effect():
    made = of_section(
        parse_yaml("""
interval: 2s
insecureSkipVerify: true
metrics:
  - name: p95
    series: request_seconds
    type: quantile
    quantile: 0.95
    labels: {route: /chat, code: "200"}
    window: 1m
    scale: 1000
    idle: zero
    maxAge: 20s
    clamp: {min: 0, max: 5000}
  - series: requests_total
    type: rate
    combine: max
""")
    )
    assert made.metrics == (
        WorkloadMetric(
            name="p95",
            series="request_seconds",
            type=Type.QUANTILE,
            quantile=0.95,
            labels=(("code", "200"), ("route", "/chat")),
            window_seconds=60.0,
            scale=1000.0,
            idle=Idle.ZERO,
            max_age_seconds=20.0,
            low=0.0,
            high=5000.0,
        ),
        WorkloadMetric(
            name="requests_total",
            series="requests_total",
            type=Type.RATE,
            combine=Combine.MAX,
            max_age_seconds=6.0,
        ),
    )
    assert (made.interval_seconds, made.insecure_skip_verify) == (2.0, True)


def test_a_rate_is_the_sum_of_its_series_unless_something_else_is_written():
    (metric,) = of_section({"metrics": [{"series": "n_total", "type": "rate"}]}).metrics
    assert metric.combine is Combine.SUM


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"windw": "30s"}, ".windw: unknown key; did you mean window?"),
        ({"type": "counter"}, ".type: 'counter' is none of gauge, rate, average, quantile"),
        ({"idle": "null"}, ".idle: 'null' is none of absent, zero"),
        ({"window": "soon"}, ".window: 'soon' is not a valid duration; write it like 15s"),
        ({"window": "5s"}, ".window: 5s is out of range; write at least 10s and at most 300s"),
        ({"window": "1h"}, ".window: 1h is out of range; write at least 10s and at most 300s"),
        ({"maxAge": "1s"}, ".maxAge: 1s is out of range; write at least 10s"),
        ({"name": "latency"} | {"series": "a-b"}, ".series: 'a-b' is not the name of a series"),
        ({"series": "x_sum"}, ".series: leave out _sum, which is added for the type average"),
        ({"combine": "max"}, ".combine: of no use for the type average"),
        ({"quantile": 0.9}, ".quantile: of no use for the type average"),
        ({"type": "quantile"}, ".quantile: missing; write which one, such as 0.95"),
        ({"type": "quantile", "quantile": 95}, ".quantile: 95 is not between 0 and 1"),
        ({"type": "gauge", "window": "30s"}, ".window: of no use for a gauge"),
        ({"type": "rate", "combine": "min"}, ".combine: 'min' is none of sum, avg, max"),
        ({"scale": 0}, ".scale: 0 makes no value"),
        ({"clamp": {"min": 2, "max": 1}}, ".clamp: min 2 is above max 1"),
        ({"labels": {"a": 1}}, ": Expected `str`, got `int` - at `labels[...]`"),
    ],
)
def test_each_fault_says_where_it_is_and_what_to_do(changes, message):
    assert fault_of(**changes).startswith(message)


def test_all_faults_are_reported_together():
    bad = {"series": "a", "type": "x", "idle": "y"}
    assert len(faults({"interval": "5h", "metrics": [bad, 7, {"type": "gauge"}]})) == 5


def test_a_name_that_cannot_stand_in_a_path_is_refused():
    (fault,) = faults({"metrics": [LATENCY | {"name": "a/b"}]})
    assert ".name: 'a/b' cannot stand in a path" in fault


def test_a_name_that_is_there_twice_is_refused():
    (fault,) = faults({"metrics": [LATENCY, LATENCY]})
    assert fault == "workloadMetrics.metrics[1]: the name is there twice; choose another"


@pytest.mark.parametrize("content", [None, [], "metrics", {"metrics": {}}, {}])
def test_a_section_of_another_shape_is_refused(content):
    assert len(faults(content)) == 1


def test_too_many_metrics_are_refused():
    (fault,) = faults({"metrics": [LATENCY] * 201})
    assert "most are 200" in fault


def test_faults_are_named_after_file_and_line():
    text = """
rules: []
workloadMetrics:
  metrics:
    - series: a
      type: gauge
    - series: b
      type: rate
      window: 1s
      idl: zero
    - series: c
      type: rate
      window: 1s
"""
    with pytest.raises(WorkloadsError) as caught:
        of_documents([document(text, file="f.yaml"), document("rules: []", file="g.yaml")])
    unknown, short = caught.value.faults
    assert unknown == "f.yaml:10: workloadMetrics.metrics[1].idl: unknown key; did you mean idle?"
    assert short.startswith("f.yaml:13: workloadMetrics.metrics[2].window: 1s is out of range")


def test_files_without_the_section_declare_nothing():
    files = [document(text, file="f.yaml") for text in ("", "rules: []", "[]")]
    assert of_documents(files) == Configuration()


def test_the_section_stands_in_one_file():
    files = [document("workloadMetrics: {metrics: []}", file=name) for name in ("f", "g")]
    with pytest.raises(WorkloadsError, match=r"g:1: workloadMetrics: is in f:1: .* one file"):
        of_documents(files)


def test_the_example_of_the_guide_can_be_used():
    example = GUIDE.read_text(encoding="utf-8").split("```yaml\nworkloadMetrics:")[1]
    made = of_documents([document("workloadMetrics:" + example.split("```")[0], file="guide")])
    names = [metric.name for metric in made.metrics]
    assert names[:2] == ["request_latency_ms", "vllm:num_requests_waiting"]
