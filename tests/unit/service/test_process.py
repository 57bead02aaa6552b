"""The start of a process: what the user can fix is reported in one line, with status 2."""

import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import sys
from dataclasses import dataclass
from slicewatch.service import logs, process
from slicewatch.service.settings import SettingsError, setting

@dataclass(frozen=True, kw_only=True)
class ToySettings:
    \"\"\"A toy.\"\"\"
    log_level: str = setting("info", help="Level.")
    number: int = setting(1, help="Number.")

class CableError(Exception):
    pass

def prepare(settings):
    async def main():
        print("ran with", settings.number)
        logs.logger("toy").info("running")
        if settings.number == 2:
            raise CableError("the cable is out")
        if settings.number == 3:
            raise RuntimeError("our fault")
    if settings.number == 4:
        raise SettingsError(["number: four", "number: really"])
    return process.Program(main, user_errors=(CableError,))

sys.exit(process.run("toy", ToySettings, prepare, sys.argv[1:], {}))
"""


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PRELUDE), *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_a_main_that_returns_ends_with_0():
    done = run("--number=7")
    assert (done.returncode, done.stdout) == (0, "ran with 7\n")


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (("--number=2",), ["slicewatch toy: the cable is out"]),
        (("--number=4",), ["slicewatch toy: number: four", "slicewatch toy: number: really"]),
    ],
)
def test_an_error_of_the_user_is_one_line_per_fault(arguments, lines):
    done = run(*arguments)
    said = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert (done.returncode, said) == (2, lines)


def test_a_wrong_flag_ends_before_anything_is_prepared():
    done = run("--nmuber=7")
    assert done.returncode == 2
    assert done.stderr == "slicewatch toy: unknown argument --nmuber=7; did you mean --number?\n"


def test_any_other_error_is_logged_with_its_traceback():
    done = run("--number=3")
    assert done.returncode == 1
    assert "RuntimeError: our fault" in done.stderr


@pytest.mark.parametrize(("level", "shown"), [("info", True), ("error", False)])
def test_the_logs_have_the_level_of_the_settings(level, shown):
    done = run(f"--log-level={level}")
    assert ("running" in done.stderr) == shown
