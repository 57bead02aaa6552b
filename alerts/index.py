"""All groups of rules, in the order in which people should read them."""

from typing import Final

from alerts import (
    autoscaling,
    capacity,
    cordons,
    cost,
    gpus,
    heat_and_power,
    links,
    memory_errors,
    monitoring,
    sharing,
)
from alerts.model import Alert, Group

GROUPS: Final[tuple[Group, ...]] = (
    gpus.GROUP,
    memory_errors.GROUP,
    heat_and_power.GROUP,
    links.GROUP,
    sharing.GROUP,
    capacity.GROUP,
    autoscaling.GROUP,
    monitoring.GROUP,
    cordons.GROUP,
    cost.GROUP,
)


def alerts() -> tuple[Alert, ...]:
    """Return every alert."""
    return tuple(rule for group in GROUPS for rule in group.rules if isinstance(rule, Alert))
