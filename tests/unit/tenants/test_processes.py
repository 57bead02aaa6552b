import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from exporter.tenants import cgroups
from exporter.tenants.owners import HOST, Owner
from exporter.tenants.processes import RETRY_SECONDS, HostProcesses
from tests.unit.tenants.machine import (
    ID,
    OTHER_ID,
    OTHER_UID,
    SIDECAR,
    TRAINER,
    UID,
    Machine,
    cgroup,
)

PID = 4711


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def processes(machine):
    with contextlib.closing(machine.processes()) as made:
        yield made


@pytest.fixture
def child():
    """A real process, for its PID."""
    with subprocess.Popen(["sleep", "600"]) as started:
        yield started
        started.kill()


def tick(machine, processes, seconds=RETRY_SECONDS):
    machine.now += seconds
    processes.refresh()


def test_two_containers_of_a_pod_stay_apart(machine, processes):
    """dcgm-exporter #587: with the pod alone each of its containers would get the sum."""
    machine.link(TRAINER, ID)
    machine.link(SIDECAR, OTHER_ID)
    machine.run(10, cgroup(ID))
    machine.run(11, cgroup(OTHER_ID))

    assert [processes.owner(pid) for pid in (10, 11)] == [TRAINER, SIDECAR]


def test_processes_of_two_pods_on_one_gpu_have_two_owners(machine, processes):
    """dcgm-exporter #144."""
    other = Owner(namespace="ml", pod="serve-0", container="main", uid=OTHER_UID)
    machine.link(TRAINER, ID)
    machine.link(other, OTHER_ID)
    machine.run(10, cgroup(ID))
    machine.run(11, cgroup(OTHER_ID, OTHER_UID))

    assert [processes.owner(pid) for pid in (10, 11)] == [TRAINER, other]


def test_a_pod_that_was_given_no_device_owns_its_processes_all_the_same(machine, processes):
    """dcgm-exporter #127 and #138: the kubelet's allocations know nothing of such a pod."""
    machine.link(TRAINER)
    machine.run(PID, cgroup())

    assert processes.owner(PID) == TRAINER


def test_a_process_on_several_gpus_has_one_owner_and_is_read_once(machine, processes):
    """HAMi #445."""
    machine.link(TRAINER)
    machine.run(PID, cgroup())
    first = processes.owner(PID)
    machine.end(PID)

    assert all(processes.owner(PID) is first for _ in range(7))


def test_a_known_process_is_not_read_again_at_later_ticks(machine, child):
    machine.link(TRAINER)
    machine.run(child.pid, cgroup())
    with contextlib.closing(machine.processes(most_pidfds=8)) as processes:
        assert processes.owner(child.pid) == TRAINER
        machine.end(child.pid)
        tick(machine, processes)

        assert processes.owner(child.pid) == TRAINER


def test_a_real_process_is_forgotten_when_it_ends(machine, child):
    machine.link(TRAINER)
    machine.run(child.pid, cgroup())
    with contextlib.closing(machine.processes(most_pidfds=8)) as processes:
        assert processes.owner(child.pid) == TRAINER
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        tick(machine, processes)

        assert processes.owner(child.pid) is None


@pytest.mark.parametrize("most_pidfds", [0, 8])
def test_what_was_read_of_a_process_that_ended_meanwhile_does_not_count(
    machine, child, monkeypatch, most_pidfds
):
    """Its PID may have been given to another before the file was opened."""
    machine.link(TRAINER)
    machine.run(child.pid, cgroup())
    parse = cgroups.placement

    def end_meanwhile(text):
        child.kill()
        child.wait()
        machine.run(child.pid, cgroup(), start=8)
        return parse(text)

    with contextlib.closing(machine.processes(most_pidfds=most_pidfds)) as processes:
        monkeypatch.setattr(cgroups, "placement", end_meanwhile)
        assert processes.owner(child.pid) is None


def test_the_next_process_with_a_pid_is_another_one(machine, processes):
    machine.link(TRAINER)
    machine.run(PID, cgroup(), start=7)
    assert processes.owner(PID) == TRAINER
    machine.run(PID, "0::/init.scope\n", start=8)
    tick(machine, processes, seconds=0)

    assert processes.owner(PID) == HOST


def test_a_zombie_has_no_owner(machine, processes):
    """In cgroup v1 it is at the root, where processes of the host are."""
    machine.run(PID, "1:cpu:/\n", state="Z")

    assert processes.owner(PID) is None


