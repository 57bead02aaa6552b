"""What a check is: declared once, on the pure function that judges."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from exporter.doctor.facts import Facts, NoAnswer, NotKnownError


class Verdict(StrEnum):
    """FAILED: something is lost or wrong. WARNING: it works, but not as well as it could."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"


Judged = tuple[Verdict, str] | None
"""A verdict and what was seen; None for what does not apply to the node."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found; ``remedy`` is empty where there is nothing to mend."""

    check: str
    looks_at: str
    verdict: Verdict
    seen: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check; ``remedy`` says what to do about a warning or a failure."""

    id: str
    looks_at: str
    remedy: str
    judge: Callable[[Facts], Judged]

    def find(self, facts: Facts) -> Finding | None:
        """Return the finding; unknown where a fact is missing, None where it does not apply."""
        try:
            judged = self.judge(facts)
        except NotKnownError as error:
            judged = Verdict.UNKNOWN, str(error)
        if judged is None:
            return None
        verdict, seen = judged
        remedy = self.remedy if verdict in {Verdict.WARNING, Verdict.FAILED} else ""
        return Finding(
            check=self.id, looks_at=self.looks_at, verdict=verdict, seen=seen, remedy=remedy
        )


def check(remedy: str) -> Callable[[Callable[[Facts], Judged]], Check]:
    """Declare a check: its id is the function's name, what it looks at the docstring."""

    def declare(judge: Callable[[Facts], Judged]) -> Check:
        identity = judge.__name__.replace("_", "-")
        return Check(id=identity, looks_at=judge.__doc__ or "", remedy=remedy, judge=judge)

    return declare


def service(identity: str, looks_at: str, remedy: str) -> Check:
    """Declare a check of a neighbour: whatever answers is good."""
    return Check(
        id=identity,
        looks_at=looks_at,
        remedy=remedy,
        judge=lambda facts: answered(facts.services.get(identity)),
    )


def answered(answer: str | NoAnswer | None) -> Judged:
    """Judge by whether there is an answer."""
    if isinstance(answer, NoAnswer):
        return Verdict.FAILED, answer.why
    return None if answer is None else (Verdict.OK, answer)


def listed(faults: Iterable[str], verdict: Verdict, otherwise: str) -> Judged:
    """Judge by a list of faults: with ``verdict`` if there are any, that all is well if not."""
    seen = "; ".join(faults)
    return (verdict, seen) if seen else (Verdict.OK, otherwise)
