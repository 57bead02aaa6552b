"""What every ``Processes`` must do, on the simulated ones and on those of a machine of files."""

import contextlib
from dataclasses import replace

import pytest

from exporter.tenants.owners import HOST, Fault, Owner
from exporter.tenants.simulated import SimulatedProcesses
from simulator.fleet import Fleet
from tests.unit.tenants.machine import ID, OTHER_ID, SIDECAR, TRAINER, UID, Machine, cgroup

TRAINING, BOARD, DAEMON, ENDING, ABSENT = 4711, 4712, 900, 4713, 31337
ONCE_ID = "91de" * 16
ONCE = Owner(namespace="ml", pod="once-0", container="main", uid=UID)
SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: L40S, sharing: {mode: time_slicing, replicas: 4}}
      - {model: A30, sharing: {mode: mps, replicas: 2}}
workloads:
  - name: train
    namespace: ml
    pods:
      - name: train-0
        containers:
          - {name: main, pids: [4711], devices: [{node: n, gpu: 0, replica: 0}]}
          - {name: tensor-board, pids: [4712], devices: [{node: n, gpu: 0, replica: 1}]}
  - name: once
    namespace: ml
    pods:
      - {name: once-0, container: main, until: 10s, pids: [4713],
         devices: [{node: n, gpu: 0, replica: 2}]}
  - name: persistence
    host: true
    pods: [{name: daemon, pids: [900], devices: [{node: n, gpu: 0}]}]
  - name: client
    namespace: ml
    pods: [{name: client-0, devices: [{node: n, gpu: 1, replica: 0}]}]
"""


class Simulated:
    """Processes of a simulated node."""

    def __init__(self, fault=Fault.NONE):
        self._fleet = Fleet.load(SCENARIO)
        node = self._fleet.node("n")
        self.server = node.gpus[1].mps_server_pid
        self.processes = SimulatedProcesses(node, fault=fault)

    def end_one(self):
        self._fleet.advance_to(10)

    def wait(self):
        self._fleet.advance_to(self._fleet.now + 1)


class Host:
    """Processes of a machine."""

    def __init__(self, folder, fault=Fault.NONE):
        namespace = "pid:[4026532001]" if fault else "pid:[4026531836]"
        self._machine = Machine(folder, namespace=namespace)
        self.server = 901
        for owner, container, pid in (
            (TRAINER, ID, TRAINING), (SIDECAR, OTHER_ID, BOARD), (ONCE, ONCE_ID, ENDING),
        ):  # fmt: skip
            self._machine.link(owner, container)
            self._run(pid, cgroup(container), "python3")
        self._run(DAEMON, "0::/system.slice/nvidia-persistenced.service\n", "nvidia-persiste")
        self._run(self.server, "0::/system.slice/mps.service\n", "nvidia-cuda-mps")
        self.processes = self._machine.processes()

    def _run(self, pid, where, comm):
        self._machine.run(pid, where, comm=comm)
        (self._machine.proc / str(pid) / "comm").write_text(f"{comm}\n")

    def end_one(self):
        self._machine.end(ENDING)

    def wait(self):
        self._machine.now += 10


@pytest.fixture(params=["simulated", "host"])
def node_of(request, tmp_path):
    """Make a node, given its fault."""
    with contextlib.ExitStack() as stack:

        def make(fault=Fault.NONE):
            simulated = request.param == "simulated"
            node = Simulated(fault) if simulated else Host(tmp_path, fault)
            stack.callback(node.processes.close)
            return node

        yield make


@pytest.fixture
def node(node_of):
    return node_of()


def container_of(node, pid):
    """Return the owner without the pod's uid, which is made up on one of the two."""
    owner = node.processes.owner(pid)
    return owner and replace(owner, uid="")


def test_each_process_belongs_to_its_container(node):
    """dcgm-exporter #144: two processes in two cgroups are two tenants."""
    assert container_of(node, TRAINING) == replace(TRAINER, uid="")
    assert container_of(node, BOARD) == replace(SIDECAR, uid="")
    assert container_of(node, ENDING) == replace(ONCE, uid="")


def test_the_containers_of_a_pod_share_its_uid(node):
    uids = [node.processes.owner(pid).uid for pid in (TRAINING, BOARD)]
    assert uids[0] == uids[1] != ""


def test_a_pod_is_known_by_its_name_as_its_processes_are(node):
    uid = node.processes.owner(TRAINING).uid
    assert node.processes.pod_uid(TRAINER.namespace, TRAINER.pod) == uid
    assert node.processes.pod_uid(TRAINER.namespace, "other") == ""
    assert node.processes.pod_uid("other", TRAINER.pod) == ""


def test_a_process_of_the_host_has_an_owner_without_names(node):
    assert node.processes.owner(DAEMON) == Owner()


@pytest.mark.parametrize("pid", [ABSENT, 0, -1, 2**22 + 1, 2**32 - 1])
def test_a_pid_without_a_process_has_no_owner(node, pid):
    """nvtop #110, nvitop #79 and #152: drivers report PID 0 and garbage."""
    assert node.processes.owner(pid) is None
    node.processes.refresh()
    assert node.processes.owner(pid) is None
    assert not node.processes.is_mps_server(pid)


def test_answers_stay_as_they_are_while_the_processes_run(node):
    for _ in range(3):
        assert container_of(node, TRAINING) == replace(TRAINER, uid="")
        assert node.processes.owner(DAEMON) == HOST
        node.processes.refresh()
        node.wait()


def test_a_process_that_has_ended_has_no_owner_after_a_refresh(node):
    """dcgm-exporter #140, #16: what has terminated holds nothing any more."""
    before = node.processes.owner(ENDING)
    node.end_one()
    assert node.processes.owner(ENDING) == before
    node.processes.refresh()

    assert node.processes.owner(ENDING) is None
    assert container_of(node, BOARD) == replace(SIDECAR, uid="")


def test_the_server_of_mps_is_known_among_the_processes(node):
    """dcgm-exporter #388: it works for the containers of others, and belongs to none."""
    pids = (node.server, TRAINING, BOARD, DAEMON, ABSENT)
    assert [node.processes.is_mps_server(pid) for pid in pids] == [True] + [False] * 4


def test_a_healthy_node_has_no_fault(node):
    assert node.processes.fault == ""


def test_with_a_fault_no_process_has_an_owner(node_of):
    node = node_of(Fault.PID_NAMESPACE)

    assert node.processes.fault == "pid_namespace"
    assert [node.processes.owner(pid) for pid in (TRAINING, DAEMON, ABSENT)] == [None] * 3
    node.processes.refresh()
    node.wait()
    assert node.processes.owner(TRAINING) is None
    # A PID may be another process's there, whatever that is called.
    assert not node.processes.is_mps_server(node.server)
