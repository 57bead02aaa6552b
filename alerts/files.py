"""The YAML of the rules: a file of Prometheus per group, and one PrometheusRule with all."""

from collections.abc import Iterable
from typing import Any, Final

import yaml

from alerts.model import RUNBOOKS, Alert, Group, Recording

HEADER: Final = "# Generated from alerts/ by `make generate`; manual changes are lost.\n"


def rule_file(group: Group) -> str:
    """Return the rule file of a group, as Prometheus loads it."""
    return HEADER + _yaml({"groups": [_group(group)]})


def prometheus_rule(groups: Iterable[Group]) -> str:
    """Return a PrometheusRule of the Prometheus operator with all groups."""
    return HEADER + _yaml({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": "slicewatch",
            "labels": {"app.kubernetes.io/name": "slicewatch"},
        },
        "spec": {"groups": [_group(group) for group in groups]},
    })  # fmt: skip


def _group(group: Group) -> dict[str, Any]:
    interval = {"interval": group.interval} if group.interval else {}
    return {"name": f"slicewatch-{group.name}", **interval, "rules": [*map(_rule, group.rules)]}


def _rule(rule: Alert | Recording) -> dict[str, Any]:
    if isinstance(rule, Recording):
        return {"record": rule.name, "expr": _lines(rule.expr)}
    waits = {"for": rule.hold, "keep_firing_for": rule.keep}
    return {
        "alert": rule.name,
        "expr": _lines(rule.expr),
        **{key: value for key, value in waits.items() if value},
        "labels": {"severity": str(rule.severity), **dict(rule.labels)},
        "annotations": {
            "summary": rule.summary,
            "description": rule.description,
            "runbook_url": f"{RUNBOOKS}/{rule.name}.md",
        },
    }


def _lines(expr: str) -> str:
    """Return an expression without the indentation that it has in the source."""
    lines = [line.rstrip() for line in expr.strip().splitlines()]
    margin = min((len(x) - len(x.lstrip()) for x in lines[1:] if x), default=0)
    return "\n".join([lines[0], *(line[margin:] for line in lines[1:])])


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, which is how people write them."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _yaml(document: object) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=99, allow_unicode=True)
