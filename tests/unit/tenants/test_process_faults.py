import contextlib
import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from exporter.tenants.owners import HOST, Fault
from exporter.tenants.processes import HOST_PID_NAMESPACE, HostProcesses
from tests.unit.tenants.machine import Machine

PID = 4711


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_pids_of_another_namespace_are_not_mapped(tmp_path):
    """dcgm-exporter maps PIDs but is deployed without hostPID, so that all of them are wrong."""
    machine = Machine(tmp_path, namespace="pid:[4026532448]")
    machine.run(PID, "0::/\n")

    with capture_logs() as lines, contextlib.closing(machine.processes()) as processes:
        assert processes.fault is Fault.PID_NAMESPACE
        assert processes.owner(PID) is None
    assert "hostPID" in lines[0]["remedy"]


def test_a_node_that_is_a_container_may_have_its_own_pid_namespace(tmp_path):
    machine = Machine(tmp_path, namespace="pid:[4026532448]")
    machine.run(PID, "0::/\n")

    with contextlib.closing(machine.processes(pid_namespace="any")) as processes:
        assert processes.fault is Fault.NONE
        assert processes.owner(PID) == HOST


def test_a_folder_that_is_no_procfs_is_a_fault(tmp_path):
    with contextlib.closing(HostProcesses(proc=tmp_path, containers=tmp_path)) as processes:
        assert processes.fault is Fault.NO_PROC
        assert processes.owner(os.getpid()) is None


@pytest.mark.parametrize("hidden", ["1", "1/cgroup"])
def test_a_procfs_that_hides_others_processes_is_a_fault(machine, hidden):
    """With hidepid=2 a process is not listed, with hidepid=1 it cannot be read."""
    machine.proc.joinpath(hidden).rename(machine.proc / "elsewhere")

    with contextlib.closing(machine.processes()) as processes:
        assert processes.fault is Fault.PERMISSION


def test_our_own_kernel_agrees():
    """On a machine whose PID namespace is not the host's this is the fault, and it is told."""
    with contextlib.closing(HostProcesses()) as processes:
        real = f"pid:[{Path('/proc/self/ns/pid').stat().st_ino}]"
        assert (processes.fault is Fault.PID_NAMESPACE) == (real != HOST_PID_NAMESPACE)
