"""Process utilization as a driver samples it: a ring, one pid per sample, the truth in the mean."""

from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.errors import NotSupportedError
from simulator.fleet import Fleet
from simulator.process_samples import PROCESS_SAMPLE_PERIOD_SECONDS, PROCESS_SAMPLES_KEPT
from simulator.scenario import Garbage, GarbageSamples, Lost, MigLayout


def shared(*loads, mode="time_slicing", extra=""):
    sharing = f"{{mode: {mode}, replicas: 4}}"
    workloads = "\n".join(
        f"  - {{name: w{n}, load: {load}, mix: {{dram: 0.5, encoder: 0.25}}, pods: "
        f"[{{name: p{n}, pids: [{100 + n}], devices: [{{node: n, gpu: 0, replica: {n}}}]}}]}}"
        for n, load in enumerate(loads)
    )
    return Fleet.load(
        f"nodes: [{{name: n, gpus: [{{model: L40S, sharing: {sharing}}}]}}]\n"
        f"workloads:\n{workloads}\n{extra}"
    )


def sampled(fleet, since_us=0):
    samples = fleet.node("n").gpus[0].process_samples(since_us)
    return {sample.pid: sample.sm_percent for sample in samples}


def us(fleet, seconds):
    return fleet.clock.epoch_us + round(seconds * 1e6)


def true_percent(fleet, number, begin, end):
    uuid = fleet.node("n").gpus[0].uuid
    busy = fleet.truth.tenant_busy_seconds(uuid, "default", f"p{number}", "main", begin, end)
    return 100 * busy / (end - begin)


def test_who_runs_alone_is_sampled_as_it_is():
    fleet = shared(0.4)
    fleet.advance_to(60)
    (sample,) = fleet.node("n").gpus[0].process_samples()
    assert (sample.pid, sample.sm_percent, sample.memory_percent) == (100, 40, 20)
    assert (sample.encoder_percent, sample.decoder_percent) == (10, 0)
    assert us(fleet, 60 - PROCESS_SAMPLE_PERIOD_SECONDS) < sample.at_us <= us(fleet, 60)


def test_each_sample_belongs_to_one_process_only():
    fleet = shared(1.0, 1.0)
    for tick in range(1, 40):
        fleet.advance_to(tick * PROCESS_SAMPLE_PERIOD_SECONDS)
        since = us(fleet, fleet.now - PROCESS_SAMPLE_PERIOD_SECONDS / 2)
        assert list(sampled(fleet, since).values()) == [100]


@settings(deadline=None, max_examples=15)
@given(st.lists(st.floats(0.02, 1), min_size=1, max_size=4), st.integers(0, 10**6))
def test_samples_are_the_truth_in_the_mean(loads, start):
    """dcgm-exporter #587: every tenant has its own value and not the device's."""
    fleet = shared(*loads)
    means = {100 + n: [] for n in range(len(loads))}
    for turn in range(1, 31):
        fleet.advance_to(start + 10 * turn)
        found = sampled(fleet)
        for pid, percents in means.items():
            percents.append(found.get(pid, 0))
    for number in range(len(loads)):
        true = true_percent(fleet, number, start, start + 300)
        # Five standard deviations of a draw per sample, and what truncation takes.
        noise = 5 * (true * (100 - true) / (30 * PROCESS_SAMPLES_KEPT)) ** 0.5
        assert mean(means[100 + number]) == pytest.approx(true - 0.5, abs=noise + 0.6)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=4), st.floats(1, 1000), st.floats(0, 9))
def test_processes_are_together_no_busier_than_the_device(loads, at, back):
    fleet = shared(*loads)
    fleet.advance_to(at)
    device = min(1.0, sum(loads))
    assert sum(sampled(fleet, us(fleet, at - back)).values()) <= 100 * device + 0.01


def test_more_demand_than_device_is_shared_evenly():
    fleet = shared(0.1, 0.9, 0.9)
    uuid = fleet.node("n").gpus[0].uuid
    assert [true_percent(fleet, n, 0, 100) for n in range(3)] == pytest.approx([10, 45, 45])
    assert fleet.truth.mean_utilization(uuid, 0, 100) == pytest.approx(1)


def test_the_past_reads_the_same_however_often_and_on_every_run():
    one, other = shared(0.5, 0.5), shared(0.5, 0.5)
    one.advance_to(55)
    sampled(one)
    one.advance_to(60)
    other.advance_to(60)
    assert one.node("n").gpus[0].process_samples() == other.node("n").gpus[0].process_samples()
    assert sampled(one) == sampled(one)


def test_another_seed_draws_other_processes():
    one, other = shared(0.5, 0.5), shared(0.5, 0.5, extra="seed: another")
    draws = []
    for fleet in (one, other):
        fleet.advance_to(60)
        draws.append(sampled(fleet))
    assert draws[0] != draws[1]


def test_the_ring_forgets_what_is_older_than_ten_seconds():
    fleet = shared(
        "{steps: [{at: 0s, level: 0.8}, {at: 20s, level: 0}]}",
    )
    fleet.advance_to(29.5)
    before = sampled(fleet)
    fleet.advance_to(30.2)
    assert list(before) == [100]
    assert sampled(fleet) == {}


