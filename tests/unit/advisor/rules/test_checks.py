"""Every check: what it finds, with the line, and what it lets pass.

A case has what makes the fault, and then the same without it.
"""

import dataclasses

import pytest

from advisor.rules.check import Need, Severity
from advisor.rules.checks import CHECKS, report
from advisor.rules.files import subject_of
from advisor.rules.subject import ResultFacts, SeriesFacts
from slicewatch.promrules.faults import FaultKind

POD = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
NODE = "{overrides: {node: {resource: node}}}"
BY = "by (<<.GroupBy>>)"
M = "<<.Series>>{<<.LabelMatchers>>}"


def rule(query=f"avg({M}) {BY}", series="gpu_utilization", resources=POD, more=""):
    return (
        f"rules:\n- seriesQuery: '{series}'\n  resources: {resources}\n"
        f"  metricsQuery: >-\n    {query}\n{more}"
    )


def external(query=f"sum({M})", series="queue", more=""):
    return f"externalRules:\n- seriesQuery: '{series}'\n  metricsQuery: >-\n    {query}\n{more}"


def pods(name="gpu_utilization", target="{type: AverageValue, averageValue: 70}"):
    return hpa(f"type: Pods, pods: {{metric: {{name: '{name}'}}, target: {target}}}")


def queue(name="queue", selector="", target="{type: AverageValue, averageValue: 5}"):
    chosen = f", selector: {{matchLabels: {selector}}}" if selector else ""
    return hpa(f"type: External, external: {{metric: {{name: {name}{chosen}}}, target: {target}}}")


def service(name="gpu_utilization"):
    return hpa(
        "type: Object, object: {describedObject: {kind: Service, name: x, apiVersion: v1}, "
        f"metric: {{name: {name}}}, target: {{type: Value, value: 70}}}}"
    )


def hpa(metric):
    return (
        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: x}\n"
        "spec:\n  maxReplicas: 3\n  scaleTargetRef: {kind: Deployment, name: x}\n"
        f"  metrics:\n  - {{{metric}}}\n"
    )


def judged(texts, interval=None, labels=None, series=None, largest=None):
    """Return the report on texts; the other arguments are what a backend answers to everything."""
    subject = subject_of((f"{at}.yaml", text) for at, text in enumerate(texts))
    asked = labels is not None or series is not None
    if asked:
        facts = SeriesFacts(labels=frozenset({"pod", "namespace"} if labels is None else labels))
        result = ResultFacts(series=series or 1, largest=largest)
        subject = dataclasses.replace(
            subject,
            series={each.place: facts for each in subject.rules()},
            results={metric.place: result for metric in subject.metrics},
        )
    subject = dataclasses.replace(subject, scrape_interval_seconds=interval)
    return report(subject, asked_backend=asked)


def found(texts, **facts):
    return {finding.check for finding in judged(texts, **facts).findings}


