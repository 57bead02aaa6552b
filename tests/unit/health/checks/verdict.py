"""What tests of checks ask: the verdict of one check, by its name."""

from health.checks.index import CHECKS
from health.checks.model import Healthy, Subject, Unhealthy, Unknown

BY_ID = {check.id: check for check in CHECKS}


def judged(check, case):
    """Return what a check says of a case."""
    return BY_ID[check].judge(case)


def is_healthy(check, case):
    """Tell whether a check says that all is well."""
    return isinstance(judged(check, case), Healthy)


def is_unknown(check, case):
    """Tell whether a check says that nothing is known."""
    return isinstance(judged(check, case), Unknown)


def found(check, case):
    """Return action and message of what a check has found; None if it has found nothing."""
    said = judged(check, case)
    if not isinstance(said, Unhealthy):
        return None
    return (BY_ID[check].action if said.action is None else said.action), said.message


def action(check, case):
    """Return what follows from what a check has found; None if it has found nothing."""
    said = found(check, case)
    return None if said is None else said[0]


def actions(case):
    """Return what all checks of its subject that find something ask for, by their names."""
    subject = Subject.NODE if case.newest.gpu is None else Subject.GPU
    asked = {c.id: action(c.id, case) for c in CHECKS if c.subject is subject}
    return {check: one for check, one in asked.items() if one is not None}
