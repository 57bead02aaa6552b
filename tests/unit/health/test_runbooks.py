"""Runbooks and checks agree: each has the other, and what a page names is there."""

import re
from pathlib import Path

import pytest

from cli.main import QUESTIONS_ABOUT_HEALTH
from health import names
from health.checks.index import CHECKS
from health.checks.presence import LOST, MISSING
from health.conditions import condition_of
from slicewatch.catalog import CATALOG

FOLDER = Path(__file__).parents[3] / "docs" / "runbooks"
INDEX = FOLDER / "README.md"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path != INDEX)
ALL = [INDEX, *PAGES]
SECTIONS = ("Meaning", "Impact", "What to look at", "What to do", "False alarms")
# The words after -d of nvidia-smi(1) that are of use here.
DISPLAYS = {
    "ECC", "PAGE_RETIREMENT", "PERFORMANCE", "POWER", "RESET_STATUS", "ROW_REMAPPER", "TEMPERATURE",
}  # fmt: skip
METRIC = re.compile(r"\b(?:gpu|slicewatch)_[a-z0-9_]+\b")


def facts(check):
    """Return the line of a page that says what its check is declared to do."""
    reasons = ", ".join(f"`{reason}`" for reason in (check.reason, *check.reasons))
    condition = condition_of(check, check.action)
    shown = f"in `{condition}`" if condition else "as an event only"
    raised = f"after {check.raise_seconds / 60:g} min" if check.raise_seconds else "at once"
    settled = ", not before the node has settled" if check.grace else ""
    over = f"{check.clear_seconds / 60:g} min"
    strongest = f"strongest action: {check.action.name.lower()}"
    return f"{reasons} {shown} · {strongest} · raised {raised}{settled} · over after {over}"


def text_of(path):
    return path.read_text(encoding="utf-8")


def test_each_check_has_a_runbook():
    assert {check.id for check in CHECKS} <= {path.stem for path in PAGES}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_page_says_what_its_check_is_declared_to_do(check):
    lines = text_of(FOLDER / f"{check.id}.md").splitlines()
    assert lines[:5] == [f"# {check.id}", "", check.title, "", facts(check)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_answers_the_same_questions_in_the_same_order(path):
    parts = re.split(r"^## (.+)$", text_of(path), flags=re.MULTILINE)
    assert tuple(parts[1::2]) == SECTIONS
    assert all(part.strip() for part in parts[2::2])


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_the_index_leads_from_each_reason_to_its_page(check):
    for reason in (check.reason, *check.reasons):
        assert f"| `{reason}` | [{check.id}]({check.id}.md) |" in text_of(INDEX)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_every_metric_that_is_named_is_in_the_catalog(path):
    known = {metric.name for metric in CATALOG.metrics} | {check.id for check in CHECKS}
    known |= {LOST, MISSING}
    known |= {f"{metric.name}_count" for metric in CATALOG.metrics if metric.buckets}
    spelled = {name for name in METRIC.findall(text_of(path)) if not name.endswith("_")}
    assert spelled - known == set()


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_commands_and_marks_are_spelled_as_they_are(path):
    text = text_of(path)
    asked = set(re.findall(r"slicewatch health (\w+)", text))
    assert asked <= {question for (question,) in QUESTIONS_ABOUT_HEALTH}
    shown = {word for words in re.findall(r"nvidia-smi -q .*?-d ([A-Z_,]+)", text)
             for word in words.split(",")}  # fmt: skip
    assert shown <= DISPLAYS
    marks = set(re.findall(r"health\.slicewatch\.dev/[a-z-]*[a-z]", text))
    assert marks <= {names.STATE, names.CORDONED, names.HOLD, names.CLEAR, names.TAINT}
