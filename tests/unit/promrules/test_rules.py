"""Rules of real configurations: what they offer, and the queries that they make."""

from pathlib import Path

import pytest

from adapter.api.label_selectors import parse
from adapter.api.resources import PODS
from slicewatch.promrules.loading import load
from slicewatch.promrules.matchers import UnsupportedRequirementError
from slicewatch.promrules.rule import Discovery, QueryMode
from slicewatch.promrules.template_nodes import TemplateError

SAMPLES = Path(__file__).parent / "samples"


def sample(name):
    read = load((SAMPLES / f"{name}.yaml").read_text(encoding="utf-8"), file=name)
    assert read.faults == ()
    return read


def rule_of(query, *, extra="", resources="overrides: {namespace: {resource: namespace}, pod: {resource: pod}}"):  # fmt: skip
    text = f"rules:\n- seriesQuery: gpu\n  resources: {{{resources}}}\n  metricsQuery: >-\n    {query}\n{extra}"
    read = load(text, file="x")
    assert read.faults == ()
    return read.custom[0]


def external_of(query, extra=""):
    read = load(
        f"externalRules:\n- seriesQuery: queue\n  metricsQuery: >-\n    {query}\n{extra}", file="x"
    )
    assert read.faults == ()
    return read.external[0]


NAMES = ("infer-8447fc6c85-kwrrv", "infer-8447fc6c85-lvl7s")
GPU_QUERIES = {
    ("gpu_utilization", QueryMode.GROUPED): 'avg(DCGM_FI_DEV_GPU_UTIL{namespace="default",pod!=""}) by (pod)',
    ("gpu_utilization", QueryMode.EXACT): 'avg(DCGM_FI_DEV_GPU_UTIL{namespace="default",'
    'pod=~"infer-8447fc6c85-kwrrv|infer-8447fc6c85-lvl7s"}) by (pod)',
    ("DCGM_FI_DEV_FB_USED", QueryMode.GROUPED): 'sum by (exported_pod) (DCGM_FI_DEV_FB_USED{exported_namespace="default",exported_pod!=""})',
    ("DCGM_FI_DEV_FB_USED", QueryMode.EXACT): 'sum by (exported_pod) (DCGM_FI_DEV_FB_USED{exported_namespace="default",'
    'exported_pod=~"infer-8447fc6c85-kwrrv|infer-8447fc6c85-lvl7s"})',
}  # fmt: skip


@pytest.mark.parametrize(("metric", "mode"), GPU_QUERIES)
def test_rules_for_gpus_make_the_queries_that_they_are_known_for(metric, mode):
    text = (SAMPLES / "gpu-shapes.yaml").read_text(encoding="utf-8")
    text = text.replace("    metricsQuery", f"    queryMode: {mode}\n    metricsQuery", 2)
    rules = {rule.names[0]: rule for rule in load(text, file="x").custom}
    rule = rules[metric]
    query = rule.query(
        series=rule.metrics()[metric],
        label=rule.mapping.label(PODS),
        namespace="default",
        names=NAMES,
    )
    assert query == GPU_QUERIES[metric, mode]


def test_a_metric_of_a_service_is_asked_by_the_label_that_names_it():
    rule = sample("gpu-shapes").custom[2]
    assert rule.metrics() == {"DCGM_FI_DEV_GPU_UTIL_AVG": "DCGM_FI_DEV_GPU_UTIL"}
    query = rule.query(
        series="DCGM_FI_DEV_GPU_UTIL", label="exported_container", namespace="ml", names=["infer"]
    )
    assert query == (
        "avg by (exported_container) "
        '(avg_over_time(DCGM_FI_DEV_GPU_UTIL{exported_namespace="ml",exported_container!=""}[1m]))'
    )


def test_an_external_metric_is_asked_in_the_namespace_of_the_request():
    (rule,) = sample("gpu-shapes").external
    query = rule.query(
        series="DCGM_FI_DEV_GPU_UTIL",
        namespace="ml",
        requirements=parse("gpu=0").requirements,
    )
    assert query == 'avg(DCGM_FI_DEV_GPU_UTIL{gpu="0",exported_namespace="ml"})'


def test_what_can_be_known_without_asking_is_not_discovered():
    """prometheus-adapter #229 and #532: a configured metric is there from the start, and stays."""
    assert [rule.discovery for rule in sample("gpu-shapes").custom] == [None, None, None]
    assert [rule.discovery for rule in sample("walkthrough").custom] == [
        Discovery(
            match='{__name__=~"^container_.*",container!="POD",namespace!="",pod!=""}',
            names=True,
            labels=False,
        ),
        Discovery(
            match='{__name__=~"^container_.*_total",container!="POD",namespace!="",pod!=""}',
            names=True,
            labels=False,
        ),
        Discovery(match='{namespace!="",__name__!~"^container_.*"}', names=True, labels=True),
        None,
    ]


def test_patterns_take_the_series_that_they_are_for():
    seconds, totals, others, cheese = sample("walkthrough").custom
    series = [
        "container_cpu_usage_seconds_total",
        "container_fs_reads_total",
        "http_requests_total",
    ]
    assert seconds.metrics(series) == {"cpu_usage": "container_cpu_usage_seconds_total"}
    assert totals.metrics(series) == {"fs_reads": "container_fs_reads_total"}
    assert others.metrics(["http_requests_total"]) == {
        "http_requests_per_second": "http_requests_total"
    }
    assert cheese.metrics() == {"cheesy_goodness": "cheddar"}


