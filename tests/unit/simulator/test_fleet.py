"""Fleets: skipping time, who holds what, live control, and the truth about all of it."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.clock import RealTimeClock
from simulator.fleet import Fleet
from simulator.scenario import Garbage, Hang, Lost, MigLayout

MIXED = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB}
      - {model: A100-80GB, mig: [3g.40gb, ~, 1g.10gb, 2g.20gb]}
      - {model: T4, sharing: {mode: time_slicing, replicas: 3}}
workloads:
  - name: whole
    namespace: a
    load: {wave: {low: 0.2, high: 0.9, period: 611s}}
    memory: 30GiB
    pods: [{name: whole-0, container: c, pids: [4711], devices: [{node: n, gpu: 0}]}]
  - name: slices
    namespace: b
    load: {steps: [{at: 10m, level: 0.1}, {at: 1h, level: 0.8}], repeat: 7000s}
    memory: 5GiB
    pods:
      - {name: slices-0, devices: [{node: n, gpu: 1, mig: 0}]}
      - {name: slices-1, from: 30m, until: 3h, devices: [{node: n, gpu: 1, mig: 2}]}
  - name: pool
    namespace: c
    demand: {wave: {low: 0.3, high: 1.6, period: 7m}}
    memory: 2GiB
    pods:
      - {name: pool-0, devices: [{node: n, gpu: 2, replica: 0}]}
      - {name: pool-1, from: 1h, devices: [{node: n, gpu: 2, replica: 2}]}
faults:
  - {kind: lost, node: n, gpu: 0, at: 20m, for: 3m, every: 5h}
  - {kind: mig_layout, node: n, gpu: 1, at: 4h, for: 1h, mig: [7g.80gb]}
  - {kind: driver_gone, node: n, at: 9h, for: 10m}
"""


def state_of(fleet):
    return [
        (
            gpu.state, gpu.mig_devices, gpu.memory, gpu.power_milliwatts, gpu.energy_millijoules,
            gpu.temperature_celsius, gpu.sm_clock_mhz, gpu.utilization_samples(), gpu.processes,
        )
        for gpu in fleet.node("n").gpus
    ]  # fmt: skip


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(1, 50_000), min_size=1, max_size=6))
def test_one_jump_or_many_lead_to_the_same_state(jumps):
    fleet = Fleet.load(MIXED)
    for jump in jumps:
        fleet.advance_to(fleet.now + jump)
        state_of(fleet)
    at_once = Fleet.load(MIXED)
    at_once.advance_to(fleet.now)
    assert state_of(at_once) == state_of(fleet)


def test_the_same_seed_makes_the_same_fleet_and_another_one_another():
    one, same = Fleet.load(MIXED), Fleet.load(MIXED)
    other = Fleet.load("seed: x\n" + MIXED)
    identities = [gpu.identity for gpu in one.node("n").gpus]
    assert identities == [gpu.identity for gpu in same.node("n").gpus]
    assert {gpu.uuid for gpu in other.node("n").gpus}.isdisjoint(one.uuid for one in identities)


def test_the_gpus_of_the_largest_node_have_ascending_addresses_in_nvmls_form():
    fleet = Fleet.load("nodes: [{name: n, gpus: [{model: T4, count: 32}]}]")
    addresses = [gpu.identity.pci_bus_id for gpu in fleet.node("n").gpus]
    assert all(re.fullmatch(r"[0-9A-F]{8}:[0-9A-F]{2}:00\.0", one) for one in addresses)
    assert addresses == sorted(set(addresses))


def test_energy_is_what_the_power_adds_up_to():
    fleet = Fleet.load(MIXED)
    gpu = fleet.node("n").gpus[1]
    joules = 0.0
    for second in range(1200):
        fleet.advance_to(second + 0.5)
        joules += gpu.power_milliwatts / 1000
    fleet.advance_to(1200)
    assert gpu.energy_millijoules / 1000 == pytest.approx(joules, rel=1e-5)
    assert fleet.truth.energy_joules(gpu.uuid, 1200) == pytest.approx(joules, rel=1e-5)


def test_energy_counts_from_the_last_load_of_the_driver():
    fleet = Fleet.load(MIXED)
    gpu = fleet.node("n").gpus[2]
    fleet.advance_to(9 * 3600 - 1)
    before = gpu.energy_millijoules
    fleet.advance_to(9 * 3600 + 10 * 60 + 1)
    after = gpu.energy_millijoules
    assert 10_000 <= after <= 70_000 < before


