"""``alerts.checking``: each rule it holds alerts to is broken once, and is said to be."""

import shutil
from dataclasses import replace

import pytest

from alerts import gpus
from alerts.checking import CHECKOUT, RUNBOOKS, TESTS, faults, series_of
from alerts.index import GROUPS, alerts
from alerts.model import Group, Source

LOST = next(alert for alert in alerts() if alert.name == "GPULost")


@pytest.fixture
def checkout(tmp_path):
    for folder in (RUNBOOKS, TESTS):
        shutil.copytree(CHECKOUT / folder, tmp_path / folder)
    return tmp_path


def with_lost(**changes):
    """Return all groups, one alert of which is changed."""
    changed = replace(LOST, **changes)
    rules = tuple(changed if rule is LOST else rule for rule in gpus.GROUP.rules)
    return (replace(gpus.GROUP, rules=rules), *GROUPS[1:])


def test_nothing_is_wrong_with_what_is_committed():
    assert faults(GROUPS) == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": "LostGPU"}, "LostGPU: its name begins neither with GPU nor with Slicewatch"),
        ({"summary": "It is lost"}, "its summary is no sentence"),
        ({"description": "Two\nlines."}, "its description is no sentence"),
        (
            {"summary": "Profile {{ $labels.profile }}."},
            "it speaks of the label profile, which its expression does not keep",
        ),
        (
            {"expr": "sum by (node) (gpu_upp) > 0"},
            "gpu_upp is neither in the catalog nor recorded",
        ),
        (
            {"sources": frozenset({Source.HEALTH})},
            "its sources are exporter, not health",
        ),
        ({"hold": "3m"}, "lacks the line: `critical` · from: exporter · fires after 3m"),
    ],
)
def test_a_broken_rule_is_named(changes, fault):
    found = faults(with_lost(**changes))
    assert any(fault in line for line in found), found


def test_an_alert_without_a_page_is_named(checkout):
    (checkout / RUNBOOKS / "GPULost.md").unlink()
    assert faults(GROUPS, checkout) == ["GPULost: docs/runbooks/GPULost.md is missing"]


def test_a_page_without_a_section_is_named(checkout):
    page = checkout / RUNBOOKS / "GPULost.md"
    page.write_text(page.read_text().replace("## False alarms", "## Anything else"))
    assert faults(GROUPS, checkout) == [
        "GPULost: docs/runbooks/GPULost.md lacks the heading: ## False alarms"
    ]


def test_a_page_of_nothing_is_named(checkout):
    (checkout / RUNBOOKS / "GPUGone.md").write_text("# GPUGone\n")
    assert faults(GROUPS, checkout) == [
        "docs/runbooks/GPUGone.md belongs to no alert and to no check"
    ]


def test_an_alert_that_is_not_tested_is_named(checkout):
    file = checkout / TESTS / "gpus_test.yaml"
    file.write_text(file.read_text().replace("alertname: GPULost", "alertname: GPUUnhealthy"))
    assert faults(GROUPS, checkout) == [
        "GPULost: no test in alerts/tests makes it fire",
        "GPULost: no test in alerts/tests expects it to stay silent",
    ]


def test_a_name_that_is_declared_twice_is_named():
    twice = Group(name="gpus", title="", intent="", rules=(*gpus.GROUP.rules, LOST))
    assert "GPULost is declared 2 times" in faults((twice, *GROUPS[1:]))


def test_labels_and_texts_are_no_series():
    expr = 'max by (gpu, up) (gpu_up{kind="gpu_lost"} == 0) and on (gpu) up{job="x"}'
    assert series_of(expr) == {"gpu_up", "up"}
