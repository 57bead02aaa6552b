"""vGPUs of a host: shares by policy, utilization, the scheduler's log; licenses of guests."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import reading
from simulator.errors import ScenarioError
from simulator.fleet import Fleet
from simulator.scenario import Garbage, Lost

SECOND_NS = 1_000_000_000


def host(*loads, policy="best_effort", extra=""):
    vgpus = "\n".join(
        f"          - {{vm: vm{n}, type: NVIDIA L40S-12Q, memory: 12GiB, used: {n + 1}GiB, "
        f"load: {load}, mix: {{dram: 0.5, encoder: 0.25}}, {extra}}}"
        for n, load in enumerate(loads)
    )
    return Fleet.load(f"""
nodes:
  - name: n
    gpus:
      - model: L40S
        scheduler: {{policy: {policy}, time_slice: 5ms}}
        vgpus:
{vgpus}
""")


def gpu_of(fleet):
    return fleet.node("n").gpus[0]


def wait_ratio(fleet, vm=None, begin=0, end=100):
    return fleet.truth.vgpu_wait_ratio(gpu_of(fleet).uuid, vm, begin, end)


def busy(fleet, end=100):
    return fleet.truth.mean_utilization(gpu_of(fleet).uuid, 0, end)


def test_vgpus_are_listed_with_their_memory():
    fleet = host(0.1, 0.2)
    first, second = gpu_of(fleet).vgpu_host.instances()
    assert (first.vm_name, first.type_name) == ("vm0", "NVIDIA L40S-12Q")
    assert (first.total_bytes, first.used_bytes) == (12 * 2**30, 2**30)
    assert second.used_bytes == 2 * 2**30
    assert len({first.id, second.id, first.uuid, second.uuid, first.vm, second.vm}) == 6
    assert gpu_of(fleet).memory.used_bytes == 2 * 12 * 2**30
    assert len(gpu_of(fleet).processes) == 2


def test_a_gpu_without_vgpus_is_no_host():
    fleet = Fleet.load("nodes: [{name: n, gpus: [{model: T4}]}]")
    assert gpu_of(fleet).vgpu_host is None


def test_nobody_waits_while_there_is_enough():
    fleet = host(0.3, 0.4)
    assert wait_ratio(fleet) == 0
    assert busy(fleet) == pytest.approx(0.7)


@pytest.mark.parametrize("policy", ["best_effort", "equal_share", "fixed_share"])
def test_four_saturated_machines_each_wait_three_quarters_of_the_time(policy):
    fleet = host(1, 1, 1, 1, policy=policy)
    assert wait_ratio(fleet, "vm2") == pytest.approx(0.75)
    assert busy(fleet) == pytest.approx(1)


@pytest.mark.parametrize(
    ("policy", "granted"), [("best_effort", 0.9), ("equal_share", 0.5), ("fixed_share", 0.25)]
)
def test_who_is_alone_busy_gets_what_the_policy_grants(policy, granted):
    fleet = host(0.9, 0, policy=policy)
    assert busy(fleet) == pytest.approx(granted)
    waits = 1 - granted / 0.9
    assert wait_ratio(fleet, "vm0") == pytest.approx(waits / (waits + granted))
    assert wait_ratio(fleet, "vm1") is None


def test_weights_count_where_vgpus_are_served_as_needed():
    fleet = Fleet.load("""
nodes:
  - name: n
    gpus:
      - model: L40S
        vgpus:
          - {vm: a, type: t, memory: 12GiB, load: 1, weight: 3}
          - {vm: b, type: t, memory: 12GiB, load: 1}
