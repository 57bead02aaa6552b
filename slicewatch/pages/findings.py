"""What a snapshot itself says about the health of a GPU, in words.

The health monitor judges with patience and acts; this is what stands on the page at once, and
nothing follows from it. Each finding leads to a runbook.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from slicewatch.hardware.xids import Tier, meaning_of, tier_of
from slicewatch.pages.message import Finding, Health

if TYPE_CHECKING:
    from slicewatch.pages.node import Rows

# An Xid is news for an hour.
RECENT_SECONDS: Final = 3600.0
FLAGS: Final = {
    "gpu_row_remap_failure": (Health.BAD, "a bad row of memory cannot be remapped",
                              "row_remap_failure"),
    "gpu_row_remap_pending": (Health.WARNING, "a row of memory waits for a reset to be remapped",
                              "row_remap_pending"),
    "gpu_retired_pages_pending": (Health.WARNING, "a page of memory waits to be retired",
                                  "page_retirement_pending"),
    "gpu_ecc_sram_threshold_exceeded": (Health.WARNING, "SRAM errors are over the limit",
                                        "sram_threshold"),
}  # fmt: skip
REASONS: Final = {
    "hw_thermal_slowdown": ("slowed down by heat", "thermal_slowdown"),
    "sw_thermal_slowdown": ("slowed down by heat, by the driver", "thermal_slowdown"),
    "hw_power_brake": ("braked by the power supply", "power_brake"),
}
BAD_TIERS: Final = frozenset({Tier.CORDON})
QUIET_TIERS: Final = frozenset({Tier.RECORD, Tier.REPEAT, Tier.TOLD})


def findings_of(rows: "Rows", row: int, wall_seconds: float | None) -> tuple[Finding, ...]:
    """Return the findings of a GPU, the worst first.

    Args:
        rows: of the snapshot.
        row: the GPU's.
        wall_seconds: now, to tell which Xids are news; None leaves them out.
    """
    order = list(Health).index
    return tuple(sorted(_found(rows, row, wall_seconds), key=lambda f: (order(f.health), f.text)))


def _found(rows: "Rows", row: int, wall_seconds: float | None) -> Iterator[Finding]:
    if not rows.snapshot.up[row] and rows.snapshot.ages[row] is not None:
        yield Finding(health=Health.BAD, text="does not answer", runbook="GPULost")
    if wall_seconds is not None:
        yield from _xids(rows, row, wall_seconds)
    for family, (health, text, runbook) in FLAGS.items():
        if rows.value(family, row) == 1:
            yield Finding(health=health, text=text, runbook=runbook)
    for action in _set(rows, "gpu_recovery_action", row) - {"none"}:
        yield _warning(f"the driver wants {action.replace('_', ' ')}", "recovery_action")
    for reason in _set(rows, "gpu_clock_event_active", row) & REASONS.keys():
        yield _warning(*REASONS[reason])
    for fault in _set(rows, "gpu_fabric_fault", row):
        yield _warning(f"NVLink fabric: {fault.replace('_', ' ')}", "fabric")


def _set(rows: "Rows", family: str, row: int) -> set[str]:
    """Return the labels of a family of flags whose flag is set."""
    return {_label(labels) for labels, value in rows.labelled(family, row).items() if value == 1}


def _warning(text: str, runbook: str) -> Finding:
    return Finding(health=Health.WARNING, text=text, runbook=runbook)


def _xids(rows: "Rows", row: int, wall_seconds: float) -> Iterator[Finding]:
    family = "gpu_xid_last_seen_timestamp_seconds"
    for labels, at in rows.labelled(family, row).items():
        number, ago = int(_label(labels)), wall_seconds - at
        tier = tier_of(number)
        if ago <= RECENT_SECONDS and tier not in QUIET_TIERS:
            bad = tier in BAD_TIERS
            minutes = max(1, round(ago / 60))
            yield Finding(
                health=Health.BAD if bad else Health.WARNING,
                text=f"Xid {number} {minutes} min ago: {meaning_of(number)}",
                runbook="xid_fatal" if bad else "xid_warning",
            )


def _label(text: str) -> str:
    """Return the value of a single label, as of ``xid="79"``."""
    found = re.search(r'"(.*)"', text)
    return found[1] if found else ""
