"""All checks, in the order of the documentation, and what a subject lets them look at."""

from typing import Final

from advisor.rules import labels, loading, names, queries, targets
from advisor.rules.check import Need, Report, judged
from advisor.rules.subject import Subject

CHECKS: Final = (
    *loading.CHECKS,
    *queries.CHECKS,
    *labels.CHECKS,
    *names.CHECKS,
    *targets.CHECKS,
)


def report(subject: Subject, *, asked_backend: bool = False) -> Report:
    """Return what is wrong with a subject.

    Args:
        subject: the files, and what is known of their series.
        asked_backend: whether a backend has been asked.
    """
    given = {Need.RULES} if any(True for _ in subject.rules()) else set()
    given |= {Need.AUTOSCALERS} if subject.metrics else set()
    given |= {Need.BACKEND} if asked_backend else set()
    if asked_backend or subject.scrape_interval_seconds is not None:
        given.add(Need.INTERVAL)
    return judged(subject, CHECKS, frozenset(given))
