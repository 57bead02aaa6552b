"""Processes: in which list, with how much memory, of whom, from when to when."""

import pytest

from simulator.fleet import Fleet
from simulator.scenario import Garbage

MEBIBYTE = 2**20
GIBIBYTE = 2**30


def fleet_of(gpus, workloads):
    return Fleet.load(f"nodes: [{{name: n, gpus: [{gpus}]}}]\nworkloads:\n{workloads}")


MPS = "{model: A30, sharing: {mode: mps, replicas: 4}}"
CLIENTS = """
  - name: w
    memory: 2GiB
    load: 0.4
    pods:
      - {name: p0, pids: [100], devices: [{node: n, gpu: 0, replica: 0}]}
      - {name: p1, pids: [200], devices: [{node: n, gpu: 0, replica: 3}]}
"""


def listed(gpu):
    return [(process.pid, str(process.type), process.used_bytes) for process in gpu.processes]


def test_clients_of_mps_are_in_its_list_and_the_server_computes():
    """dcgm-exporter #388 and #478: who reads the compute list alone sees the server only."""
    gpu = fleet_of(MPS, CLIENTS).node("n").gpus[0]
    server = [process for process in gpu.processes if process.type == "compute"]
    clients = [process for process in gpu.processes if process.type == "mps"]
    assert [(one.pid, one.used_bytes) for one in clients] == [
        (100, 2 * GIBIBYTE),
        (200, 2 * GIBIBYTE),
    ]
    assert [one.used_bytes < 100 * MEBIBYTE for one in server] == [True]
    assert gpu.memory.used_bytes == sum(process.used_bytes for process in gpu.processes)


def test_nobody_owns_the_server_of_mps():
    node = fleet_of(MPS, CLIENTS).node("n")
    (server,) = [one.pid for one in node.gpus[0].processes if one.type == "compute"]
    assert node.owner_of(server) is None
    assert node.owner_of(200)[:3] == ("default", "p1", "main")


def test_there_is_no_server_without_clients():
    gpu = (
        fleet_of(
            MPS,
            "  - {name: w, host: true, memory: 1GiB, pods: [{name: p, pids: [7], "
            "devices: [{node: n, gpu: 0}]}]}",
        )
        .node("n")
        .gpus[0]
    )
    assert listed(gpu) == [(7, "compute", GIBIBYTE)]


def test_processes_of_a_container_share_its_memory():
    fleet = fleet_of(
        "{model: T4}",
        "  - {name: w, processes: 3, memory: 1GiB, pods: [{name: p, pids: [9, 8, 7], "
        "devices: [{node: n, gpu: 0}]}]}",
    )
    gpu = fleet.node("n").gpus[0]
    assert [process.pid for process in gpu.processes] == [7, 8, 9]
    assert sum(process.used_bytes for process in gpu.processes) == GIBIBYTE
    assert {fleet.node("n").owner_of(pid).pod for pid in (7, 8, 9)} == {"p"}


def test_containers_of_a_pod_have_devices_of_their_own():
    """HAMi #863: several containers of one pod with several GPUs."""
    fleet = fleet_of(
        "{model: T4, count: 2}",
        """
  - name: w
    namespace: team
    pods:
      - name: p
        containers:
          - {name: one, pids: [1], devices: [{node: n, gpu: 0}]}
          - {name: two, pids: [2], devices: [{node: n, gpu: 1}]}
""",
    )
    node = fleet.node("n")
    one, two = node.owner_of(1), node.owner_of(2)
    assert (one[:3], two[:3]) == (("team", "p", "one"), ("team", "p", "two"))
    assert one.uid == two.uid
    assert {(a.container, a.device_ids) for a in fleet.truth.allocations("n", 0)} == {
        ("one", (node.gpus[0].uuid,)),
        ("two", (node.gpus[1].uuid,)),
    }


