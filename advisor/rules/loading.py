"""Checks that the loader of rules makes itself: what it refuses is reported as it says."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from advisor.rules.check import Check, Problem, Severity
from advisor.rules.subject import Subject
from slicewatch.promrules.faults import FaultKind

_TITLES: Final = {
    FaultKind.UNKNOWN_KEY: "A key does not exist.",
    FaultKind.BAD_VALUE: "A value is of the wrong kind.",
    FaultKind.TEMPLATE: "A query is no template, or uses what is not supported.",
    FaultKind.PATTERN: "An expression is none of RE2.",
    FaultKind.SERIES: "`seriesQuery` does not select series.",
    FaultKind.NAME_REFERENCE: "`name.as` refers to a group that does not exist, as `$1_x` does.",
    FaultKind.RESOURCES: "Labels are not mapped to objects in a way that can be asked for.",
    FaultKind.QUERY_MODE: "A query cannot be made in the mode that is asked for.",
    FaultKind.SAME_NAME: "Two external metrics differ in case only.",
    FaultKind.RESOURCE_RULES: "`resourceRules` belong to metrics-server.",
    FaultKind.ELSEWHERE: "Rules are used that are not in the file.",
}
# Everything else is served nevertheless.
_WARNINGS: Final = frozenset({FaultKind.RESOURCE_RULES, FaultKind.ELSEWHERE})


def _faults(kind: FaultKind) -> Callable[[Subject], Iterator[Problem]]:
    def judge(subject: Subject) -> Iterator[Problem]:
        for file in subject.files:
            for fault in file.faults:
                if fault.kind is kind:
                    yield Problem(place=fault.place, what=fault.what, fix=fault.fix)

    return judge


def _unread(subject: Subject) -> Iterable[Problem]:
    return (Problem(place=place, what=what, fix=fix) for place, what, fix in subject.unread)


CHECKS: Final = (
    Check(
        id="unreadable",
        title="A file is not YAML, or has nothing that can be checked.",
        severity=Severity.ERROR,
        judge=_unread,
    ),
    *(
        Check(
            id=kind.value,
            title=_TITLES[kind],
            severity=Severity.WARNING if kind in _WARNINGS else Severity.ERROR,
            judge=_faults(kind),
        )
        for kind in FaultKind
    ),
)