def test_mig_devices_keep_their_index_and_leave_holes():
    gpu = Fleet.load(MIXED).node("n").gpus[1]
    assert [(d.index, d.profile.name) for d in gpu.mig_devices] == [
        (0, "3g.40gb"), (2, "1g.10gb"), (3, "2g.20gb"),
    ]  # fmt: skip
    assert gpu.max_mig_devices == 7


def test_a_new_layout_has_other_devices_until_it_is_taken_back():
    fleet = Fleet.load(MIXED)
    gpu = fleet.node("n").gpus[1]
    before = gpu.mig_devices
    fleet.advance_to(4 * 3600)
    assert [device.profile.name for device in gpu.mig_devices] == ["7g.80gb"]
    assert fleet.truth.up(before[1].uuid, 3600)
    assert not fleet.truth.up(before[1].uuid, fleet.now)
    fleet.advance_to(5 * 3600)
    assert gpu.mig_devices == before


def test_memory_is_what_the_tenants_have_and_the_driver_keeps():
    fleet = Fleet.load(MIXED)
    whole, partitioned, _ = fleet.node("n").gpus
    memory = whole.memory
    assert memory.used_bytes == 30 * 2**30
    assert memory.total_bytes == sum((memory.used_bytes, memory.free_bytes, memory.reserved_bytes))
    first, second, _ = partitioned.mig_devices
    assert partitioned.mig_memory(first).used_bytes == 5 * 2**30
    assert partitioned.mig_memory(second).used_bytes == 0
    assert partitioned.memory.used_bytes == 5 * 2**30
    assert partitioned.mig_memory(second).total_bytes == second.profile.memory_bytes


def test_processes_name_the_instance_that_they_run_on():
    fleet = Fleet.load(MIXED)
    whole, partitioned, _ = fleet.node("n").gpus
    (process,) = whole.processes
    assert (process.pid, process.gpu_instance_id) == (4711, None)
    (process,) = partitioned.processes
    first = partitioned.mig_devices[0]
    assert process.gpu_instance_id == first.gpu_instance_id
    assert process.compute_instance_id == 0


def test_allocations_are_listed_as_the_kubelet_would():
    fleet = Fleet.load(MIXED)
    whole, partitioned, shared = fleet.node("n").gpus
    found = {
        (a.namespace, a.pod, a.container): (a.resource, a.device_ids)
        for a in fleet.truth.allocations("n", 3600)
    }
    assert found == {
        ("a", "whole-0", "c"): ("nvidia.com/gpu", (whole.uuid,)),
        ("b", "slices-0", "main"): (
            "nvidia.com/mig-3g.40gb",
            (partitioned.mig_devices[0].uuid,),
        ),
        ("b", "slices-1", "main"): (
            "nvidia.com/mig-1g.10gb",
            (partitioned.mig_devices[1].uuid,),
        ),
        ("c", "pool-0", "main"): ("nvidia.com/gpu", (f"{shared.uuid}::0",)),
        ("c", "pool-1", "main"): ("nvidia.com/gpu", (f"{shared.uuid}::2",)),
    }
    assert len(fleet.truth.allocations("n", 60)) == 3


def test_pods_that_share_a_demand_each_take_their_part():
    fleet = Fleet.load("""
nodes: [{name: n, gpus: [{model: T4, count: 3}]}]
workloads:
  - name: w
    demand: 1.2
    pods:
      - {name: p0, devices: [{node: n, gpu: 0}]}
      - {name: p1, devices: [{node: n, gpu: 1}]}
      - {name: p2, from: 100s, devices: [{node: n, gpu: 2}]}
""")
    means = [
        [fleet.truth.mean_utilization(gpu.uuid, *span) for gpu in fleet.node("n").gpus]
        for span in ((0, 100), (100, 200))
    ]
    assert means == [pytest.approx([0.6, 0.6, 0.0]), pytest.approx([0.4, 0.4, 0.4])]


@settings(deadline=None, max_examples=15)
@given(st.sampled_from(["demo", "mixed"]), st.floats(0, 1500), st.floats(1, 600))
def test_what_tenants_got_of_a_device_adds_up_to_how_busy_it_was(name, begin, length):
    fleet = Fleet.named(name)
    for gpu in (gpu for node in fleet.nodes for gpu in node.gpus):
        for uuid in gpu.timeline.stage(begin).loads:
            got = gpu.timeline.tenant_seconds(uuid, (begin, begin + length))
            busy = fleet.truth.busy_seconds(uuid, begin, begin + length)
            assert sum(float(seconds[-1]) for seconds in got.values()) == pytest.approx(busy)


