"""How far the contention of a tenant is from the truth, when all there is are samples.

With ``-s`` it prints the table of docs/concepts/contention.md.
"""

import random
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from exporter.measure.sharing import Sharing
from simulator.queueing import Client, History, Samples, sample, simulate

MIXES = 60
LONG_SECONDS, SHORT_SECONDS = 60, 15
WARM_UP_US = 1_000_000
SAMPLES_PER_TICK = 7


@dataclass(frozen=True, kw_only=True)
class Run:
    """A mix of tenants with one process each, what happened and what a driver saw of it."""

    tenants: int
    history: History
    samples: Samples

    @classmethod
    def of(cls, crowd, seed):
        history = simulate(crowd, seconds=LONG_SECONDS + 1, seed=seed)
        end_us = WARM_UP_US + LONG_SECONDS * 1_000_000
        samples = sample(history, begin_us=WARM_UP_US, end_us=end_us)
        return cls(tenants=len(crowd), history=history, samples=samples)

    def measure(self, window_seconds):
        """Return what is said of the device, and what each tenant lost in the same time."""
        period_us = self.samples.period_us
        sharing = Sharing(window_seconds=window_seconds, short_window_seconds=window_seconds)
        covered = SAMPLES_PER_TICK * period_us / 1e6
        last = len(self.samples.busy_us) // SAMPLES_PER_TICK * SAMPLES_PER_TICK
        for first in range(0, last, SAMPLES_PER_TICK):
            percents = self.samples.percents(first, first + SAMPLES_PER_TICK)
            shares = {
                ("ml", f"pod-{number}", "main"): (covered * percent / 100, int(percent > 0))
                for number, percent in enumerate(percents)
            }
            at = (first + SAMPLES_PER_TICK) * period_us / 1e6
            sharing.take(at, covered, shares)
        state = sharing.state(at)
        end_us = WARM_UP_US + last * period_us
        truth = self.truth(end_us - round(state.covered_seconds * 1e6), end_us)
        return state, truth

    def truth(self, begin_us, end_us):
        """Return, of the time in which each tenant wanted the engine, the share it waited."""
        run = np.diff(self.history.run_us([begin_us, end_us]))[:, 0]
        wait = self.history.wait_us(begin_us, end_us).sum(axis=1)
        return (wait / (wait + run)).tolist()


def mix(seed):
    """Return tenants with jobs of 2 to 200 ms that want 5 to 100 percent of an idle device."""
    chance = random.Random(seed)  # noqa: S311 - a simulation, not a secret
    crowd = []
    for _ in range(chance.randint(2, 6)):
        work_us = 10 ** chance.uniform(3.3, 5.3)
        demand = chance.uniform(0.05, 1)
        crowd.append(Client(work_us=work_us, think_us=work_us * (1 / demand - 1)))
    return crowd


@pytest.fixture(scope="module")
def runs():
    return [Run.of(mix(seed), seed) for seed in range(MIXES)]


def compare(runs, window_seconds):
    """Return the contention of all tenants, and the truth."""
    pairs = [run.measure(window_seconds) for run in runs]
    values = [tenant.contention_ratio for state, _ in pairs for tenant in state.tenants.values()]
    return np.array(values), np.concatenate([truth for _, truth in pairs])


def describe(seconds, error):
    return (
        f"{seconds:4} s  {np.abs(error).mean():12.3f} {error.mean():+7.3f}"
        f" {error.max():+7.3f} {error.min():+7.3f}\n"
    )


def test_the_mean_absolute_error_over_60_s_is_at_most_0_05(runs):
    errors = {}
    for seconds in (LONG_SECONDS, SHORT_SECONDS):
        values, truth = compare(runs, seconds)
        errors[seconds] = values - truth
    title = f"{MIXES} mixes, {len(errors[LONG_SECONDS])} tenants"
    sys.stdout.write(f"\n{title}\nwindow  mean |error|    bias    over   under\n")
    sys.stdout.writelines(describe(*row) for row in errors.items())
    assert np.abs(errors[LONG_SECONDS]).mean() <= 0.05
    assert np.abs(errors[SHORT_SECONDS]).mean() <= 0.06


def test_the_estimate_ranks_tenants_as_the_truth_does(runs):
    """What the value is for: who on the node loses most."""
    assert np.corrcoef(*compare(runs, LONG_SECONDS))[0, 1] > 0.95


@pytest.mark.parametrize("tenants", [2, 4])
def test_on_a_saturated_device_the_estimate_is_the_truth(tenants):
    greedy = [Client(work_us=1e9, think_us=0)] * tenants
    state, truth = Run.of(greedy, seed=1).measure(LONG_SECONDS)
    lost = 1 - 1 / tenants
    assert truth == pytest.approx([lost] * tenants, abs=0.001)
    # Three standard deviations of a share of one half, and what is cut off from percents.
    for tenant in state.tenants.values():
        assert tenant.contention_ratio == pytest.approx(lost, abs=0.08)
    assert state.contention_ratio == pytest.approx(lost, abs=0.02)
    assert state.contended_seconds_total == pytest.approx(state.covered_seconds, rel=0.05)


def test_on_a_device_with_time_to_spare_there_are_few_contended_seconds():
    light = [Client(work_us=10_000, think_us=57_000)] * 2
    state, truth = Run.of(light, seed=1).measure(LONG_SECONDS)
    assert state.contended_seconds_total == 0.0
    assert 0.05 < min(truth) < max(truth) < 0.2
    for tenant, lost in zip(state.tenants.values(), truth, strict=True):
        assert tenant.contention_ratio == pytest.approx(lost, abs=0.08)
