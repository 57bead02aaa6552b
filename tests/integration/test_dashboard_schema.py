"""The generated dashboards against Grafana's schema, as the Grafana Foundation SDK for Go has it."""

import json
import subprocess
from pathlib import Path

import pytest

from dashboards.index import DASHBOARDS
from testbed.binaries import Unavailable, binary
from testbed.require import skip_or_fail

FOLDER = Path(__file__).parents[2] / "dashboards" / "json"
FLEET = FOLDER / "fleet.json"


@pytest.fixture(scope="module")
def faults():
    try:
        program = binary("grafana-schema")
    except Unavailable as reason:
        skip_or_fail(str(reason))

    def ask(file):
        done = subprocess.run(
            [program, str(file)], capture_output=True, text=True, timeout=30, check=False
        )
        assert (done.returncode == 0) == (not done.stdout), done.stderr
        return done.stdout

    return ask


@pytest.mark.parametrize("name", [board.name for board in DASHBOARDS])
def test_a_dashboard_is_what_grafana_takes(faults, name):
    assert faults(FOLDER / f"{name}.json") == ""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"refresh": "30s"', '"refresh": 30', "refresh"),
        ('"expr"', '"expression"', "expression"),
        ('"spanNulls"', '"spanNils"', "spanNils"),
    ],
)
def test_what_grafana_does_not_know_is_named(faults, tmp_path, before, after, said):
    text = FLEET.read_text()
    assert before in text
    broken = tmp_path / "broken.json"
    broken.write_text(text.replace(before, after))
    json.loads(broken.read_text())
    assert said in faults(broken)