def test_queries_of_patterns_are_made_of_the_series_found():
    seconds, _, others, cheese = sample("walkthrough").custom
    assert (
        seconds.query(series="container_cpu_usage_seconds_total", label="pod", namespace="ml")
        == 'sum(rate(container_cpu_usage_seconds_total{namespace="ml",pod!="",container!="POD"}[2m])) by (pod)'
    )  # fmt: skip
    assert (
        others.query(series="http_requests_total", label="kube__pod", namespace="ml")
        == 'sum(rate(http_requests_total{kube__namespace="ml",kube__pod!=""}[2m])) by (kube__pod)'
    )
    assert (
        cheese.query(series="cheddar", label="brand", namespace="ml")
        == 'count(cheddar{brand!="",sharp="true"}) by (brand)'
    )


def test_an_external_rule_without_a_namespace_asks_for_all_of_them():
    """prometheus-adapter #530 and #690: there, it seemed to be ignored."""
    lag, depth = sample("walkthrough").external
    assert lag.query(series="queue_consumer_lag", namespace="ml") == (
        'sum(queue_consumer_lag{namespace="ml"}) by (name)'
    )
    assert depth.query(series="queue_depth", namespace="ml") == "sum(queue_depth{}) by (name)"


@pytest.mark.parametrize(
    ("extra", "matcher"),
    [
        ("", 'namespace="ml"'),
        ("  namespace: request\n", 'namespace="ml"'),
        ("  namespace: none\n", ""),
        ("  namespace: monitoring\n", 'namespace="monitoring"'),
        ("  resources: {namespaced: false}\n", ""),
        ("  namespace: request\n  resources: {namespaced: false}\n", 'namespace="ml"'),
        ("  resources: {template: 'kube_<<.Resource>>'}\n", 'kube_namespace="ml"'),
    ],
)
def test_a_rule_says_which_namespace_it_is_about(extra, matcher):
    """prometheus-adapter #195 and #324: a central exporter was out of reach."""
    rule = external_of("sum(queue{<<.LabelMatchers>>})", extra)
    assert rule.query(series="queue", namespace="ml") == f"sum(queue{{{matcher}}})"


def test_conditions_stand_in_the_order_of_upstream():
    rule = rule_of("sum(gpu{<<.LabelMatchers>>}) by (<<.GroupBy>>)", extra="  queryMode: exact\n")
    query = rule.query(
        series="gpu",
        label="pod",
        namespace="ml",
        names=["a"],
        requirements=parse("z=1,app.kubernetes.io/name in (x,y)").requirements,
    )
    assert query == (
        'sum(gpu{app_kubernetes_io_name=~"x|y",z="1",namespace="ml",pod="a"}) by (pod)'
    )


def test_a_query_without_conditions_is_still_one():
    rule = external_of('sum(queue{<<.LabelMatchers>>,a="b"})', "  namespace: none\n")
    assert rule.query(series="queue", namespace="ml") == 'sum(queue{namespace=~".*",a="b"})'


def test_values_of_labels_can_be_used_one_by_one():
    rule = rule_of(
        'sum(gpu{ns="<<index .LabelValuesByName `namespace`>>",p=~"<<.LabelValuesByName.pod>>"})'
        " by (<<range .GroupBySlice>><<.>><<end>>)"
    )
    assert rule.mode is QueryMode.EXACT
    query = rule.query(series="gpu", label="pod", namespace="ml", names=["a", "b"])
    assert query == 'sum(gpu{ns="ml",p=~"a|b"}) by (pod)'


def test_nothing_is_grouped_by_in_an_external_query():
    rule = external_of("sum(queue) by (<<.GroupBy>>) <<len .GroupBySlice>>")
    assert rule.query(series="queue", namespace=None) == "sum(queue) by () 0"


def test_objects_outside_of_namespaces_are_asked_for_without_one():
    rule = rule_of(
        "sum(gpu{<<.LabelMatchers>>}) by (<<.GroupBy>>)", resources="overrides: {node: {resource: node}}"
    )  # fmt: skip
    assert rule.query(series="gpu", label="node", namespace=None) == 'sum(gpu{node!=""}) by (node)'


def test_a_query_does_not_grow_with_the_number_of_pods():
    """prometheus-adapter #668: the names of 1,500 pods made a query too long."""
    rule = sample("gpu-shapes").custom[0]
    names = [f"inference-pool-{number:04}-x7k2p" for number in range(1500)]
    query = rule.query(series="DCGM_FI_DEV_GPU_UTIL", label="pod", namespace="ml", names=names)
    assert len(query) < 100


def test_an_empty_query_is_an_error_of_the_template():
    rule = external_of('<<if eq .LabelValuesByName.queue "a">>sum(queue)<<end>>')
    assert rule.query(series="queue", namespace="ml", requirements=parse("queue=a").requirements)
    with pytest.raises(TemplateError, match="empty query"):
        rule.query(series="queue", namespace="ml")


def test_a_selector_that_compares_numbers_is_refused():
    with pytest.raises(UnsupportedRequirementError):
        external_of("sum(queue{<<.LabelMatchers>>})").query(
            series="queue", namespace="ml", requirements=parse("x>5").requirements
        )
