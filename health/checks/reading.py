"""What a check may take from a poll: what was just read and is possible, or why there is nothing.

That a board cannot report something, that a read failed, that the driver was let go of for a
repair: each is no evidence, neither for a fault nor for its end. So judges ask here, and nowhere
else; what raises here becomes ``Unknown`` in one place.
"""

from collections.abc import Callable
from functools import wraps
from typing import Final, TypeVar

from health.case import Case, Poll
from health.checks.model import Judgement, Unknown
from slicewatch.catalog.model import COUNT, FLAG, Limits, Probe
from slicewatch.wire import evidence
from slicewatch.wire.evidence import EvidenceError, Gpu

R = TypeVar("R")

# An exporter that has finished no tick for so long says nothing about the present.
STALE_TICK_SECONDS: Final = 60.0
# How late a read may be, beside its probe's interval, before it is of the past.
LATE_SECONDS: Final = 30.0
# As many polls in a row as a state has to be seen in where one of them says little.
SUSTAINED_POLLS: Final = 3
# More than any counter of NVML in whose rise we are interested, less than its words for "none".
ERRORS: Final = Limits(low=0, high=0x7FFFFFEF)


class NoEvidenceError(Exception):
    """A poll does not answer what a check has asked; the message says why."""


def careful(judge: Callable[[Case], Judgement]) -> Callable[[Case], Judgement]:
    """Make a judge say ``Unknown`` where it finds no evidence."""

    @wraps(judge)
    def judged(case: Case) -> Judgement:
        try:
            return judge(case)
        except NoEvidenceError as error:
            return Unknown(why=str(error))

    return judged


def started(poll: Poll) -> Poll:
    """Return the poll if NVML was started and the exporter at work.

    Raises:
        NoEvidenceError: it was not.
    """
    said = poll.evidence
    if said.driver.down:
        raise NoEvidenceError(f"NVML is not started: {said.driver.down}")
    if said.tick_age_seconds is None:
        raise NoEvidenceError("the exporter has read nothing yet")
    if said.tick_age_seconds > STALE_TICK_SECONDS:
        raise NoEvidenceError("the exporter has read nothing for too long")
    return poll


def present(poll: Poll) -> Gpu:
    """Return the GPU, answering or not, as a working exporter has it.

    Raises:
        NoEvidenceError: NVML or the exporter does not work, or the poll has no GPU.
    """
    gpu = started(poll).gpu
    if gpu is None:
        raise NoEvidenceError("the exporter does not know this GPU")
    return gpu


def answering(poll: Poll) -> Gpu:
    """Return the GPU, if it answers.

    Raises:
        NoEvidenceError: it does not, or nobody can tell.
    """
    gpu = present(poll)
    if gpu.silent:
        raise NoEvidenceError(f"the GPU does not answer: {gpu.silent}")
    return gpu


def alive(poll: Poll) -> Gpu:
    """Return the GPU, if something was read of it just now.

    Raises:
        NoEvidenceError: nothing was, as right after a start of the exporter.
    """
    gpu = answering(poll)
    fresh = (
        isinstance(said, evidence.Value) and said.age_seconds <= LATE_SECONDS
        for said in gpu.readings.values()
    )
    if not any(fresh):
        raise NoEvidenceError("nothing was read of the GPU lately")
    return gpu


def read_at(poll: Poll, probe: Probe[R]) -> tuple[float, R]:
    """Return when a probe was read last, on the clock of the polls, and what it read.

    Raises:
        NoEvidenceError: it was not read, not lately, or cannot mean what it says.
    """
    said = answering(poll).readings.get(probe.name)
    if said is None:
        raise NoEvidenceError(f"{probe.name} is not read")
    if isinstance(said, evidence.Unsupported):
        raise NoEvidenceError(f"{probe.name} is not supported: {said.reason}")
    if isinstance(said, evidence.Failed):
        raise NoEvidenceError(f"{probe.name} failed: {said.error}")
    if isinstance(said, evidence.Lost):
        raise NoEvidenceError(f"{probe.name} was not answered: {said.reason}")
    if said.age_seconds > 2 * probe.interval_seconds + LATE_SECONDS:
        raise NoEvidenceError(f"{probe.name} was not read for too long")
    return poll.at - said.age_seconds, _decoded(probe, said)


def read(poll: Poll, probe: Probe[R]) -> R:
    """Return what a probe read last; see ``read_at``."""
    return read_at(poll, probe)[1]


def read_if_any(poll: Poll, probe: Probe[R]) -> R | None:
    """Return what a probe read last; None where that is no evidence."""
    try:
        return read(poll, probe)
    except NoEvidenceError:
        return None


def flag(value: int | None, name: str) -> bool:
    """Return a flag of NVML.

    Raises:
        NoEvidenceError: it is neither 0 nor 1.
    """
    return bool(counted(value, name, FLAG))


def counted(value: int | None, name: str, limits: Limits = ERRORS) -> int:
    """Return a counter of NVML.

    Raises:
        NoEvidenceError: it is not there or not possible.
    """
    if value is None or not limits.hold(value):
        raise NoEvidenceError(f"{name} is not told" if value is None else f"{name} is impossible")
    return value


def rise_per_second(case: Case, probe: Probe[R], count: Callable[[R], int | None]) -> float:
    """Return how fast a counter rises, from the newest reading and the one before it.

    Raises:
        NoEvidenceError: there are no two readings of one start of the driver, or the counter began
            anew between them.
    """
    newest = case.newest
    at, latest = read_at(newest, probe)
    now = counted(count(latest), probe.name, COUNT)
    for poll in reversed(case.polls[:-1]):
        if poll.driver_run != newest.driver_run:
            break
        try:
            then, earlier = read_at(poll, probe)
            before = counted(count(earlier), probe.name, COUNT)
        except NoEvidenceError:
            continue
        if at - then < 1:
            continue  # One reading, as two polls have it.
        if now < before:
            raise NoEvidenceError(f"{probe.name} began anew")
        return (now - before) / (at - then)
    raise NoEvidenceError(f"{probe.name} was read only once")


def _decoded(probe: Probe[R], said: evidence.Value) -> R:
    try:
        reading = evidence.read_as(probe, said)
    except EvidenceError as error:
        raise NoEvidenceError(str(error)) from error
    if probe.consistent is not None and not probe.consistent(reading):
        raise NoEvidenceError(f"{probe.name} contradicts itself")
    return reading
