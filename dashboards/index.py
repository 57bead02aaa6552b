"""All dashboards, and their queries with every choice made."""

import re
from collections.abc import Mapping
from typing import Final

from dashboards import autoscaling, cost, fleet, gpu, health, internals, node, tenants
from dashboards.model import Dashboard

DASHBOARDS: Final[tuple[Dashboard, ...]] = (
    fleet.DASHBOARD,
    node.DASHBOARD,
    gpu.DASHBOARD,
    tenants.DASHBOARD,
    autoscaling.DASHBOARD,
    health.DASHBOARD,
    cost.DASHBOARD,
    internals.DASHBOARD,
)
# What Grafana puts in place of its own words; the shortest range that has a rate.
MACROS: Final = {"__rate_interval": "1m", "__range": "1h", "__interval": "15s"}


def filled(expr: str, choices: Mapping[str, str] | None = None) -> str:
    """Return a query as a server gets it; what is not chosen is all.

    Raises:
        KeyError: Grafana has no such word.
    """
    chosen = MACROS | dict(choices or {})

    def word(found: re.Match[str]) -> str:
        name = found[1]
        return chosen[name] if name.startswith("__") else chosen.get(name, ".*")

    return re.sub(r"\$(\w+)", word, expr)