""")
    assert wait_ratio(fleet, "a") == pytest.approx(0.25)
    assert wait_ratio(fleet, "b") == pytest.approx(0.75)


def test_utilization_of_each_vgpu_is_its_part_of_the_gpu():
    fleet = host(0.9, 0.3, 0.9)
    fleet.advance_to(60)
    samples = gpu_of(fleet).vgpu_host.samples()
    assert [sample.sm_percent for sample in samples] == [35, 30, 35]
    assert [sample.encoder_percent for sample in samples] == [9, 8, 9]
    newest = samples[0].at_us
    assert newest <= fleet.clock.epoch_us + 60_000_000
    assert gpu_of(fleet).vgpu_host.samples(newest) == ()


def test_samples_of_vgpus_begin_anew_with_the_gpu():
    fleet = host("{steps: [{at: 0s, level: 1}, {at: 40s, level: 0.5}]}")
    fleet.advance_to(40)
    fleet.inject(Lost(node="n", gpu=0, lasts=1))
    fleet.advance_to(43)
    assert [s.sm_percent for s in gpu_of(fleet).vgpu_host.samples()] == [50]


def test_samples_of_vgpus_are_nonsense_while_every_reading_is():
    fleet = host(0.5)
    fleet.advance_to(10)
    fleet.inject(Garbage(node="n", gpu=0))
    assert gpu_of(fleet).vgpu_host.samples()[0].sm_percent == 2**32 - 1


def by_runlist(entries):
    found = {}
    for entry in entries:
        found.setdefault(entry.runlist_id, []).append(entry)
    return found


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.floats(0.05, 1), min_size=1, max_size=4),
    st.sampled_from(["best_effort", "equal_share", "fixed_share"]),
    st.floats(1, 5000),
)
def test_two_entries_of_a_vgpu_tell_how_long_it_waited(loads, policy, at):
    fleet = host(*loads, policy=policy)
    fleet.advance_to(at)
    names = {one.id: one.vm_name for one in gpu_of(fleet).vgpu_host.instances()}
    epoch_ns = 1000 * fleet.clock.epoch_us
    for runlist, entries in by_runlist(gpu_of(fleet).vgpu_host.log()).items():
        first, last = entries[0], entries[-1]
        begin, end = ((e.timestamp_ns - epoch_ns) / SECOND_NS for e in (first, last))
        ran = last.time_run_total_ns - first.time_run_total_ns
        waited = last.cumulative_preemption_ns - first.cumulative_preemption_ns
        if end - begin > 0.1:
            true = wait_ratio(fleet, names[runlist], begin, end)
            assert waited / (ran + waited) == pytest.approx(true, abs=1e-4)


def test_the_log_keeps_two_hundred_slices_in_their_order():
    fleet = host(1, 1)
    fleet.advance_to(30)
    entries = gpu_of(fleet).vgpu_host.log()
    assert len(entries) == 200
    assert {entry.target_time_slice_ns for entry in entries} == {5_000_000}
    steps = {later.timestamp_ns - one.timestamp_ns for one, later in pairwise(entries)}
    assert steps == {5_000_000}
    # Drawn by their shares, which are equal.
    assert all(60 <= len(of_one) <= 140 for of_one in by_runlist(entries).values())
    assert gpu_of(fleet).vgpu_host.log() == entries


def test_nothing_is_logged_while_nothing_runs():
    fleet = host(0, 0)
    assert gpu_of(fleet).vgpu_host.log() == ()
    fleet.advance_to(30)
    assert gpu_of(fleet).vgpu_host.log() == ()


def test_a_lost_gpu_lets_nobody_wait():
    fleet = host(1, 1)
    before = wait_ratio(fleet, None, 0, 50)
    fleet.advance_to(50)
    fleet.inject(Lost(node="n", gpu=0, lasts=50))
    assert wait_ratio(fleet, None, 0, 100) == pytest.approx(before)
    assert wait_ratio(fleet, None, 50, 100) is None


def test_a_machine_that_stops_leaves_its_part_to_the_others():
    fleet = Fleet.load("""
nodes:
  - name: n
    gpus:
      - model: L40S
        scheduler: {policy: equal_share}
        vgpus:
          - {vm: a, type: t, memory: 12GiB, load: 1}
          - {vm: b, type: t, memory: 12GiB, load: 1, until: 50s}
""")
    assert wait_ratio(fleet, "a", 0, 50) == pytest.approx(0.5)
    assert wait_ratio(fleet, "a", 50, 100) == 0
    fleet.advance_to(60)
    assert [one.vm_name for one in gpu_of(fleet).vgpu_host.instances()] == ["a"]


@pytest.mark.parametrize(
    ("group", "where", "what"),
    [
        ("count: 2, vgpus: [{vm: a, type: t, memory: 1GiB}]", ".vgpus", "a group of one GPU"),
        ("vgpus: [{vm: a, type: t, memory: 64GiB}]", ".vgpus[0].memory", "must be on the GPU"),
        ("vgpus: [&a {vm: a, type: t, memory: 8GiB}, *a]", ".vgpus[1].vm", "already taken"),
        (
            "vgpus: [{vm: a, type: t, memory: 24GiB}, {vm: b, type: t, memory: 40GiB}]",
            ".vgpus",
            "do not fit on L40S together, when a starts",
        ),
        (
            "scheduler: {policy: fair}, vgpus: []",
            ".scheduler.policy",
            "invalid enum value 'fair'",
        ),
    ],
)
def test_vgpus_that_cannot_be_are_refused(group, where, what):
    with pytest.raises(ScenarioError) as caught:
        reading.parse(f"nodes: [{{name: n, gpus: [{{model: L40S, {group}}}]}}]")
    assert caught.value.where == f"nodes[0].gpus[0]{where}"
    assert what in caught.value.what


def test_no_pod_holds_a_gpu_of_virtual_machines():
    with pytest.raises(ScenarioError, match="belongs to virtual machines"):
        reading.parse("""
nodes: [{name: n, gpus: [{model: L40S, vgpus: [{vm: a, type: t, memory: 12GiB}]}]}]
workloads: [{name: w, pods: [{name: p, devices: [{node: n, gpu: 0}]}]}]
""")


def test_a_license_expires():
    fleet = Fleet.load("nodes: [{name: n, gpus: [{model: L40S, license: {until: 60s}}]}]")
    before = gpu_of(fleet).license
    fleet.advance_to(60)
    after = gpu_of(fleet).license
    assert (before.licensed, before.expires_us) == (True, fleet.clock.epoch_us + 60_000_000)
    assert (after.licensed, after.expires_us) == (False, None)
    assert after.product == before.product


def test_a_real_gpu_needs_no_license():
    fleet = host(0.5)
    assert gpu_of(fleet).license is None
