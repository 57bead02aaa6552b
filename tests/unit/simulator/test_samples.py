"""Utilization samples, as a driver would have buffered them, against the truth."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.fleet import Fleet

PERIOD_US = 166_667


def fleet_of(load, *, extra=""):
    return Fleet.load(f"""
nodes: [{{name: n, gpus: [{{model: H100-80GB}}]}}]
workloads: [{{name: w, load: {load}, pods: [{{name: p, devices: [{{node: n, gpu: 0}}]}}]}}]
{extra}
""")


loads = st.one_of(
    st.floats(0, 1).map(str),
    st.builds(
        "{{wave: {{low: {:.2f}, high: {:.2f}, period: {}s}}}}".format,
        st.floats(0, 1), st.floats(0, 1), st.integers(1, 300),
    ),
)  # fmt: skip


@settings(deadline=None)
@given(loads, st.floats(21, 1000), st.floats(1, 19))
def test_samples_add_up_to_the_busy_time_that_they_cover(load, start, length):
    fleet = fleet_of(load)
    gpu = fleet.nodes[0].gpus[0]
    fleet.advance_to(start)
    before = gpu.utilization_samples()[-1][0]
    fleet.advance_to(start + length)
    samples = gpu.utilization_samples(before)
    busy = sum(PERIOD_US / 1e6 * percent / 100 for _, percent in samples)
    begin = (before - fleet.clock.epoch_us) / 1e6
    end = (samples[-1][0] - fleet.clock.epoch_us) / 1e6
    truth = fleet.truth.busy_seconds(gpu.uuid, begin, end)
    # Each sample is rounded to a whole percent.
    assert busy == pytest.approx(truth, abs=0.005 * (end - begin) + 1e-9)


@settings(deadline=None)
@given(st.lists(st.floats(0.001, 40), min_size=1, max_size=8))
def test_reading_often_gives_every_sample_once(pauses):
    fleet = fleet_of("{wave: {low: 0, high: 1, period: 9s}}")
    gpu = fleet.nodes[0].gpus[0]
    seen = []
    for pause in pauses:
        fleet.advance_to(fleet.now + min(pause, 15))
        seen += gpu.utilization_samples(seen[-1][0] if seen else None)
    stamps = [stamp for stamp, _ in seen]
    assert all(later - earlier == PERIOD_US for earlier, later in pairwise(stamps))
    fleet_at_once = fleet_of("{wave: {low: 0, high: 1, period: 9s}}")
    fleet_at_once.advance_to(fleet.now)
    newest = fleet_at_once.nodes[0].gpus[0].utilization_samples()
    assert tuple(seen[-len(newest) :]) == newest[-len(seen) :]


def test_the_buffer_keeps_the_newest_twenty_seconds():
    fleet = fleet_of("0.5")
    fleet.advance_to(3600)
    samples = fleet.nodes[0].gpus[0].utilization_samples()
    assert len(samples) == 120
    assert {percent for _, percent in samples} == {50}
    newest = fleet.clock.epoch_us + 3600 * 1_000_000
    assert newest - PERIOD_US < samples[-1][0] <= newest


def test_there_is_no_sample_before_the_first_period_is_over():
    fleet = fleet_of("0.5")
    assert fleet.nodes[0].gpus[0].utilization_samples() == ()
    assert fleet.nodes[0].gpus[0].current_utilization == 0
    fleet.advance_to(0.2)
    assert len(fleet.nodes[0].gpus[0].utilization_samples()) == 1


def test_nothing_was_sampled_while_the_gpu_was_lost():
    fleet = fleet_of("0.5", extra="faults: [{kind: lost, node: n, gpu: 0, at: 100s, for: 10s}]")
    fleet.advance_to(112)
    samples = fleet.nodes[0].gpus[0].utilization_samples()
    assert min(stamp for stamp, _ in samples) > fleet.clock.epoch_us + 110 * 1_000_000
    assert {percent for _, percent in samples} == {50}


def test_a_sample_across_a_change_of_load_is_the_mean():
    fleet = fleet_of("0.0")
    gpu = fleet.nodes[0].gpus[0]
    fleet.advance_to(PERIOD_US / 1e6 * 1.5)
    gpu.set_load(1.0)
    fleet.advance_to(PERIOD_US / 1e6 * 3)
    assert [percent for _, percent in gpu.utilization_samples()] == [0, 50, 100]
