import contextlib
import errno
import os
import resource
import subprocess
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from exporter.tenants.lifetimes import Lifetimes
from exporter.tenants.processes import PROC
from tests.unit.tenants.machine import Machine


@pytest.fixture
def start():
    """Start a real process that does nothing."""
    with contextlib.ExitStack() as stack:

        def start():
            child = stack.enter_context(subprocess.Popen(["sleep", "600"]))
            stack.callback(child.kill)
            return child

        yield start


@pytest.fixture(params=["pidfd", "start time"])
def lifetimes(request):
    most = 512 if request.param == "pidfd" else 0
    with contextlib.closing(Lifetimes(PROC, most)) as watching:
        yield watching


def kill(child):
    """Return when the process is a zombie."""
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def open_files():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_process_is_watched_until_it_ends(lifetimes, start):
    child, other = start(), start()
    assert lifetimes.begin(child.pid)
    assert lifetimes.begin(other.pid)
    assert not lifetimes.has_ended(child.pid)
    assert lifetimes.ended() == []

    kill(child)

    assert lifetimes.has_ended(child.pid)
    assert not lifetimes.has_ended(other.pid)
    assert lifetimes.ended() == [child.pid]
    assert lifetimes.ended() == []


def test_a_process_that_is_reaped_has_ended(lifetimes, start):
    child = start()
    lifetimes.begin(child.pid)
    child.kill()
    child.wait()

    assert lifetimes.ended() == [child.pid]


def test_a_zombie_does_not_run(lifetimes, start):
    child = start()
    kill(child)

    before = open_files()
    assert not lifetimes.begin(child.pid)
    assert open_files() == before
    assert lifetimes.ended() == []


@pytest.mark.parametrize("pid", [0, -1, 2**22, 2**22 + 1, 2**32 - 1])
def test_no_process_has_an_impossible_pid(lifetimes, pid):
    """nvtop #110: drivers report PID 0 and garbage."""
    assert not lifetimes.begin(pid)


def test_a_forgotten_process_is_not_reported(lifetimes, start):
    child = start()
    lifetimes.begin(child.pid)
    lifetimes.forget(child.pid)
    lifetimes.forget(child.pid)
    kill(child)

    assert lifetimes.ended() == []


def test_no_more_pidfds_are_open_than_allowed(start):
    children = [start() for _ in range(5)]
    before = open_files()
    lifetimes = Lifetimes(PROC, 2)

    assert all(lifetimes.begin(child.pid) for child in children)
    # The two, and what waits for them.
    assert open_files() == before + 3
    for child in children:
        kill(child)
    assert sorted(lifetimes.ended()) == sorted(child.pid for child in children)
    assert open_files() == before + 1
    lifetimes.close()
    assert open_files() == before


def test_every_pidfd_is_closed_at_the_end(start):
    before = open_files()
    lifetimes = Lifetimes(PROC)
    for _ in range(3):
        lifetimes.begin(start().pid)
    lifetimes.close()

    assert open_files() == before


def test_most_files_are_left_to_others(start, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (11, 11))
    before = open_files()

    with contextlib.closing(Lifetimes(PROC)) as lifetimes:
        assert all(lifetimes.begin(start().pid) for _ in range(4))
        assert open_files() == before + 1 + 11 // 4


@pytest.mark.parametrize(
    ("error", "lasting"),
    [(errno.ENOSYS, True), (errno.EPERM, True), (errno.EMFILE, False), (errno.ENOMEM, False)],
)
def test_where_pidfds_are_refused_the_start_time_serves(start, monkeypatch, error, lasting):
    asked = []

    def refuse(pid):
        asked.append(pid)
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "pidfd_open", refuse)
    children = [start(), start()]
    with contextlib.closing(Lifetimes(PROC)) as lifetimes, capture_logs() as lines:
        assert all(lifetimes.begin(child.pid) for child in children)
        kill(children[0])

        assert lifetimes.ended() == [children[0].pid]
    assert len(asked) == len(lines) + (0 if lasting else 2) == (1 if lasting else 2)


@pytest.mark.parametrize("comm", ["a b", "(sd-pam)", ") S 1 (x", "", "7 (x) Z 0 0"])
def test_the_name_of_a_program_may_contain_anything(tmp_path, comm):
    machine = Machine(tmp_path)
    machine.run(50, "", comm=comm, start=7)

    with contextlib.closing(Lifetimes(machine.proc, 0)) as lifetimes:
        assert lifetimes.begin(50)
        assert lifetimes.ended() == []
        machine.run(50, "", comm=comm, start=8)
        assert lifetimes.ended() == [50]


@pytest.mark.parametrize("stat", ["", "50", "50 (x) S 1 2", "50 (x) S" + " ?" * 30])
def test_a_process_whose_state_cannot_be_read_does_not_run(tmp_path, stat):
    machine = Machine(tmp_path)
    machine.run(50, "")
    (machine.proc / "50" / "stat").write_text(stat)

    with contextlib.closing(Lifetimes(machine.proc, 0)) as lifetimes:
        assert not lifetimes.begin(50)
