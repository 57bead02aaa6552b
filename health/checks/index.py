"""Every check, in the order in which the reference has them. A new one is an entry of its file."""

from types import ModuleType
from typing import Final

from health.checks import (
    board,
    driver,
    memory,
    nvlink,
    pcie,
    presence,
    recovery,
    thermal,
    xid,
)
from health.checks.model import Check

# Titles are for people who look through them.
FAMILIES: Final[tuple[tuple[str, ModuleType], ...]] = (
    ("Presence", presence),
    ("What the driver wants", recovery),
    ("Xids", xid),
    ("Memory errors", memory),
    ("Heat and clocks", thermal),
    ("PCIe", pcie),
    ("NVLink", nvlink),
    ("The board", board),
    ("Driver and exporter", driver),
)
CHECKS: Final[tuple[Check, ...]] = tuple(c for _, family in FAMILIES for c in family.CHECKS)
