"""``docs/reference/health-checks.md``: every check of the monitor, and every Xid it knows."""

from types import ModuleType
from typing import Final

from cli.generate.tables import HEADER, code, table
from health.checks.index import FAMILIES
from health.checks.model import Action, Check, Condition
from slicewatch.hardware.xids import XIDS, Boards, Tier, XidFact

COLUMNS: Final = (
    "Check", "Finds", "Reason", "Strongest action", "Condition", "Raised after", "Over after",
    "Reads",
)  # fmt: skip
XID_COLUMNS: Final = ("Xid", "Meaning", "Usual cause", "Taken as", "NVIDIA says first", "Boards")

CONDITIONS: Final = {
    Action.RECORD: None,
    Action.WARN: Condition.DEGRADED,
    Action.RESET: Condition.RESET_REQUIRED,
    Action.CORDON: Condition.UNHEALTHY,
}
TIERS: Final = {
    Tier.RECORD: "recorded",
    Tier.REPEAT: "recorded; again and again on one GPU, a warning",
    Tier.WARN: "a warning",
    Tier.RESET: "a reset at a convenient time",
    Tier.LINK: "weighed by the driver's word, the kernel's text and the links",
    Tier.CORDON: "a cordon, until the driver wants nothing or the GPU was reset",
    Tier.TOLD: "what the driver says",
}
BOARDS: Final = {
    Boards.AMPERE: "Ampere",
    Boards.HOPPER: "Hopper",
    Boards.BLACKWELL: "Blackwell",
    Boards.GRACE: "Grace Blackwell",
}

INTRODUCTION: Final = """\
# Health checks

Each check is declared once, under `health/checks/`; this page is generated from there.

A check says of a GPU, or of the node, that it is healthy, that it is not, or that nothing is
known. What a board cannot report, what was not read lately and what nobody listened to is unknown:
nothing is raised for it, and nothing ends by it.

What to do about a finding is in the [runbook](../runbooks/README.md) of its check.

**Strongest action.** `record`: an event and a metric. `warn`: the condition `GPUDegraded`.
`reset`: the condition `GPUResetRequired`, at a convenient time; running work goes on. `cordon`: the
condition `GPUUnhealthy`, and the node takes no new pods. A check may ask for less than that, as its
finding may be less. Checks of what can be known at all show in `GPUMonitoringUnavailable` and never
cordon.

**Raised after** so many seconds in which every poll has found it; with polls a minute apart, 120
is the third of them. `0` is at once. `settled` marks checks that raise nothing in the first minutes
after a boot or a load of the driver. **Over after** so many seconds in which every poll that knows
has found it well.
"""

XID_INTRODUCTION: Final = """
## The Xids one by one

NVML tells Xids by their numbers, the kernel's log also in words; told by both, one counts once. The
driver's own word on what has to be done outranks the number. A number that is not in this table is
worth a warning, and no more.

A GPU counts as reset since a fault was raised when the node was booted, or when the energy counter,
which begins anew with a load of the driver, has fallen. That NVML was started anew proves nothing:
the exporter does so too, for example when another GPU is lost.

"""


def health_page() -> str:
    """Return the page."""
    sections = (_section(title, family) for title, family in FAMILIES)
    xids = XID_INTRODUCTION + table(XID_COLUMNS, [_xid(fact) for fact in XIDS.values()])
    return (
        HEADER.format(source="`health/checks/`") + "\n" + INTRODUCTION + "".join(sections) + xids
    )


def _section(title: str, family: ModuleType) -> str:
    summary = (family.__doc__ or "").partition("\n\n")[0].strip()
    return f"\n## {title}\n\n{summary}\n\n{table(COLUMNS, [_row(c) for c in family.CHECKS])}"


def _row(check: Check) -> tuple[str, ...]:
    condition = check.condition or CONDITIONS[check.action]
    return (
        code(check.id),
        check.title,
        ", ".join(map(code, (check.reason, *check.reasons))),
        check.action.name.lower(),
        code(condition or ""),
        f"{check.raise_seconds:g}" + (", settled" if check.grace else ""),
        f"{check.clear_seconds:g}",
        ", ".join(code(probe.name) for probe in check.needs),
    )


def _xid(fact: XidFact) -> tuple[str, ...]:
    boards = [name for board, name in BOARDS.items() if board in fact.boards]
    return (
        code(str(fact.number)),
        fact.meaning,
        str(fact.cause),
        TIERS[fact.tier],
        str(fact.remedy),
        "all" if len(boards) == len(BOARDS) else ", ".join(boards),
    )
