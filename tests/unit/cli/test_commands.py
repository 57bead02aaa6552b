"""The command line: what it lists, and what the long-running processes must not load."""

import os
import signal
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
    for command in ("exporter", "adapter", "health", "demo", "explain", "version"):
        assert command in out


def test_version_says_its_name_and_number():
    assert run("version").stdout.startswith("slicewatch 0")


@pytest.mark.parametrize("process", ["exporter", "adapter", "health"])
def test_a_process_lists_its_settings(process):
    done = run(process, "--help")
    assert done.returncode == 0
    assert "SLICEWATCH_LISTEN" in done.stdout


@pytest.mark.parametrize("process", ["exporter", "adapter", "health"])
def test_an_unknown_flag_is_refused_with_the_nearest(process):
    done = run(process, "--listne=:1")
    assert done.returncode == 2
    assert "did you mean --listen" in done.stderr


def test_the_monitor_may_be_asked_to_run_by_name():
    done = run("health", "run", "--help")
    assert done.returncode == 0
    assert "CHECK_INTERVAL" in done.stdout


def test_the_monitor_refuses_settings_that_cannot_be_meant():
    done = run("health", "--check-interval=abc", "--node-name=n")
    assert done.returncode == 2
    assert "check-interval" in done.stderr


@pytest.mark.parametrize("question", ["status", "simulate", "evidence"])
def test_a_question_about_health_has_a_help_of_its_own(question):
    done = run("health", question, "--help")
    assert done.returncode == 0
    assert f"health {question}" in done.stdout


def test_a_scenario_can_be_played():
    done = run("health", "simulate", "faults", "--for", "5m")
    assert done.returncode == 0
    assert "cordoned for GPU 0: gpu_lost" in done.stdout


def test_an_archive_without_an_exporter_is_refused_in_a_line(tmp_path):
    socket = str(tmp_path / "none.sock")
    done = run("health", "evidence", "--socket", socket, "-o", str(tmp_path / "a.tar.gz"))
    assert done.returncode == 2
    assert done.stderr.startswith(f"slicewatch health evidence: {socket}: there is no socket")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_subcommand_is_refused():
    assert run("exporterr").returncode == 2


def imports_of_a_running(*command):
    """Start a process, wait until it serves or exits, and return every module it imported."""
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", *command],
        stderr=subprocess.PIPE,
        text=True,
        env={key: value for key, value in os.environ.items() if key != "KUBECONFIG"},
    ) as process:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if '"serving"' in line:
                break
        process.send_signal(signal.SIGTERM)
        lines += process.stderr.readlines()
    rows = (line.split("|") for line in lines if line.startswith("import time:"))
    return {row[2].strip() for row in rows}


EXPORTER = ("exporter", "--listen=127.0.0.1:0", "--kubelet-socket=")


@pytest.fixture(scope="module", params=[("cli", *EXPORTER), EXPORTER], ids=["command", "module"])
def imports_of_the_exporter(request):
    return imports_of_a_running(*request.param)


@pytest.mark.parametrize("heavy", ["typer", "kubernetes", "cryptography", "simulator", "grpc"])
def test_the_exporter_does_not_load(heavy, imports_of_the_exporter):
    assert "exporter.app" in imports_of_the_exporter
    assert heavy not in imports_of_the_exporter


def test_the_exporter_loads_nothing_of_rich(imports_of_the_exporter):
    """A blocked import still appears under the package's own name, but no submodule does."""
    assert not [name for name in imports_of_the_exporter if name.startswith("rich.")]


@pytest.mark.parametrize("command", [("cli", "adapter"), ("adapter",)], ids=["command", "module"])
def test_the_adapter_loads_nothing_of_rich(command):
    loaded = imports_of_a_running(*command, "--listen=127.0.0.1:0", "--kubeconfig=nowhere")
    assert "adapter.app" in loaded
    assert not [name for name in loaded if name.startswith("rich.")]


@pytest.fixture(scope="module", params=[("cli", "health"), ("health",)], ids=["command", "module"])
def imports_of_the_monitor(request):
    return imports_of_a_running(*request.param, "--node-name=n", "--kubeconfig=nowhere")


@pytest.mark.parametrize("heavy", ["typer", "pynvml", "simulator", "exporter", "numpy", "grpc"])
def test_the_monitor_does_not_load(heavy, imports_of_the_monitor):
    assert "health.app" in imports_of_the_monitor
    assert heavy not in imports_of_the_monitor
