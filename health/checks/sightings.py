"""Xids as they were seen: one for what NVML and the kernel's log both tell, or tell many times.

Pure, and tolerant of any text: what it cannot read in one is simply not known.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from health.case import Case, Poll
from health.checks.reading import NoEvidenceError, alive
from slicewatch.hardware.xids import (
    SMOOTHING_OFF,
    SMOOTHING_ON,
    UNCORRECTABLE,
    UNCORRECTABLE_DETAILS,
    Tier,
    meaning_of,
    tier_of,
)
from slicewatch.wire.evidence import Event, Gpu, Happening

# Two sources tell of one thing within moments, and a storm tells of it thousands of times.
FOLD_SECONDS: Final = 5.0
# How far the kernel's clock and ours may be apart before an event is of a boot before this one.
BOOT_SLACK_SECONDS: Final = 60.0
NAMED: Final = 4

_SEVERITY: Final = re.compile(r"\b(?P<not>non-?)?fatal\b", re.IGNORECASE)
_LINK: Final = re.compile(r"\bLink (?P<link>\d{1,3})\b")


class Severity(Enum):
    """What the kernel's text says of an error of NVLink 5."""

    FATAL = "fatal"
    NONFATAL = "nonfatal"
    UNTOLD = "untold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One time that an Xid happened.

    Attributes:
        at: on the clock of the polls.
        age_seconds: when the poll that told of it arrived.
        places: GPU instance, and compute instance or -1, of each MIG device that it names.
        text: the kernel's, where it has told.
    """

    number: int
    at: float
    age_seconds: float
    places: frozenset[tuple[int, int]] = frozenset()
    text: str = ""

    @property
    def tier(self) -> Tier:
        """Return how it is taken."""
        return tier_of(self.number)

    @property
    def severity(self) -> Severity:
        """Return what the text says of it."""
        found = _SEVERITY.search(self.text)
        if found is None:
            return Severity.UNTOLD
        return Severity.NONFATAL if found["not"] else Severity.FATAL

    @property
    def link(self) -> int | None:
        """Return the number of the NVLink that the text names."""
        found = _LINK.search(self.text)
        return int(found["link"]) if found else None


def seen(poll: Poll) -> tuple[Sighting, ...]:
    """Return what a poll tells of, the oldest first, without what is of an earlier boot."""
    told = (e for e in poll.events if e.kind is Happening.XID and is_of_this_boot(e, poll))
    return _without_echoes(_folded(sorted(told, key=lambda e: -e.age_seconds), poll.at))


def is_of_this_boot(event: Event, poll: Poll) -> bool:
    """Tell whether an event can have happened since the kernel began."""
    return 0 <= event.age_seconds <= poll.evidence.uptime_seconds + BOOT_SLACK_SECONDS


def heard(case: Case) -> Poll:
    """Return the newest poll if it would have told of an Xid, of a GPU that works.

    Raises:
        NoEvidenceError: nobody listens, some events were lost on the way, or nothing was read of
            the GPU: that it has told of nothing then does not speak for it.
    """
    poll = case.newest
    said = poll.evidence
    if poll.gpu is not None:
        alive(poll)
    if said.listening and said.kernel_log:
        raise NoEvidenceError(f"nobody listens to events: {said.listening}")
    if said.listening and _has_overtaken(case):
        raise NoEvidenceError("the kernel's log was overwritten before it was read")
    if said.missed:
        raise NoEvidenceError("more events than the exporter keeps")
    return poll


def _has_overtaken(case: Case) -> bool:
    """Tell whether records of the kernel's log were lost since the poll before."""
    said = case.newest.evidence
    before = [poll.evidence for poll in case.polls[-2:-1] if poll.evidence.run == said.run]
    return said.kernel_log_lost > sum(one.kernel_log_lost for one in before)


def described(sightings: Iterable[Sighting], gpu: Gpu | None = None) -> str:
    """Return which Xids there were and what they mean, the same however often there were."""
    by_number: dict[int, list[Sighting]] = {}
    for one in sightings:
        by_number.setdefault(one.number, []).append(one)
    parts = [_described(number, by_number[number], gpu) for number in sorted(by_number)]
    more = len(parts) - NAMED
    return "; ".join(parts[:NAMED] + ([f"+{more} more"] if more > 0 else []))


def _folded(events: Sequence[Event], now: float) -> list[Sighting]:
    found: list[Sighting] = []
    latest: dict[int, int] = {}
    for event in events:
        one = _sighting(event, now)
        known = latest.get(one.number)
        if known is not None and one.at - found[known].at <= FOLD_SECONDS:
            found[known] = replace(
                found[known],
                places=found[known].places | one.places,
                text=_gravest(found[known].text, one.text),
            )
            continue
        latest[one.number] = len(found)
        found.append(one)
    return found


def _sighting(event: Event, now: float) -> Sighting:
    place = event.gpu_instance, event.compute_instance
    return Sighting(
        number=event.data,
        at=now - event.age_seconds,
        age_seconds=event.age_seconds,
        places=frozenset()
        if place[0] is None
        else frozenset({(place[0], -1 if place[1] is None else place[1])}),
        text=event.text,
    )


def _gravest(before: str, text: str) -> str:
    """Return the text that says the worse of two things; any rather than none."""
    found = _SEVERITY.search(text)
    is_fatal = found is not None and not found["not"]
    return text if is_fatal or not before else before


def _without_echoes(found: Sequence[Sighting]) -> tuple[Sighting, ...]:
    """Leave out what only adds detail to another one, and what another one has taken back."""
    numbers = {one.number for one in found}
    detailed = UNCORRECTABLE_DETAILS if UNCORRECTABLE in numbers else frozenset()
    smooth_at = max((one.at for one in found if one.number == SMOOTHING_ON), default=None)
    return tuple(
        one
        for one in found
        if one.number not in detailed
        and not (one.number == SMOOTHING_OFF and smooth_at is not None and smooth_at >= one.at)
    )


def _described(number: int, sightings: Sequence[Sighting], gpu: Gpu | None) -> str:
    links = sorted({one.link for one in sightings if one.link is not None})
    places = sorted({place for one in sightings for place in one.places})
    where = [f"link {link}" for link in links] + [_place(place, gpu) for place in places]
    return f"Xid {number}: {meaning_of(number)}" + (f" ({', '.join(where)})" if where else "")


def _place(place: tuple[int, int], gpu: Gpu | None) -> str:
    instance, compute = place
    profiles = {
        device.profile
        for device in (gpu.instances if gpu else ())
        if device.gpu_instance == instance and device.profile
    }
    of_it = f" {min(profiles)}" if profiles else ""
    return f"GPU instance {instance}{of_it}" + (f"/{compute}" if compute >= 0 else "")
