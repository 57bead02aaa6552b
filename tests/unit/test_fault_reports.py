"""The pages of public fault reports and the tests agree: who is named is there, both ways."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("fault-reports.md", "adapter-fault-reports.md", "health-fault-reports.md")
PAGE = "\n".join(
    (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") for name in PAGES
)
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
# As "dcgm-exporter #201, #222 and #307", or "nvtop PR #91".
REPORTS = re.compile(
    r"(?P<repository>[A-Za-z][\w-]*)(?: PR)? (?P<numbers>#\d+(?:(?:,| and) #\d+)*)"
)
REPOSITORY = re.compile(
    r"^\| (?P<name>[\w-]+) \| <https://github\.com/[\w-]+/[\w-]+> \|$", re.MULTILINE
)
TEST = re.compile(r"`(?P<path>tests/[\w/]+\.py)::(?P<name>test_\w+)`")
NO_TEST = "None: "


def reports(text):
    """Return each report that a text names, as ``(repository, number)``."""
    return [
        (match["repository"], number)
        for match in REPORTS.finditer(text)
        for number in re.findall(r"\d+", match["numbers"])
    ]


def rows():
    """Return the four cells of every row that is about reports."""
    lines = (line.split("|") for line in PAGE.splitlines() if line.startswith("|"))
    cells = [[cell.strip() for cell in line[1:-1]] for line in lines]
    return [row for row in cells if len(row) == 4 and row[0] not in {"Reports", "---"}]


ROWS = rows()
REPOSITORIES = {match["name"] for match in REPOSITORY.finditer(PAGE)}


@cache
def source(path):
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def functions(path):
    nodes = ast.walk(ast.parse(source(path)))
    return {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_names_tests_that_are_there_or_says_why_there_are_none(row):
    cited, wrong, done, kept = row
    assert reports(cited)
    assert wrong
    assert done
    named = TEST.findall(kept)
    assert bool(named) != kept.startswith(NO_TEST)
    assert [f"{path}::{name}" for path, name in named if name not in functions(path)] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_tests_of_a_row_name_its_reports(row):
    """Who changes such a test sees what it is there for."""
    texts = [source(path) for path, _ in TEST.findall(row[-1])]
    numbers = [number for _, number in reports(row[0])] if texts else []
    unnamed = [n for n in numbers if not any(re.search(rf"#{n}\b", text) for text in texts)]
    assert unnamed == []


def test_each_report_has_one_row_and_a_repository_that_is_listed():
    listed = [report for row in ROWS for report in reports(row[0])]
    assert len(listed) == len(set(listed))
    assert {repository for repository, _ in listed} == REPOSITORIES


def test_every_report_that_a_test_names_has_a_row():
    listed = {report for row in ROWS for report in reports(row[0])}
    named = {
        report
        for path in TESTS
        for report in reports(path.read_text(encoding="utf-8"))
        if report[0] in REPOSITORIES
    }
    assert named - listed == set()