def test_one_process_may_run_on_several_gpus():
    """HAMi #445: the pid is in the list of either GPU."""
    fleet = fleet_of(
        "{model: T4, count: 2}",
        "  - {name: w, load: 0.5, pods: [{name: p, pids: [5, 5], "
        "devices: [{node: n, gpu: 0}, {node: n, gpu: 1}]}]}",
    )
    gpus = fleet.node("n").gpus
    assert [[process.pid for process in gpu.processes] for gpu in gpus] == [[5], [5]]
    for gpu in gpus:
        busy = fleet.truth.tenant_busy_seconds(gpu.uuid, "default", "p", "main", 0, 10)
        assert busy == pytest.approx(5)


def test_pods_differ_in_their_uid_and_keep_it():
    node = fleet_of(MPS, CLIENTS).node("n")
    assert node.owner_of(100).uid != node.owner_of(200).uid
    assert node.owner_of(100) == fleet_of(MPS, CLIENTS).node("n").owner_of(100)


def test_a_container_that_restarts_has_a_new_process_and_the_same_owner():
    fleet = fleet_of(
        "{model: T4}",
        "  - {name: w, load: 0.5, pods: [{name: p, pids: [11], restarts: [1m, 2m], "
        "devices: [{node: n, gpu: 0}]}]}",
    )
    node = fleet.node("n")
    seen = []
    for second in (0, 60, 120):
        fleet.advance_to(second)
        (process,) = node.gpus[0].processes
        assert node.owner_of(process.pid).pod == "p"
        seen.append(process.pid)
    assert seen[0] == 11
    assert len(set(seen)) == 3
    assert node.owner_of(11) is None
    uuid = node.gpus[0].uuid
    assert fleet.truth.tenant_busy_seconds(uuid, "default", "p", "main", 0, 180) == (
        pytest.approx(90)
    )


def test_a_process_ends_with_its_pod():
    fleet = fleet_of(
        "{model: T4}",
        "  - {name: w, pods: [{name: p, from: 10s, until: 12s, pids: [3], "
        "devices: [{node: n, gpu: 0}]}]}",
    )
    node = fleet.node("n")
    owners = []
    for second in (9, 10, 11.9, 12):
        fleet.advance_to(second)
        owners.append((node.owner_of(3) is not None, len(node.gpus[0].processes)))
    assert owners == [(False, 0), (True, 1), (True, 1), (False, 0)]


def test_processes_of_the_host_hold_what_nobody_allocated():
    fleet = fleet_of(
        "{model: L40S, sharing: {mode: time_slicing, replicas: 2}}",
        """
  - {name: x, host: true, graphics: true, load: 0.2, memory: 512MiB,
     pods: [{name: display, pids: [40], devices: [{node: n, gpu: 0}]}]}
  - {name: w, load: 0.5, memory: 1GiB,
     pods: [{name: p, pids: [50], devices: [{node: n, gpu: 0, replica: 0}]}]}
""",
    )
    node, uuid = fleet.node("n"), fleet.node("n").gpus[0].uuid
    assert listed(node.gpus[0]) == [
        (40, "graphics", 512 * MEBIBYTE),
        (50, "compute", GIBIBYTE),
    ]
    assert node.owner_of(40) is None
    assert [one.pod for one in fleet.truth.allocations("n", 0)] == ["p"]
    assert fleet.truth.tenant_busy_seconds(uuid, "", "", "", 0, 10) == pytest.approx(2)


def test_memory_of_a_process_may_be_unknown():
    fleet = fleet_of(MPS, CLIENTS)
    fleet.inject(Garbage(node="n", gpu=0))
    assert {process.used_bytes for process in fleet.node("n").gpus[0].processes} == {None}


def test_a_gpu_that_is_lost_lists_no_process_and_stays_allocated():
    fleet = Fleet.named("faults")
    fleet.advance_to(70)
    assert fleet.node("gpu-faulty").gpus[0].processes == ()
    assert "load-0" in {one.pod for one in fleet.truth.allocations("gpu-faulty", 70)}
