"""The ground truth of contention, held against a brute count and against queueing theory."""

from itertools import pairwise
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.queueing import NOBODY, SLICE_US, Client, Samples, sample, simulate

clients = st.builds(
    Client,
    work_us=st.floats(200, 50_000),
    think_us=st.one_of(st.just(0.0), st.floats(200, 50_000)),
)
crowds = st.lists(clients, min_size=1, max_size=4)
seeds = st.integers(0, 2**32)
few = settings(max_examples=30)


def greedy(count, work_us=20_000):
    return [Client(work_us=work_us, think_us=0)] * count


@few
@given(crowds, seeds)
def test_one_client_runs_at_a_time_and_only_while_it_has_work(crowd, seed):
    history = simulate(crowd, seconds=0.5, seed=seed)
    assert (history.begins[1:] >= history.ends[:-1]).all()
    for client in range(len(crowd)):
        ran = history.ends[history.runners == client] - history.begins[history.runners == client]
        jobs = history.owners == client
        begins, ends = history.submitted[jobs], history.done[jobs]
        assert (begins[1:] >= ends[:-1]).all()
        assert ran.sum() <= (ends - begins).sum()


@few
@given(crowds, seeds, st.lists(st.integers(0, 500_000), min_size=2, max_size=2).map(sorted))
def test_ready_time_is_exactly_run_and_wait_time(crowd, seed, window):
    history = simulate(crowd, seconds=0.5, seed=seed)
    run = np.diff(history.run_us(window))[:, 0]
    assert run.sum() <= window[1] - window[0]
    ready = np.zeros(len(crowd), dtype=int)
    edges = np.clip([history.submitted, history.done], *window)
    np.add.at(ready, history.owners, edges[1] - edges[0])
    assert (run + history.wait_us(*window).sum(axis=1)).tolist() == ready.tolist()


@few
@given(crowds, seeds)
def test_run_and_wait_times_equal_a_count_of_moments(crowd, seed):
    history = simulate(crowd, seconds=0.02, seed=seed)
    moments = np.arange(20_000)
    runners = history.runners_at(moments)
    counted = [(runners == client).sum() for client in range(len(crowd))]
    assert history.run_us([20_000])[:, 0].tolist() == counted
    waits = history.wait_us(0, 20_000)
    for one in range(len(crowd)):
        own = history.owners == one
        ready = np.zeros(len(moments), dtype=bool)
        for begin, end in zip(history.submitted[own], history.done[own], strict=True):
            ready[begin:end] = True
        for other in range(len(crowd)):
            expected = 0 if one == other else (ready & (runners == other)).sum()
            assert waits[one, other] == expected


@few
@given(crowds, seeds)
def test_the_engine_never_idles_while_somebody_waits(crowd, seed):
    history = simulate(crowd, seconds=0.5, seed=seed)
    idle = np.flatnonzero(history.begins[1:] > history.ends[:-1])
    for begin, end in zip(history.ends[idle], history.begins[idle + 1], strict=True):
        assert not ((history.submitted < end) & (history.done > begin)).any()


def test_greedy_clients_take_slices_in_turn_and_equal_shares():
    history = simulate(greedy(3, work_us=1e9), seconds=6, seed=1)
    lengths = history.ends[1:-1] - history.begins[1:-1]
    assert set(lengths.tolist()) == {SLICE_US}
    assert all(later == (runner + 1) % 3 for runner, later in pairwise(history.runners[1:]))
    assert history.run_us([6_000_000])[:, 0].tolist() == [2_000_000] * 3
    assert history.wait_us(0, 6_000_000).sum(axis=1) == pytest.approx([4_000_000] * 3, rel=0.001)


def test_the_same_seed_is_the_same_history_and_another_one_is_not():
    crowd = [Client(work_us=5_000, think_us=5_000)] * 3
    first, again, other = (simulate(crowd, seconds=5, seed=seed) for seed in (1, 1, 2))
    assert first.ends.tolist() == again.ends.tolist()
    assert first.ends.tolist() != other.ends.tolist()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_utilization_is_that_of_the_closed_queue_of_theory(count):
    """Machine repair with one repairer, M/M/1//N: the turns do not change how busy it is."""
    work_us, think_us = 10_000, 30_000
    crowd = [Client(work_us=work_us, think_us=think_us)] * count
    history = simulate(crowd, seconds=300, seed=7)
    load = work_us / think_us
    idle = 1 / sum(factorial(count) / factorial(count - k) * load**k for k in range(count + 1))
    busy = history.run_us([300_000_000]).sum() / 300e6
    assert busy == pytest.approx(1 - idle, rel=0.03)


def test_nobody_runs_where_there_is_no_client():
    history = simulate([], seconds=1, seed=1)
    assert history.runners_at([0, 500_000]).tolist() == [NOBODY, NOBODY]
    samples = sample(history, begin_us=0, end_us=1_000_000)
    assert len(samples.busy_us) == 7
    assert not samples.busy_us.any()
    assert samples.percents(0, 7).tolist() == []


def test_a_sample_gives_the_busy_time_of_its_period_to_one_winner():
    crowd = [Client(work_us=5_000, think_us=9_000)] * 3
    history = simulate(crowd, seconds=20, seed=3)
    samples = sample(history, begin_us=0, end_us=20_000_000)
    assert len(samples.busy_us) == 143
    ends = samples.period_us * np.arange(1, 144)
    runners = history.runners_at(ends)
    ran = runners != NOBODY
    assert (samples.winners[ran] == runners[ran]).all()
    assert samples.busy_us.sum() == history.run_us([ends[-1]]).sum()


def test_percents_are_cut_off_to_whole_ones():
    samples = Samples(
        clients=3,
        period_us=100,
        busy_us=np.array([0, 99, 100, 50]),
        winners=np.array([NOBODY, 0, 0, 2]),
    )
    assert samples.percents(0, 4).tolist() == [49, 0, 12]
    assert samples.percents(1, 3).tolist() == [99, 0, 0]


@pytest.mark.parametrize(("seconds", "deviation"), [(1, 0.19), (10, 0.06), (60, 0.024)])
def test_the_noise_of_a_share_of_one_half_is_that_of_so_many_coins(seconds, deviation):
    """The figures of docs/concepts/contention.md."""
    crowd = greedy(2, work_us=15_000)
    history = simulate(crowd, seconds=1_200, seed=5)
    samples = sample(history, begin_us=0, end_us=1_200_000_000)
    count = round(seconds * 7.2)
    firsts = range(0, len(samples.busy_us) - count, count)
    shares = [np.mean(samples.winners[first : first + count] == 0) for first in firsts]
    # The spread of n spreads is known to one part in sqrt(2 n) only: 20 windows of 60 s.
    tolerance = 2.5 / np.sqrt(2 * len(shares))
    assert np.std(shares) == pytest.approx(deviation, rel=max(tolerance, 0.1))
