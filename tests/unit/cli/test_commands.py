"""The command line: what it lists, and that the processes start without what only people need."""

import subprocess
import sys

import pytest


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "cli", *arguments],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_help_lists_every_subcommand():
    out = run("--help").stdout
    for command in ("exporter", "adapter", "demo", "version"):
        assert command in out


def test_version_says_its_name_and_number():
    assert run("version").stdout.startswith("slicewatch 0")


@pytest.mark.parametrize("process", ["exporter", "adapter"])
def test_a_process_lists_its_settings(process):
    done = run(process, "--help")
    assert done.returncode == 0
    assert "SLICEWATCH_LISTEN" in done.stdout


@pytest.mark.parametrize("process", ["exporter", "adapter"])
def test_an_unknown_flag_is_refused_with_the_nearest(process):
    done = run(process, "--listne=:1")
    assert done.returncode == 2
    assert "did you mean --listen" in done.stderr


def test_an_unknown_subcommand_is_refused():
    assert run("exporterr").returncode == 2


@pytest.mark.parametrize("heavy", ["typer", "kubernetes", "cryptography", "simulator"])
def test_the_exporter_does_not_load(heavy):
    script = (
        "import sys; from exporter import main; import exporter.app, exporter.tenants.kubelet;"
        f"sys.exit({heavy!r} in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=50, check=False).returncode == 0