CASES = [
    # no-object-label: prometheus-adapter #535
    ("no-object-label", {"texts": [rule(f"avg({M})")]}, {"texts": [rule()]}),
    ("no-object-label", {"texts": [rule(f"avg({M}) by (gpu)")]}, {"texts": [rule(f"avg({M}) by (pod)")]}),
    ("no-object-label", {"texts": [rule(f"avg({M}) without (pod)")]}, {"texts": [rule(f"avg({M}) without (gpu)")]}),
    ("no-object-label", {"texts": [rule(f"sum({M}) {BY} / sum(b)")]}, {"texts": [rule(f"sum({M}) {BY} / scalar(sum(b))")]}),
    ("no-object-label", {"texts": [rule(f"sum(sum({M}) {BY})")]}, {"texts": [rule(f"sum({M}) {BY} / on () group_left sum(b)")]}),
    ("no-object-label", {"texts": [rule("max(vector(1))")]}, {"texts": [rule(M)]}),
    ("no-label-matchers", {"texts": [rule(f"avg(gpu) {BY}")]}, {"texts": [rule()]}),
    ("no-label-matchers", {"texts": [external("sum(queue)")]}, {"texts": [external()]}),
    ("no-label-matchers", {"texts": [external("sum(queue{})")]}, {"texts": [external('sum(queue{t="<<index .LabelValuesByName `t`>>"})')]}),
    ("short-window", {"texts": [rule(f"sum(rate({M}[1m])) {BY}")], "interval": 60}, {"texts": [rule(f"sum(rate({M}[2m])) {BY}")], "interval": 60}),
    ("short-window", {"texts": [external(f"sum(increase({M}[15s]))")], "interval": 15}, {"texts": [external(f"sum(avg_over_time({M}[15s]))")], "interval": 15}),
    ("short-max-age", {"texts": [rule(more="  maxAge: 20s\n")], "interval": 15}, {"texts": [rule(more="  maxAge: 30s\n")], "interval": 15}),
    ("nan-when-idle", {"texts": [rule(f"histogram_quantile(0.9, sum(rate({M}[5m])) by (le, <<.GroupBy>>))")]}, {"texts": [rule(f"histogram_quantile(0.9, sum(rate({M}[5m])) by (le, <<.GroupBy>>))", more="  nanAs: 0\n")]}),
    ("nan-when-idle", {"texts": [rule(f"sum(rate({M}[5m])) {BY} / sum(rate(b{{<<.LabelMatchers>>}}[5m])) {BY}")]}, {"texts": [rule(f"sum(rate({M}[5m])) {BY} / (sum(rate(b{{<<.LabelMatchers>>}}[5m])) {BY} > 0)")]}),
    ("nan-when-idle", {"texts": [rule(f"histogram_quantile(0.9, sum(rate({M}[5m])) by (le, <<.GroupBy>>)) or vector(0)")]}, {"texts": [rule(f"sum(rate({M}[5m])) {BY} / 100")]}),
    ("summed-series", {"texts": [external(f"sum({M}) by (topic)"), queue()]}, {"texts": [external(f"sum({M}) by (topic)"), queue(selector="{topic: a}")]}),
    ("summed-series", {"texts": [external(M), queue()]}, {"texts": [external(), queue()]}),
    ("summed-series", {"texts": [external(M), queue()], "series": 3}, {"texts": [external(M), queue()], "series": 1}),
    # exporter-label: dcgm-exporter #42 and #379
    ("exporter-label", {"texts": [rule(series='gpu{exported_pod!="",pod!=""}')]}, {"texts": [rule(series='gpu{pod!=""}')]}),
    ("exporter-label", {"texts": [rule()], "labels": {"pod", "namespace", "exported_pod"}}, {"texts": [rule()], "labels": {"pod", "namespace"}}),
    # missing-label: dcgm-exporter #85 and #340
    ("missing-label", {"texts": [rule(resources="{overrides: {exported_namespace: {resource: namespace}, exported_pod: {resource: pod}}}")], "labels": {"pod", "namespace"}}, {"texts": [rule()], "labels": {"pod", "namespace"}}),
    ("no-series", {"texts": [rule()], "labels": set()}, {"texts": [rule()], "labels": {"pod", "namespace"}}),
    ("unmapped-kind", {"texts": [rule(resources="{overrides: {namespace: {resource: namespace}}}"), pods()]}, {"texts": [rule(), pods()]}),
    ("unmapped-kind", {"texts": [rule(), service()]}, {"texts": [rule(resources="{template: <<.Resource>>}"), service()]}),
    # upper-case-external: k8s #72996
    ("upper-case-external", {"texts": [external(series="DCGM_FI_DEV_GPU_UTIL")]}, {"texts": [external(series="dcgm_fi_dev_gpu_util")]}),
    ("not-a-path-segment", {"texts": [rule(more="  name: {as: gpu/util}\n")]}, {"texts": [rule(more="  name: {as: 'vllm:gpu'}\n")]}),
    ("not-a-path-segment", {"texts": [external(more="  name: {as: a%b}\n")]}, {"texts": [external(more="  name: {as: a|b}\n")]}),
    ("reserved-name", {"texts": [external(series="status")]}, {"texts": [external(series="job_status")]}),
    ("reserved-name", {"texts": [rule(more="  name: {as: Metrics}\n")]}, {"texts": [rule(more="  name: {as: metric}\n")]}),
    ("unknown-metric", {"texts": [rule(), pods("gpu_utilisation")]}, {"texts": [rule(), pods()]}),
    ("unknown-metric", {"texts": [external(series="Queue"), queue("other")]}, {"texts": [external(series="Queue"), queue("queue")]}),
    ("unknown-metric", {"texts": [external(), pods("gpu_power_usage_wats")]}, {"texts": [external(), pods("DCGM_FI_DEV_GPU_UTIL")]}),
    ("wrong-unit", {"texts": [pods("DCGM_FI_PROF_GR_ENGINE_ACTIVE")]}, {"texts": [pods("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "{type: AverageValue, averageValue: 700m}")]}),
    ("wrong-unit", {"texts": [pods(target="{type: AverageValue, averageValue: 700m}")]}, {"texts": [pods()]}),
    ("wrong-unit", {"texts": [pods(target="{type: AverageValue, averageValue: 120}")]}, {"texts": [pods("requests", "{type: AverageValue, averageValue: 120}")]}),
    ("wrong-unit", {"texts": [pods("gpu_memory_used_bytes", "{type: AverageValue, averageValue: 30}")]}, {"texts": [pods("gpu_memory_used_bytes", "{type: AverageValue, averageValue: 30Gi}")]}),
    ("wrong-unit", {"texts": [rule(series="vllm:kv_cache_usage_perc", more="  name: {as: kv}\n"), pods("kv")]}, {"texts": [rule(series="vllm:num_requests_waiting", more="  name: {as: kv}\n"), pods("kv")]}),
    ("wrong-unit", {"texts": [rule(series="used_ratio", more="  name: {as: used}\n"), pods("used")]}, {"texts": [rule(f"avg({M} * 100) {BY}", series="used_ratio", more="  name: {as: used}\n"), pods("used")]}),
    # utilization-target: dcgm-exporter #269
    ("utilization-target", {"texts": [pods(target="{type: Utilization, averageUtilization: 70}")]}, {"texts": [pods()]}),
    # overflow: k8s #126892
    ("overflow", {"texts": [rule(), pods(target="{type: AverageValue, averageValue: 100m}")], "series": 1, "largest": 3e8}, {"texts": [rule(), pods(target="{type: AverageValue, averageValue: 70}")], "series": 1, "largest": 3e8}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "faulty", "sound"), CASES, ids=[f"{at}-{case[0]}" for at, case in enumerate(CASES)]
)
def test_a_check_finds_the_fault_and_lets_the_sound_one_pass(check, faulty, sound):
    assert check in found(**faulty)
    assert check not in found(**sound)


FAULTS = {
    FaultKind.UNKNOWN_KEY: rule(more="  maxAgee: 1m\n"),
    FaultKind.BAD_VALUE: rule(more="  maxAge: -1\n"),
    FaultKind.TEMPLATE: rule("avg(<<.Serie>>)"),
    FaultKind.PATTERN: rule(more="  name: {matches: '(?=x)'}\n"),
    FaultKind.SERIES: rule(series="sum(x)"),
    FaultKind.NAME_REFERENCE: rule(more="  name: {matches: '(.*)', as: $1_x}\n"),
    FaultKind.RESOURCES: rule(resources="{overrides: {pod: {resource: pod}}}"),
    FaultKind.QUERY_MODE: rule(f"avg({M})", more="  queryMode: grouped\n"),
    FaultKind.SAME_NAME: external() + external(series="Queue").partition("\n")[2],
    FaultKind.RESOURCE_RULES: "resourceRules: {cpu: {}}\n",
    FaultKind.ELSEWHERE: "rules: {default: true}\n",
}


@pytest.mark.parametrize("kind", FaultKind)
def test_what_the_loader_refuses_is_a_finding(kind):
    """prometheus-adapter #225: one rule of this kind must not hide the others."""
    (finding,) = judged([FAULTS[kind]]).findings
    assert finding.check == kind
    assert finding.place.line >= 1
    is_served_nevertheless = kind in {FaultKind.RESOURCE_RULES, FaultKind.ELSEWHERE}
    assert (finding.severity is Severity.WARNING) == is_served_nevertheless


def test_a_file_that_cannot_be_read_is_an_error_and_the_others_are_checked():
    read = judged(["rules:\n- a: b: c\n", external(series="Queue")])
    assert [finding.check for finding in read.findings] == ["unreadable", "upper-case-external"]
    assert read.failed


def test_a_query_that_the_backend_refuses_is_an_error():
    subject = subject_of([("x.yaml", rule())])
    place = next(subject.rules()).place
    subject = dataclasses.replace(subject, refusals={place: "bad_data: parse error"})
    (finding,) = report(subject, asked_backend=True).findings
    assert finding.check == "refused-query"
    assert "parse error" in finding.what


def test_every_check_of_rules_and_autoscalers_has_a_case():
    apart = {"unreadable", "refused-query", *FaultKind}
    assert {case[0] for case in CASES} == {check.id for check in CHECKS} - apart


def test_each_check_has_a_name_of_its_own():
    assert len({check.id for check in CHECKS}) == len(CHECKS)


def test_findings_stand_in_the_order_of_the_files():
    texts = [external(series="Queue"), rule("avg(x)", more="  name: {as: status}\n")]
    found_at = [(f.place.file, f.check) for f in judged(texts).findings]
    assert found_at == [
        ("0.yaml", "upper-case-external"),
        ("1.yaml", "no-label-matchers"),
        ("1.yaml", "no-object-label"),
        ("1.yaml", "reserved-name"),
    ]


def test_what_could_not_be_checked_is_said_with_what_it_needs():
    unchecked = {each.check: each for each in judged([rule()]).unchecked}
    assert unchecked["short-window"].lacks == (Need.INTERVAL,)
    assert unchecked["missing-label"].lacks == (Need.BACKEND,)
    assert unchecked["wrong-unit"].lacks == (Need.AUTOSCALERS,)
    assert unchecked["exporter-label"].partly
    assert "no-object-label" not in unchecked


def test_with_everything_given_everything_is_checked():
    assert judged([rule(), pods()], labels={"pod", "namespace"}).unchecked == ()


def test_a_metric_that_only_discovery_could_know_is_not_called_unknown():
    pattern = rule(series='{__name__=~"gpu_.*"}')
    assert "unknown-metric" not in found([pattern, pods("gpu_other")])


def test_a_sound_configuration_has_no_findings():
    texts = [rule(), external(), pods(), queue()]
    assert judged(texts, interval=15).findings == ()
