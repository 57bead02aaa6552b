"""What people read of an alert beside its annotations."""

from typing import Final

from alerts.model import Alert

SECTIONS: Final = (
    "## Meaning", "## Impact", "## What to look at", "## What to do", "## False alarms",
)  # fmt: skip


def standing(alert: Alert) -> str:
    """Return the line of an alert's page that says how it is declared."""
    needs = ", ".join(sorted(alert.sources))
    holds = f"after {alert.hold}" if alert.hold else "at once"
    return f"`{alert.severity}` · from: {needs} · fires {holds}"