def test_a_process_that_ended_before_it_was_asked_for_is_tried_again_later(machine, processes):
    """dcgm-exporter #599: what could not be found out must not cost a try per tick."""
    machine.link(TRAINER)
    assert processes.owner(PID) is None
    machine.run(PID, cgroup())

    tick(machine, processes, seconds=RETRY_SECONDS / 2)
    assert processes.owner(PID) is None
    tick(machine, processes, seconds=RETRY_SECONDS / 2)
    assert processes.owner(PID) == TRAINER


def test_nothing_is_kept_of_pids_that_are_asked_for_no_more(machine, processes):
    for pid in range(1000, 2000):
        processes.owner(pid)
    tick(machine, processes)

    assert not processes._answers
    assert not processes._retry_at


def test_a_container_is_named_as_soon_as_the_kubelet_has_linked_it(machine, processes):
    machine.run(PID, cgroup())
    assert processes.owner(PID) is None
    machine.link(TRAINER)

    tick(machine, processes)
    assert processes.owner(PID) == TRAINER


def test_an_unnamed_container_is_not_taken_for_the_host(machine, processes):
    """Such as a pause container, or with a log driver that makes no links."""
    machine.run(PID, cgroup())
    machine.run(PID + 1, f"0::/kubepods/pod{UID}\n")

    for _ in range(3):
        assert [processes.owner(pid) for pid in (PID, PID + 1)] == [None, None]
        tick(machine, processes)


def test_an_unnamed_container_is_read_only_once(machine, processes):
    """dcgm-exporter #599."""
    machine.run(PID, cgroup())
    assert processes.owner(PID) is None
    (machine.proc / str(PID) / "cgroup").unlink()
    machine.link(TRAINER)
    tick(machine, processes)

    assert processes.owner(PID) == TRAINER


def test_an_unnamed_process_that_ends_is_forgotten(machine, processes):
    machine.run(PID, cgroup(), start=7)
    assert processes.owner(PID) is None
    machine.run(PID, "0::/\n", start=8)
    machine.link(TRAINER)
    tick(machine, processes)

    assert processes.owner(PID) == HOST


@pytest.mark.parametrize(
    "text", ["", f"2:cpu:/kubepods/pod{UID}/{ID}\n1:pids:/kubepods/pod{OTHER_UID}/{OTHER_ID}\n"]
)
def test_a_process_whose_cgroups_do_not_tell_is_tried_again_later(machine, processes, text):
    machine.link(TRAINER)
    machine.run(PID, text)
    assert processes.owner(PID) is None
    machine.run(PID, cgroup())
    tick(machine, processes)

    assert processes.owner(PID) == TRAINER


def test_an_unreadable_process_has_no_owner(machine, processes):
    machine.run(PID, cgroup())
    (machine.proc / str(PID) / "cgroup").unlink()

    assert processes.owner(PID) is None


def test_the_cgroup_tells_the_uid_where_the_link_does_not(machine, processes):
    (machine.links / f"train-0_ml_main-{ID}.log").touch()
    machine.run(PID, cgroup())

    assert processes.owner(PID) == TRAINER


def test_without_the_links_processes_of_the_host_still_have_an_owner(machine, processes):
    machine.links.rmdir()
    machine.run(PID, cgroup())
    machine.run(PID + 1, "0::/system.slice/slurmd.service\n")

    with capture_logs() as lines:
        for _ in range(3):
            assert [processes.owner(pid) for pid in (PID, PID + 1)] == [None, HOST]
            tick(machine, processes)
    assert len(lines) == 1


def test_a_real_process_is_where_its_own_cgroup_file_says(child):
    place = cgroups.placement(Path(f"/proc/{child.pid}/cgroup").read_text())

    with contextlib.closing(HostProcesses(pid_namespace="any")) as processes:
        assert (processes.owner(child.pid) == HOST) == (place == cgroups.OUTSIDE)


PLACES = {
    "0::/system.slice/cron.service\n": HOST,
    cgroup(ID): TRAINER,
    cgroup(OTHER_ID): SIDECAR,
    "": None,
}
lives = st.dictionaries(st.integers(2, 6), st.sampled_from(sorted(PLACES)))


@settings(max_examples=60)
@given(st.lists(lives, max_size=6), st.data())
def test_whatever_starts_and_ends_answers_are_of_those_that_run(generations, data):
    """Every generation of processes replaces the one before it, PID by PID."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        machine.link(TRAINER, ID)
        machine.link(SIDECAR, OTHER_ID)
        with contextlib.closing(machine.processes()) as processes:
            for number, running in enumerate(generations):
                for pid in range(2, 7):
                    machine.end(pid)
                for pid, text in running.items():
                    machine.run(pid, text, start=number)
                tick(machine, processes)
                for pid in data.draw(st.lists(st.integers(2, 6))):
                    assert processes.owner(pid) == PLACES[running.get(pid, "")]
