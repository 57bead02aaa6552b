"""Xids, by how they are to be taken; each tier is a check, since each ends in another way.

An Xid is told once and leaves nothing to read. So a fault begins with the event; it ends when the
driver says that nothing is to be done, or when the GPU was reset, and until then nothing is known.
What wants no action is over as soon as it is not told again.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from health.case import Case, Poll
from health.checks.model import (
    Action,
    Check,
    CheckId,
    Healthy,
    Judgement,
    Subject,
    Unhealthy,
    Unknown,
)
from health.checks.nvlink import links_are_down
from health.checks.reading import careful
from health.checks.recovery import Wanted, wanted_if_any, was_reset
from health.checks.sightings import BOOT_SLACK_SECONDS, Severity, Sighting, described, heard, seen
from slicewatch.hardware.xids import SUBSYSTEMS, Tier

# So often, on one GPU within the polls that are kept, what is the program's doing may not be.
REPEATS: Final = 3
# The end of one program brings the same Xid many times; the next program is further away.
APART_SECONDS: Final = 30.0
# An event so old, of a GPU for which the driver wants nothing now, has been dealt with.
SETTLED_SECONDS: Final = 300.0
# One so old may have been dealt with in a way that an older driver does not tell.
OLD_SECONDS: Final = 3600.0
HOUR_SECONDS: Final = 3600.0

_TOLD: Final = "told"


def _of(poll: Poll, *tiers: Tier) -> tuple[Sighting, ...]:
    """Return the Xids of these tiers that a poll tells of."""
    return tuple(
        one for one in seen(poll) if (Tier.RECORD if _is_harmless(one) else one.tier) in tiers
    )


def _is_harmless(one: Sighting) -> bool:
    return one.number in SUBSYSTEMS and one.severity is Severity.NONFATAL


def _new(case: Case, tier: Tier) -> tuple[Sighting, ...]:
    """Return the Xids of a tier that the newest poll tells of for the first time.

    A new life of the monitor is told anew of what the exporter keeps, and one of the exporter
    tells anew what the kernel's log keeps. What was dealt with since must not count twice.
    """
    newest, found = case.newest, _of(case.newest, tier)
    runs = {poll.evidence.run for poll in case.polls[-2:]}
    is_same_run = len(case.polls) > 1 and len(runs) == 1
    if is_same_run or not newest.boot_id or _TOLD not in case.baseline:
        return found
    known = case.baseline[_TOLD] + BOOT_SLACK_SECONDS
    return tuple(one for one in found if _since_boot(newest, one) > known)


def _remembered(case: Case, found: Sequence[Sighting]) -> dict[str, float]:
    """Return the baseline after these Xids."""
    return {_TOLD: float(round(max(_since_boot(case.newest, one) for one in found)))}


def _since_boot(poll: Poll, one: Sighting) -> float:
    return poll.evidence.uptime_seconds - one.age_seconds


def _ended(case: Case, *tiers: Tier) -> Judgement:
    """Judge the end of a fault of which the newest poll tells nothing new."""
    if case.raised is None:
        heard(case)
        return Healthy()
    told = [number for number, poll in enumerate(case.polls) if _of(poll, *tiers)]
    since = case.polls[max(told, default=0) :]
    if was_reset(Case(polls=since, thresholds=case.thresholds, raised=case.raised)):
        return Healthy()
    said = wanted_if_any(case)
    if said is None:
        return Unknown(why="no sign of a reset, and the driver does not say what it wants")
    if not said.nothing:
        return Unknown(why="the driver still wants something done")
    return Healthy()


def _named(case: Case, found: Sequence[Sighting]) -> str:
    return described(found, case.newest.gpu)


@careful
def _recorded(case: Case) -> Judgement:
    found = _of(case.newest, Tier.RECORD, Tier.REPEAT, Tier.TOLD)
    if found:
        return Unhealthy(message=_named(case, found))
    heard(case)
    return Healthy()


@careful
def _repeated(case: Case) -> Judgement:
    found = sorted(
        (one for poll in case.polls for one in _of(poll, Tier.REPEAT)), key=lambda one: one.at
    )
    times = sum(later.at - one.at >= APART_SECONDS for one, later in pairwise(found)) + bool(found)
    if times >= REPEATS:
        return Unhealthy(message=f"again and again {_named(case, found)}")
    heard(case)
    return Healthy()


@careful
def _warned(case: Case) -> Judgement:
    found = _of(case.newest, Tier.WARN)
    if found:
        return Unhealthy(message=_named(case, found))
    heard(case)
    return Healthy()


@careful
def _wants_reset(case: Case) -> Judgement:
    found = _unsettled(case, _new(case, Tier.RESET))
    if not found:
        return _ended(case, Tier.RESET)
    return Unhealthy(message=_named(case, found), baseline=_remembered(case, found))


@careful
def _fatal(case: Case) -> Judgement:
    found = _unsettled(case, _new(case, Tier.CORDON))
    if not found:
        return _ended(case, Tier.CORDON)
    is_old = all(one.age_seconds > OLD_SECONDS for one in found)
    return Unhealthy(
        message=_named(case, found),
        action=Action.WARN if is_old and wanted_if_any(case) is None else None,
        at_once=True,
        baseline=_remembered(case, found),
    )


@careful
def _link(case: Case) -> Judgement:
    found = _unsettled(case, _new(case, Tier.LINK))
    if not found:
        return _ended(case, Tier.LINK)
    return Unhealthy(
        message=_named(case, found),
        action=_link_action(case, found),
        baseline=_remembered(case, found),
    )


def _link_action(case: Case, found: Sequence[Sighting]) -> Action:
    """Weigh an error of a link: the driver's word first, then the kernel's text, then the links."""
    said, is_down = wanted_if_any(case), links_are_down(case)
    is_fatal = any(
        one.severity is Severity.FATAL
        and one.number in SUBSYSTEMS
        and SUBSYSTEMS[one.number].resets
        for one in found
    )
    if said is None:
        return Action.CORDON if is_fatal or is_down else Action.WARN
    if not said.nothing and _is_later(said, found):
        return said.action
    # The number alone: more of these mean nothing than mean something.
    is_vague = all(one.number in SUBSYSTEMS and one.severity is Severity.UNTOLD for one in found)
    return Action.RECORD if is_vague and is_down is False else Action.WARN


def _unsettled(case: Case, found: Sequence[Sighting]) -> tuple[Sighting, ...]:
    """Leave out what is told late, for example by a log that is read anew, and long dealt with."""
    said = wanted_if_any(case)
    if said is None or not said.nothing:
        return tuple(found)
    return tuple(one for one in found if said.at - one.at <= SETTLED_SECONDS)


def _is_later(said: Wanted, found: Sequence[Sighting]) -> bool:
    return said.at >= min(one.at for one in found)


@careful
def _unattributed(case: Case) -> Judgement:
    found = seen(case.newest)
    if not found:
        heard(case)
        return Healthy()
    places = sorted({event.pci_bus_id or "a place not told" for event in case.newest.events})
    message = f"of no GPU that NVML lists, at {', '.join(places[:4])}: {described(found)}"
    harmless = {Tier.RECORD, Tier.REPEAT, Tier.TOLD}
    is_harmless = all(one.tier in harmless or _is_harmless(one) for one in found)
    return Unhealthy(message=message, action=Action.RECORD if is_harmless else Action.WARN)


CHECKS: Final = (
    Check(
        id=CheckId("xid_recorded"),
        title="An Xid that is no fault of the GPU, as far as is known.",
        reason="XidSeen",
        action=Action.RECORD,
        judge=_recorded,
    ),
    Check(
        id=CheckId("xid_repeated"),
        title="An Xid of programs that comes again and again on one GPU.",
        reason="XidRepeated",
        clear_seconds=HOUR_SECONDS,
        action=Action.WARN,
        judge=_repeated,
    ),
    Check(
        id=CheckId("xid_warning"),
        title="An Xid that may come from the GPU, or that is not known.",
        reason="XidWarning",
        clear_seconds=HOUR_SECONDS,
        action=Action.WARN,
        judge=_warned,
    ),
    Check(
        id=CheckId("xid_reset"),
        title="An Xid after which the GPU heals itself with its next reset.",
        reason="XidWantsReset",
        tells_events=True,
        action=Action.RESET,
        judge=_wants_reset,
    ),
    Check(
        id=CheckId("xid_link"),
        title="An Xid of an NVLink, weighed by what the driver and the links say.",
        reason="XidOfLink",
        tells_events=True,
        action=Action.CORDON,
        judge=_link,
    ),
    Check(
        id=CheckId("xid_fatal"),
        title="An Xid after which the GPU is not to be relied on.",
        reason="XidFatal",
        tells_events=True,
        action=Action.CORDON,
        judge=_fatal,
    ),
    Check(
        id=CheckId("xid_unattributed"),
        title="An Xid of a GPU that NVML does not list.",
        reason="XidOfUnlistedGPU",
        subject=Subject.NODE,
        clear_seconds=HOUR_SECONDS,
        action=Action.WARN,
        judge=_unattributed,
    ),
)
