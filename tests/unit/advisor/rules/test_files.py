"""Files are sorted out by what they have, and lines stay those of the file."""

import textwrap
from decimal import Decimal

import pytest

from advisor.rules.files import subject_of
from advisor.rules.subject import Source

RULES = """\
rules:
- seriesQuery: up
  resources: {overrides: {node: {resource: node}}}
  metricsQuery: 'sum(up{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
"""
AUTOSCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: infer, namespace: ml}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: infer}
  maxReplicas: 9
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}
  - type: Pods
    pods:
      metric: {name: gpu_utilization}
      target: {type: AverageValue, averageValue: "70"}
  - type: Object
    object:
      describedObject: {kind: Service, name: infer, apiVersion: v1}
      metric: {name: requests}
      target: {type: Value, value: 1500m}
  - type: External
    external:
      metric: {name: queue, selector: {matchLabels: {topic: a}, matchExpressions: [{key: x, operator: Exists}]}}
      target: {type: AverageValue, averageValue: 2k}
"""


def subject(text, file="x.yaml"):
    return subject_of([(file, text)])


def test_metrics_of_an_autoscaler_are_read_without_cpu_and_memory():
    read = subject(AUTOSCALER)
    assert read.unread == ()
    found = [(m.place.line, m.source, m.name, m.target, m.resource) for m in read.metrics]
    assert found == [
        (10, Source.PODS, "gpu_utilization", Decimal(70), "pod"),
        (14, Source.OBJECT, "requests", Decimal("1.5"), "service"),
        (19, Source.EXTERNAL, "queue", Decimal(2000), ""),
    ]
    assert {metric.namespace for metric in read.metrics} == {"ml"}
    assert [each.key for each in read.metrics[2].requirements] == ["topic", "x"]


def test_documents_of_one_file_are_told_apart():
    other = "kind: Service\napiVersion: v1\nmetadata: {name: x}\n"
    read = subject(f"---\n{RULES}--- # next\n{other}---\n{AUTOSCALER}")
    assert len(read.files[0].custom) == 1
    assert read.files[0].custom[0].place.line == 3
    assert read.metrics[0].place.line == 20
    assert read.unread == ()


def test_rules_in_a_config_map_have_the_lines_of_its_file():
    body = textwrap.indent(RULES.replace("<<.GroupBy>>", "<<.Group>>"), "    ")
    read = subject(f"apiVersion: v1\nkind: ConfigMap\ndata:\n  config.yaml: |\n{body}")
    (fault,) = read.files[0].faults
    assert fault.place.line == 8


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("rules:\n- a: b: c\n", 2, "not YAML"),
        ("kind: Service\n", 1, "no rules and no HorizontalPodAutoscalers"),
        ("", 1, "no rules and no HorizontalPodAutoscalers"),
        (AUTOSCALER.replace("autoscaling/v2", "autoscaling/v1"), 1, "autoscaling/v2"),
        (AUTOSCALER.replace("maxReplicas: 9", ""), 1, "maxReplicas"),
        (f"{AUTOSCALER}---\nrules:\n- a: b: c\n", 25, "not YAML"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(text, line, part):
    (unread,) = subject(text).unread
    assert unread[0].line == line
    assert part in f"{unread[1]}; {unread[2]}"


def test_a_config_map_with_rules_of_prometheus_itself_is_passed_over():
    body = textwrap.indent("groups:\n- name: x\n  rules: []\n", "    ")
    read = subject(f"apiVersion: v1\nkind: ConfigMap\ndata:\n  x.yaml: |\n{body}")
    assert read.files == ()


def test_other_keys_of_the_adapters_file_are_not_unknown():
    read = subject(f"{RULES}backends: {{}}\nworkloadMetrics: []\n")
    assert read.files[0].faults == ()