def test_a_tenant_of_a_mig_device_has_what_it_asks_for_there():
    fleet = Fleet.load(MIXED)
    uuid = fleet.node("n").gpus[1].mig_devices[0].uuid
    got = fleet.truth.tenant_busy_seconds(uuid, "b", "slices-0", "main", 700, 1700)
    assert got == pytest.approx(100)
    assert fleet.truth.tenant_busy_seconds(uuid, "b", "slices-1", "main", 700, 1700) == 0


def test_a_node_shared_in_every_way_tells_whose_each_process_is():
    fleet = Fleet.named("mixed")
    fleet.advance_to(150)
    node = fleet.node("gpu-mixed")
    owners = {
        (process.type.value, owner[1:3] if (owner := node.owner_of(process.pid)) else None)
        for gpu in node.gpus
        for process in gpu.processes
    }
    assert owners >= {
        ("compute", ("train-0", "trainer")),
        ("compute", ("pipeline-0", "encoder")),
        ("compute", ("pipeline-0", "ranker")),
        ("mps", ("tagger-2", "main")),
        ("graphics", None),
    }
    by_gpu = [len(gpu.processes) for gpu in node.gpus]
    assert by_gpu == [1, 1, 3, 3, 3, 4, 4, 3]
    assert [
        a.device_ids for a in fleet.truth.allocations("gpu-mixed", 150) if a.pod == "train-0"
    ] == [(node.gpus[0].uuid, node.gpus[1].uuid)]


def test_under_mig_a_gpu_works_by_the_share_of_its_sms():
    fleet = Fleet.load("""
nodes: [{name: n, gpus: [{model: H100-80GB, mig: [3g.40gb, 1g.10gb]}]}]
workloads: [{name: w, load: 1.0, pods: [{name: p, devices: [{node: n, gpu: 0, mig: 0}]}]}]
""")
    gpu = fleet.node("n").gpus[0]
    busy, idle = gpu.mig_devices
    assert fleet.truth.mean_utilization(busy.uuid, 0, 10) == pytest.approx(1)
    assert fleet.truth.mean_utilization(idle.uuid, 0, 10) == 0
    assert fleet.truth.mean_utilization(gpu.uuid, 0, 10) == pytest.approx(60 / 132)


def test_a_load_that_is_set_holds_from_now_on_until_it_is_given_back():
    fleet = Fleet.load(MIXED)
    node = fleet.node("n")
    gpu = node.gpus[0]
    scenario = fleet.truth.mean_utilization(gpu.uuid, 0, 100)
    fleet.advance_to(100)
    node.set_load(gpu.uuid, 1.0)
    fleet.advance_to(200)
    gpu.set_load(None)
    assert fleet.truth.mean_utilization(gpu.uuid, 0, 100) == scenario
    assert fleet.truth.mean_utilization(gpu.uuid, 100, 200) == pytest.approx(1)
    assert fleet.truth.mean_utilization(gpu.uuid, 200, 300) < 0.9


def test_a_load_that_was_set_does_not_change_the_past():
    fleet = Fleet.load(MIXED)
    gpu = fleet.node("n").gpus[2]
    for second in (1000, 2500, 2501, 30_000):
        fleet.advance_to(second)
        before = fleet.truth.busy_seconds(gpu.uuid, 0, second)
        gpu.set_load(second % 7 / 10)
        assert fleet.truth.busy_seconds(gpu.uuid, 0, second) == pytest.approx(before, rel=1e-12)
    assert fleet.truth.mean_utilization(gpu.uuid, 2501, 30_000) == pytest.approx(0.2)


@pytest.mark.parametrize("change", ["load", "fault", "clear"])
def test_what_nobody_looked_at_before_a_change_happened_all_the_same(change):
    fleet = Fleet.load(MIXED)
    whole = fleet.node("n").gpus[0]
    fleet.advance_to(3000)
    if change == "load":
        whole.timeline.set_load(whole.uuid, 1.0, now=3000)
    elif change == "fault":
        fleet.inject(Hang(node="n", gpu=0))
    else:
        fleet.clear()
    assert fleet.truth.busy_seconds(whole.uuid, 1200, 1380) == 0
    assert fleet.truth.mean_utilization(whole.uuid, 0, 1200) < 0.95
    assert not fleet.truth.up(whole.uuid, 1300)


