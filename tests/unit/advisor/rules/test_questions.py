"""What a backend is asked for rules and autoscalers, and what cannot be asked."""

import pytest

from advisor.rules.files import subject_of
from advisor.rules.questions import result_questions, series_questions, trial_questions

RULES = """\
rules:
- seriesQuery: 'gpu{pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
- seriesQuery: 'util{pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
  queryMode: exact
externalRules:
- seriesQuery: queue
  metricsQuery: '<<if .LabelValuesByName.topic>>sum(<<.Series>>{<<.LabelMatchers>>})<<end>>'
"""
HEAD = (
    "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: x}\n"
    "spec:\n  maxReplicas: 3\n  scaleTargetRef: {kind: Deployment, name: x}\n  metrics:\n"
)


def subject(metric=""):
    files = [("rules.yaml", RULES)]
    return subject_of(files + ([("hpa.yaml", f"{HEAD}  - {{{metric}}}\n")] if metric else []))


def test_each_rule_is_tried_unless_it_needs_a_certain_selector():
    assert [query for _, query in trial_questions(subject())] == [
        'avg(gpu{namespace="default",pod!=""}) by (pod)',
        'avg(util{namespace="default",pod="x"}) by (pod)',
    ]


def test_the_series_of_every_rule_are_asked_for():
    assert [match for _, match in series_questions(subject())] == [
        'gpu{pod!=""}',
        'util{pod!=""}',
        "queue",
    ]


@pytest.mark.parametrize(
    ("metric", "queries"),
    [
        ("type: Pods, pods: {metric: {name: gpu}, target: {type: AverageValue, averageValue: 1}}",
         ['avg(gpu{namespace="default",pod!=""}) by (pod)']),
        ("type: Pods, pods: {metric: {name: util}, target: {type: AverageValue, averageValue: 1}}", []),
        ("type: Pods, pods: {metric: {name: none}, target: {type: AverageValue, averageValue: 1}}", []),
        (("type: External, external: {metric: {name: QUEUE, selector: {matchLabels: {topic: a}}}, "
         "target: {type: Value, value: 1}}"), ['sum(queue{topic="a",namespace="default"})']),
        ("type: External, external: {metric: {name: queue}, target: {type: Value, value: 1}}", []),
    ],
)  # fmt: skip
def test_a_metric_of_an_autoscaler_is_asked_as_the_adapter_would(metric, queries):
    """By name of pods it cannot be asked, since nobody knows the pods."""
    assert [query for _, query in result_questions(subject(metric))] == queries
