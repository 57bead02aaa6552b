"""What a check is: declared once, with what it needs to be able to judge."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from advisor.rules.subject import Subject
from slicewatch.promrules.faults import Place


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """The metric cannot work, or works against its user."""
    WARNING = "warning"
    """It works in some cases, or elsewhere only."""


class Need(StrEnum):
    """What a check has to know; the values say how to provide it."""

    RULES = "a file of rules"
    AUTOSCALERS = "manifests of HorizontalPodAutoscalers"
    INTERVAL = "--scrape-interval or --prometheus"
    BACKEND = "--prometheus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that a check found: where, what is wrong, what to do."""

    place: Place
    what: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check.

    Attributes:
        id: its name in output and documentation.
        title: what is wrong if it finds something, in one clause.
        severity: of everything that it finds.
        judge: pure; returns what is wrong.
        needs: without these it cannot be made.
        sharper_with: with these it finds more, or is surer.
    """

    id: str
    title: str
    severity: Severity
    judge: Callable[[Subject], Iterable[Problem]]
    needs: frozenset[Need] = frozenset()
    sharper_with: frozenset[Need] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem with the check that found it."""

    check: str
    severity: Severity
    place: Place
    what: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchecked:
    """A check that could not be made, or not fully, and what it lacks."""

    check: str
    partly: bool
    lacks: tuple[Need, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that was found, by place, and everything that was not looked at."""

    findings: tuple[Finding, ...]
    unchecked: tuple[Unchecked, ...]

    @property
    def failed(self) -> bool:
        """Tell whether anything is an error."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def judged(subject: Subject, checks: Iterable[Check], given: frozenset[Need]) -> Report:
    """Return what the checks find, as far as what is given allows them to look.

    Args:
        subject: what to judge.
        checks: in the order of the documentation.
        given: what there is to judge by.
    """
    findings: list[Finding] = []
    unchecked: list[Unchecked] = []
    for check in checks:
        missing = check.needs - given
        lacks = tuple(need for need in Need if need in missing | (check.sharper_with - given))
        if lacks:
            unchecked.append(Unchecked(check=check.id, partly=not missing, lacks=lacks))
        if not missing:
            findings.extend(_finding(check, problem) for problem in check.judge(subject))
    findings.sort(key=lambda finding: (finding.place.file, finding.place.line, finding.check))
    return Report(findings=tuple(findings), unchecked=tuple(unchecked))


def _finding(check: Check, problem: Problem) -> Finding:
    return Finding(
        check=check.id,
        severity=check.severity,
        place=problem.place,
        what=problem.what,
        fix=problem.fix,
    )