def test_a_load_can_be_set_on_a_mig_device_and_not_on_its_gpu():
    node = Fleet.load(MIXED).node("n")
    gpu = node.gpus[1]
    node.set_load(gpu.mig_devices[2].uuid, 0.25)
    with pytest.raises(ValueError, match="no device"):
        node.set_load(gpu.uuid, 0.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        node.gpus[0].set_load(1.5)


def test_faults_can_be_injected_and_cleared():
    fleet = Fleet.load(MIXED)
    gpu = fleet.node("n").gpus[2]
    fleet.advance_to(50)
    fault = fleet.inject(Lost(node="n", gpu=2))
    assert gpu.state == "lost"
    fleet.advance_to(80)
    fleet.clear(fault)
    assert gpu.state == "up"
    fleet.inject(Hang(node="n", gpu=2, at=10, lasts=5))
    assert [fleet.truth.up(gpu.uuid, at) for at in (40, 60, 85, 92, 96)] == [
        True, False, True, False, True,
    ]  # fmt: skip


def test_clearing_everything_ends_the_faults_of_the_scenario_too():
    fleet = Fleet.load(MIXED)
    gpu = fleet.node("n").gpus[0]
    fleet.advance_to(1201)
    assert gpu.state == "lost"
    fleet.clear()
    assert gpu.state == "up"
    assert fleet.truth.up(gpu.uuid, 1200 + 5 * 3600)
    assert not fleet.truth.up(gpu.uuid, 1200.5)


def test_a_layout_can_be_injected():
    fleet = Fleet.load(MIXED)
    fleet.inject(MigLayout(node="n", gpu=0, mig=("1g.10gb",)))
    assert [d.profile.name for d in fleet.node("n").gpus[0].mig_devices] == ["1g.10gb"]


def test_the_truth_is_clean_while_readings_are_nonsense():
    fleet = Fleet.load(MIXED)
    gpu = fleet.node("n").gpus[0]
    fleet.advance_to(30)
    clean = fleet.truth.energy_joules(gpu.uuid, 30)
    fleet.inject(Garbage(node="n", gpu=0))
    assert gpu.temperature_celsius > 1000
    assert gpu.energy_millijoules > 10**15
    assert fleet.truth.energy_joules(gpu.uuid, 30) == clean


def test_what_the_truth_does_not_know_is_refused():
    fleet = Fleet.load(MIXED)
    with pytest.raises(KeyError):
        fleet.truth.up("GPU-nowhere", 0)
    with pytest.raises(ValueError, match="there is no time between"):
        fleet.truth.mean_utilization(fleet.node("n").gpus[0].uuid, 5, 5)
    with pytest.raises(KeyError, match="no node 'm'"):
        fleet.node("m")


def test_time_does_not_go_back_and_only_stands_still_on_a_manual_clock():
    fleet = Fleet.load(MIXED)
    fleet.advance_to(10)
    with pytest.raises(ValueError, match="cannot go back"):
        fleet.advance_to(9)
    with pytest.raises(TypeError, match="moves by itself"):
        Fleet.load(MIXED, clock=RealTimeClock()).advance_to(1)


def test_a_fleet_in_real_time_moves_by_itself():
    fleet = Fleet.load(MIXED, clock=RealTimeClock())
    gpu = fleet.node("n").gpus[0]
    before = gpu.energy_millijoules
    with fleet.node("n").changed:
        # Nobody notifies, so this waits for the moment.
        fleet.clock.wait(fleet.node("n").changed, until=fleet.now + 0.05, timeout_seconds=None)
    assert gpu.energy_millijoules > before


def test_many_threads_may_read_while_loads_change():
    fleet = Fleet.load(MIXED, clock=RealTimeClock())
    node = fleet.node("n")
    done = threading.Event()

    def read():
        while not done.is_set():
            state_of(fleet)

    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(read) for _ in range(4)]
        for step in range(20):
            node.set_load(node.gpus[0].uuid, step % 11 / 10)
            fleet.clear(fleet.inject(MigLayout(node="n", gpu=1, mig=False)))
        done.set()
        for reader in readers:
            reader.result()
