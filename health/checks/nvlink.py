"""NVLinks that were up and are not any more, links with errors, and a GPU's place in the fabric.

How many links should be up is not written anywhere: a board without a bridge has none, one with a
bridge some, and all of that is well. So the most that were up in this boot, once it had settled,
is what later polls are held against.
"""

from typing import Final

from health.case import Case, Poll
from health.checks.model import Action, Check, CheckId, Healthy, Judgement, Unhealthy
from health.checks.reading import (
    ERRORS,
    NoEvidenceError,
    careful,
    read,
    read_at,
    started,
)
from slicewatch.catalog.nvlink import ERROR_COUNTS, STATES
from slicewatch.catalog.readings.nvlink import NvlinkError, NvlinkErrors
from slicewatch.catalog.readings.state import FABRIC_STATES, Fabric, FabricFault, FabricState
from slicewatch.catalog.state import FABRIC

# Links train after the boot, one after the other, and so does a fabric.
SETTLED_SECONDS: Final = 600.0
# As DCGM has it.
CRC_ERRORS_PER_SECOND: Final = 100.0

_LINKS: Final = "links"
_KINDS: Final = tuple(NvlinkError)
_CRC: Final = frozenset({NvlinkError.CRC, NvlinkError.CRC_FLIT, NvlinkError.CRC_DATA})


@careful
def _lost_links(case: Case) -> Judgement:
    now = active_links(case.newest)
    _settled(case.newest)
    usual = case.baseline.get(_LINKS, 0)
    if now < usual:
        return Unhealthy(
            message="fewer NVLinks are up than were in this boot", baseline=case.baseline
        )
    return Healthy(baseline={_LINKS: now})


def active_links(poll: Poll) -> int:
    """Return how many NVLinks are up.

    Raises:
        NoEvidenceError: it is not told, as of a GPU in MIG mode.
    """
    active = read(poll, STATES).active()
    if active is None:
        raise NoEvidenceError("not every NVLink tells its state")
    return active


def links_are_down(case: Case) -> bool | None:
    """Tell whether fewer NVLinks are up than in an earlier poll; None where it is not told."""
    active = [count for poll in case.polls if (count := _active_if_any(poll)) is not None]
    if _active_if_any(case.newest) is None:
        return None
    return active[-1] < max(active)


def _active_if_any(poll: Poll) -> int | None:
    try:
        return active_links(poll)
    except NoEvidenceError:
        return None


def _settled(poll: Poll) -> None:
    said = started(poll).evidence
    if min(said.uptime_seconds, said.driver.seconds) < SETTLED_SECONDS:
        raise NoEvidenceError("the links may still be in training")


@careful
def _link_errors(case: Case) -> Judgement:
    course = _course(case)
    latest = course[-1][1]
    if not any(count is not None for counts in latest.links for count in counts):
        raise NoEvidenceError("no link counts its errors")
    bad = [link for link in range(len(latest.links)) if _is_bad(course, link)]
    if bad:
        return Unhealthy(message=f"errors on NVLink {', '.join(map(str, bad))}")
    return Healthy()


_Course = list[tuple[float, NvlinkErrors]]


def _course(case: Case) -> _Course:
    """Return the readings of this start of the driver, with their times, the oldest first.

    Raises:
        NoEvidenceError: the newest is not there, or none before it.
    """
    course = [read_at(case.newest, ERROR_COUNTS)]
    for poll in reversed(case.polls[:-1]):
        if poll.driver_run != case.newest.driver_run:
            break
        try:
            at, reading = read_at(poll, ERROR_COUNTS)
        except NoEvidenceError:
            continue
        if course[0][0] - at >= 1:
            course.insert(0, (at, reading))
    if len(course) == 1:
        raise NoEvidenceError("the errors of the links were read only once")
    return course


def _is_bad(course: _Course, link: int) -> bool:
    first, (before_at, before), (at, latest) = course[0][1], course[-2], course[-1]
    noise = sum(_rise(before, latest, link, kind) for kind in _CRC)
    # One is enough, and is remembered for as long as the polls are.
    failures = _rise(first, latest, link, NvlinkError.RECOVERY_FAILED)
    return failures > 0 or noise > CRC_ERRORS_PER_SECOND * (at - before_at)


def _rise(before: NvlinkErrors, latest: NvlinkErrors, link: int, kind: NvlinkError) -> int:
    """Return how many errors were added; none where a counter is not there, or began anew."""
    then, now = _count(before, link, kind), _count(latest, link, kind)
    return 0 if then is None or now is None else max(0, now - then)


def _count(errors: NvlinkErrors, link: int, kind: NvlinkError) -> int | None:
    counts = errors.links[link] if link < len(errors.links) else ()
    position = _KINDS.index(kind)
    count = counts[position] if position < len(counts) else None
    return count if count is not None and ERRORS.hold(count) else None


@careful
def _fabric(case: Case) -> Judgement:
    fabric = read(case.newest, FABRIC)
    _settled(case.newest)
    state = FABRIC_STATES[fabric.state]
    if state is FabricState.NOT_STARTED:
        raise NoEvidenceError("the GPU joins no fabric")
    if state is FabricState.IN_PROGRESS:
        return Unhealthy(message="the GPU does not finish joining the fabric")
    if fabric.healthy() == 0:
        return Unhealthy(message=_fault(fabric), reason="FabricFault")
    if fabric.healthy() is None:
        raise NoEvidenceError("the fabric says nothing of the GPU's health")
    return Healthy()


def _fault(fabric: Fabric) -> str:
    if fabric.status:
        return f"the GPU could not join the fabric: NVML's code {fabric.status}"
    faults: list[FabricFault] = [f for f in FabricFault if fabric.faults()[f] == 1]
    return f"the fabric says: {', '.join(f.replace('_', ' ') for f in faults) or 'not healthy'}"


CHECKS: Final = (
    Check(
        id=CheckId("nvlink_down"),
        title="Fewer NVLinks are up than were in this boot.",
        reason="NVLinkDown",
        needs=(STATES,),
        raise_seconds=300,
        grace=True,
        action=Action.CORDON,
        judge=_lost_links,
    ),
    Check(
        id=CheckId("nvlink_errors"),
        title="An NVLink has many CRC errors, or failed to recover.",
        reason="NVLinkErrors",
        needs=(ERROR_COUNTS,),
        raise_seconds=180,
        grace=True,
        action=Action.WARN,
        judge=_link_errors,
    ),
    Check(
        id=CheckId("fabric"),
        title="The GPU cannot use the NVLink fabric in full.",
        reason="FabricNotJoined",
        reasons=("FabricFault",),
        needs=(FABRIC,),
        raise_seconds=300,
        grace=True,
        action=Action.WARN,
        judge=_fabric,
    ),
)
