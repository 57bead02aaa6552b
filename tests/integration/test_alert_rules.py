"""Rules and their tests on the promtool of both Prometheus releases; Alertmanager's example."""

import shutil
import subprocess
from pathlib import Path

import pytest

from alerts.index import GROUPS
from testbed import debian
from testbed.binaries import Unavailable, binary
from testbed.require import skip_or_fail

ALERTS = Path(__file__).parents[2] / "alerts"
EXAMPLE = ALERTS / "alertmanager.yaml"


@pytest.fixture(scope="module", params=["2", "3"])
def promtool(request):
    try:
        if request.param == "2":
            return debian.program("promtool", package="prometheus")
        return str(binary("promtool"))
    except Unavailable as reason:
        skip_or_fail(str(reason))


@pytest.fixture(scope="module")
def amtool():
    try:
        debian.program("prometheus-alertmanager", package="prometheus-alertmanager")
        return debian.program("amtool", package="prometheus-alertmanager")
    except Unavailable as reason:
        skip_or_fail(str(reason))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("group", [group.name for group in GROUPS])
def test_rules_are_valid_and_do_what_their_tests_say(promtool, group):
    code, said = run(promtool, "check", "rules", str(ALERTS / "rules" / f"{group}.yaml"))
    assert code == 0, said
    tests = ALERTS / "tests" / f"{group}_test.yaml"
    code, said = run(promtool, "test", "rules", str(tests))
    assert code == 0, said


def test_a_test_that_expects_something_else_fails(promtool, tmp_path):
    for folder in ("rules", "tests"):
        shutil.copytree(ALERTS / folder, tmp_path / folder)
    rules = tmp_path / "rules" / "gpus.yaml"
    rules.write_text(rules.read_text().replace("gpu_up == 0", "gpu_up == 1"))
    code, said = run(promtool, "test", "rules", str(tmp_path / "tests" / "gpus_test.yaml"))
    assert code != 0
    assert "GPULost" in said


def test_alertmanager_takes_the_example(amtool):
    code, said = run(amtool, "check-config", str(EXAMPLE))
    assert code == 0, said


@pytest.mark.parametrize(
    ("severity", "receiver"),
    [("critical", "pager"), ("warning", "ticket"), ("info", "report")],
)
def test_the_severity_decides_who_is_told(amtool, severity, receiver):
    code, said = run(
        amtool, "config", "routes", "test", f"--config.file={EXAMPLE}",
        f"--verify.receivers={receiver}", f"severity={severity}", "alertname=GPULost",
    )  # fmt: skip
    assert code == 0, said