def test_only_samples_newer_than_the_last_seen_count():
    """nvtop PR #91: whoever never moves the timestamp on gets the whole ring again."""
    fleet = shared("{steps: [{at: 0s, level: 1}, {at: 20s, level: 0.5}]}")
    fleet.advance_to(25)
    assert sampled(fleet) == {100: pytest.approx(75, abs=1)}
    assert sampled(fleet, us(fleet, 20.2)) == {100: 50}
    newest = fleet.node("n").gpus[0].process_samples()[0].at_us
    assert sampled(fleet, newest) == {}


def test_an_idle_gpu_has_no_samples_of_processes():
    fleet = shared(0.0)
    fleet.advance_to(30)
    assert sampled(fleet) == {}
    assert [process.pid for process in fleet.node("n").gpus[0].processes] == [100]


def test_a_process_that_ended_is_in_the_ring_for_a_while():
    fleet = Fleet.load("""
nodes: [{name: n, gpus: [{model: T4}]}]
workloads: [{name: w, load: 1.0, pods: [
  {name: p, pids: [77], until: 20s, devices: [{node: n, gpu: 0}]}]}]
""")
    fleet.advance_to(25)
    (sample,) = fleet.node("n").gpus[0].process_samples()
    assert sample.pid == 77
    # go-nvml #51: timestamps of processes differ by seconds.
    assert sample.at_us <= us(fleet, 20 + PROCESS_SAMPLE_PERIOD_SECONDS)
    assert sample.sm_percent == pytest.approx(50, abs=1)


def test_processes_of_one_container_take_turns():
    fleet = Fleet.load("""
nodes: [{name: n, gpus: [{model: T4}]}]
workloads: [{name: w, load: 0.9, processes: 2, pods: [
  {name: p, pids: [1, 2], devices: [{node: n, gpu: 0}]}]}]
""")
    fleet.advance_to(60)
    found = sampled(fleet)
    assert set(found) == {1, 2}
    assert sum(found.values()) == pytest.approx(90, abs=1.01)


def test_a_container_with_more_processes_gets_more_turns():
    fleet = Fleet.load("""
nodes: [{name: n, gpus: [{model: T4, sharing: {mode: time_slicing, replicas: 2}}]}]
workloads:
  - {name: a, load: 1.0, processes: 3, pods: [{name: p0, devices: [{node: n, gpu: 0, replica: 0}]}]}
  - {name: b, load: 1.0, pods: [{name: p1, devices: [{node: n, gpu: 0, replica: 1}]}]}
""")
    assert [true_percent(fleet, n, 0, 60) for n in (0, 1)] == pytest.approx([75, 25])


def test_under_mps_the_samples_carry_the_servers_pid_by_default():
    fleet = shared(0.3, 0.3, mode="mps")
    fleet.advance_to(60)
    (server,) = [p.pid for p in fleet.node("n").gpus[0].processes if p.type == "compute"]
    assert sampled(fleet) == {server: 60}


def test_under_mps_the_samples_may_carry_the_clients_pids():
    fleet = shared(0.3, 0.3, mode="mps, sampled: client")
    fleet.advance_to(60)
    assert set(sampled(fleet)) == {100, 101}


def test_a_load_that_was_set_is_split_between_the_processes():
    fleet = shared(0.1, 0.9)
    fleet.node("n").set_load(fleet.node("n").gpus[0].uuid, 0.5)
    assert [true_percent(fleet, n, 0, 60) for n in (0, 1)] == pytest.approx([25, 25])


def test_a_load_of_nobody_is_sampled_for_nobody():
    fleet = Fleet.load("nodes: [{name: n, gpus: [{model: T4}]}]")
    fleet.node("n").gpus[0].set_load(0.7)
    fleet.advance_to(30)
    assert sampled(fleet) == {}


def test_the_ring_is_empty_after_the_gpu_comes_back():
    fleet = shared(0.5)
    fleet.advance_to(50)
    fleet.inject(Lost(node="n", gpu=0, lasts=2))
    fleet.advance_to(53)
    (sample,) = fleet.node("n").gpus[0].process_samples()
    assert sample.at_us > us(fleet, 52)
    assert sample.sm_percent == 50


def test_processes_are_not_sampled_under_mig():
    fleet = Fleet.load("nodes: [{name: n, gpus: [{model: A30}]}]")
    fleet.inject(MigLayout(node="n", gpu=0, mig=("1g.6gb",)))
    with pytest.raises(NotSupportedError, match="MIG"):
        fleet.node("n").gpus[0].process_samples()


def test_unwritten_entries_stand_beside_the_true_ones():
    """nvtop #110 and DCGM #83: zombies, future and missing timestamps, a blank as a number."""
    fleet = shared(0.4)
    fleet.advance_to(60)
    true = fleet.node("n").gpus[0].process_samples()
    fleet.inject(GarbageSamples(node="n", gpu=0))
    entries = fleet.node("n").gpus[0].process_samples()
    assert entries[:1] == true
    junk = entries[1:]
    assert len(junk) >= 100
    assert {0, 37_100, 2_147_483_632} <= {entry.sm_percent for entry in junk}
    for entry in junk:
        percent_is_possible = 0 < entry.sm_percent <= 100
        stamp_is_possible = us(fleet, 50) <= entry.at_us <= us(fleet, 60)
        assert not (entry.pid and percent_is_possible and stamp_is_possible)
    assert fleet.node("n").gpus[0].temperature_celsius < 100


def test_nothing_true_is_sampled_while_every_reading_is_nonsense():
    fleet = shared(0.4)
    fleet.advance_to(60)
    fleet.inject(Garbage(node="n", gpu=0))
    assert (100, 40) not in sampled(fleet).items()
