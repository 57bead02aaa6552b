"""The generated YAML says what is declared."""

import yaml

from alerts.files import prometheus_rule, rule_file
from alerts.index import GROUPS, alerts
from alerts.model import RUNBOOKS, Group, Recording, Source


def test_a_rule_file_has_the_rules_of_its_group_in_order():
    group = GROUPS[0]
    (written,) = yaml.safe_load(rule_file(group))["groups"]
    assert written["name"] == f"slicewatch-{group.name}"
    assert [rule["alert"] for rule in written["rules"]] == [rule.name for rule in group.rules]


def test_the_prometheus_rule_has_every_alert_with_severity_and_runbook():
    document = yaml.safe_load(prometheus_rule(GROUPS))
    assert (document["apiVersion"], document["kind"]) == (
        "monitoring.coreos.com/v1",
        "PrometheusRule",
    )
    rules = {
        rule["alert"]: rule
        for group in document["spec"]["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    assert rules.keys() == {alert.name for alert in alerts()}
    for alert in alerts():
        rule = rules[alert.name]
        assert rule["labels"]["severity"] == alert.severity
        assert rule["annotations"]["runbook_url"] == f"{RUNBOOKS}/{alert.name}.md"
        assert rule.get("for", "") == alert.hold


def test_an_expression_loses_the_indentation_of_its_source():
    expr = """
            a
              + b
            > 1
            """
    rule = Recording(name="x:y:z", expr=expr, help="", sources=frozenset({Source.EXPORTER}))
    group = Group(name="g", title="", intent="", rules=(rule,), interval="1m")
    (written,) = yaml.safe_load(rule_file(group))["groups"]
    assert written == {
        "name": "slicewatch-g",
        "interval": "1m",
        "rules": [{"record": "x:y:z", "expr": "a\n  + b\n> 1"}],
    }
