"""What runs on a node starts no other program: one that hangs in the driver would never end."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILES = sorted(
    path
    for package in ("exporter", "health", "slicewatch")
    for path in (ROOT / package).rglob("*.py")
)
STARTERS = {
    "subprocess", "multiprocessing", "pty", "create_subprocess_exec", "create_subprocess_shell",
    "subprocess_exec", "subprocess_shell", "system", "popen", "fork", "forkpty", "posix_spawn",
    "posix_spawnp", "execv", "execve", "execvp", "execvpe", "spawnl", "spawnv", "spawnvp",
}  # fmt: skip


def started_in(text):
    """Return the names in a module by which it could start a program."""
    named = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            named |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            named |= {(node.module or "").partition(".")[0], *(a.name for a in node.names)}
        elif isinstance(node, ast.Attribute):
            named.add(node.attr)
    return named & STARTERS


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_starts_one(path):
    """A tool that hung was the check for hung GPUs (gpu-monitoring-tools #46)."""
    assert started_in(path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess",
        "from subprocess import run",
        "import asyncio\nasyncio.create_subprocess_exec('nvidia-smi')",
        "from asyncio import create_subprocess_shell",
        "import os\nos.system('nvidia-smi')",
        "import multiprocessing.pool",
    ],
)
def test_a_module_that_does_is_found(text):
    assert started_in(text)
