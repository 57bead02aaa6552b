"""``docs/reference/health-contract.md`` says what the code does: types, reasons, marks, times."""

import re
from pathlib import Path

import pytest

from health import names
from health.actions import cordoning
from health.actions.conditions import HEARTBEAT_SECONDS, LATEST_HEARTBEAT
from health.actions.cordon import EFFECT
from health.caretaker import CLEAR_REFUSED
from health.checks.model import Action, Condition, Subject, Unhealthy
from health.conditions import MESSAGE_BYTES
from health.decision import NodeCondition
from health.policy import Policy
from tests.unit.health.ward import DARK, NODE, NOW, Ward, check

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "health-contract.md").read_text(
    encoding="utf-8"
)
CHECKS = (
    check("cordons", clear_seconds=0.0),
    check("resets", Action.RESET, clear_seconds=0.0),
    check("warns", Action.WARN, clear_seconds=0.0),
    check(
        "blind", Action.WARN, subject=Subject.NODE, condition=Condition.UNMONITORED,
        clear_seconds=0.0,
    ),
)  # fmt: skip


def row(condition):
    """Return the cells of a condition."""
    (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{condition}` |"))
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_each_condition_has_its_row_and_no_other():
    assert set(re.findall(r"^\| `(GPU\w+)` \|", PAGE, re.MULTILINE)) == set(Condition)


@pytest.mark.parametrize("condition", Condition)
def test_the_reason_without_a_problem_is_the_one_that_is_written(condition):
    ward = Ward(*CHECKS)
    said = ward.poll().conditions[condition]
    assert row(condition)[2] == f"`{said.reason}`"
    assert said.present is False


def test_nothing_is_said_before_something_is_known():
    ward = Ward(*CHECKS)
    assert not ward.quiet().conditions


def test_unknown_has_the_reason_that_is_written_and_leaves_faults_as_they_are():
    ward = Ward(*CHECKS)
    ward.says |= {("cordons", 0): NOW, ("blind", NODE): NOW}
    ward.poll()
    ward.says |= {("cordons", 0): DARK, ("cordons", 1): DARK}
    said = ward.poll().conditions
    assert said[Condition.UNHEALTHY].present is True
    assert said[Condition.DEGRADED] == NodeCondition(
        present=None, reason="GPUsNotMonitored", message=said[Condition.DEGRADED].message
    )
    assert said[Condition.UNMONITORED].present is True
    assert "`GPUsNotMonitored`" in PAGE


def test_unmonitored_is_never_unknown():
    ward = Ward(*CHECKS)
    ward.says["blind", NODE] = Unhealthy(message="x", at_once=True)
    seen = {ward.poll().conditions[Condition.UNMONITORED].present}
    seen |= {ward.quiet().conditions[Condition.UNMONITORED].present for _ in range(10)}
    assert None not in seen
    assert row(Condition.UNMONITORED)[3] == "does not occur"


def test_the_marks_are_spelled_as_they_are():
    marks = set(re.findall(r"health\.slicewatch\.dev/[a-z-]*[a-z]", PAGE))
    assert marks == {names.STATE, names.CORDONED, names.HOLD, names.CLEAR, names.TAINT}
    assert f"`{names.TAINT}:{EFFECT}`" in PAGE


def test_the_events_are_those_that_are_said():
    said = {cordoning.HELD, cordoning.TAKEN, cordoning.RETURNED, cordoning.GIVEN_UP}
    assert set(re.findall(r"`(GPUNode\w+|GPUHealth\w+)`", PAGE)) == said | {CLEAR_REFUSED}


def test_sizes_and_times_are_those_of_the_code():
    assert f"at most {MESSAGE_BYTES:,} bytes" in PAGE
    poll_seconds = Policy().interval_seconds
    latest_seconds = LATEST_HEARTBEAT * HEARTBEAT_SECONDS + poll_seconds
    assert (HEARTBEAT_SECONDS / 60, latest_seconds / 60) == (5, 7)
    assert "renewed every five to seven minutes" in PAGE
