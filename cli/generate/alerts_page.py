"""``docs/reference/alerts.md``: every alert and recording rule, for those who load them."""

from typing import Final

from alerts.index import GROUPS
from alerts.model import Alert, Group, Recording
from cli.generate.tables import HEADER, code, table

ALERT_COLUMNS: Final = ("Alert", "Severity", "Fires after", "Series from", "Says")
RECORDING_COLUMNS: Final = ("Series", "Series from", "What it is")

INTRODUCTION: Final = """\
# Alerts and recording rules

Each is declared once, under `alerts/`; this page, `alerts/rules/` and the PrometheusRule are generated
from there. How to load them is in [Alerting](../guides/alerting.md). The name of an alert leads to its
runbook.

**Severity.** `critical`: somebody is woken. `warning`: somebody looks on the same working day. `info`:
nobody is called.

**Series from** says what has to be scraped. Without it the alert is silent: nothing fires because a
series is missing, unless that is what the alert is about.
"""


def alerts_page() -> str:
    """Return the page."""
    return HEADER.format(source="`alerts/`") + "\n" + INTRODUCTION + "".join(map(_section, GROUPS))


def _section(group: Group) -> str:
    alerts = [_alert(rule) for rule in group.rules if isinstance(rule, Alert)]
    recordings = [_recording(rule) for rule in group.rules if isinstance(rule, Recording)]
    tables = [
        *([table(ALERT_COLUMNS, alerts)] if alerts else ()),
        *([table(RECORDING_COLUMNS, recordings)] if recordings else ()),
    ]
    return f"\n## {group.title}\n\n{group.intent} File: `alerts/rules/{group.name}.yaml`.\n\n" + (
        "\n".join(tables)
    )


def _alert(alert: Alert) -> tuple[str, ...]:
    return (
        f"[{alert.name}](../runbooks/{alert.name}.md)",
        str(alert.severity),
        alert.hold or "at once",
        ", ".join(sorted(alert.sources)),
        code(alert.summary),
    )


def _recording(rule: Recording) -> tuple[str, ...]:
    return code(rule.name), ", ".join(sorted(rule.sources)), rule.help
