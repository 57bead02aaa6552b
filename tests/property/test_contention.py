"""Laws of contention. They hold exactly: sums are whole numbers, and rounding keeps their order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.measure.contention import (
    LEAST_COVERED_RATIO,
    MOST_UNATTRIBUTED_RATIO,
    device_ratio,
    tenant_ratio,
)
from exporter.measure.sharing import Sharing

US = 1_000_000
COVERED_US = 60 * US

busy_times = st.integers(0, COVERED_US // 12)
mixes = st.lists(busy_times, max_size=10)
crowds = st.lists(
    st.tuples(st.integers(1, COVERED_US // 12), st.integers(1, 5)), min_size=1, max_size=10
)


def tenants_of(crowd):
    """Return the ratio of each (busy time, processes)."""
    all_us = sum(busy_us for busy_us, _ in crowd)
    processes = sum(count for _, count in crowd)
    return [
        tenant_ratio(busy_us, all_us, COVERED_US, count, processes) for busy_us, count in crowd
    ]


@given(crowds)
def test_ratios_are_at_least_0_and_below_what_others_had(crowd):
    all_us = sum(busy_us for busy_us, _ in crowd)
    for (busy_us, _), ratio in zip(crowd, tenants_of(crowd), strict=True):
        assert 0 <= ratio <= (all_us - busy_us) / COVERED_US
        assert ratio < 1
    device = device_ratio([busy_us for busy_us, _ in crowd], COVERED_US)
    assert 0 <= device <= all_us / COVERED_US * (1 - 1 / len(crowd)) * (1 + 1e-12)


@given(crowds, st.randoms(use_true_random=False))
def test_the_order_of_the_tenants_does_not_matter(crowd, chance):
    shuffled = chance.sample(crowd, k=len(crowd))
    assert sorted(tenants_of(crowd)) == sorted(tenants_of(shuffled))
    assert device_ratio([b for b, _ in crowd], COVERED_US) == device_ratio(
        [b for b, _ in shuffled], COVERED_US
    )


@given(mixes, busy_times, st.integers(0, COVERED_US // 12))
def test_splitting_a_tenant_never_lowers_the_device(others, busy_us, part):
    split = [min(part, busy_us), busy_us - min(part, busy_us)]
    whole = device_ratio([*others, busy_us], COVERED_US)
    assert device_ratio([*others, *split], COVERED_US) >= whole


@given(mixes, busy_times)
def test_adding_a_tenant_never_lowers_the_device(others, busy_us):
    assert device_ratio([*others, busy_us], COVERED_US) >= device_ratio(others, COVERED_US)


@given(crowds, st.integers(1, COVERED_US // 12), st.integers(0, 3), st.data())
def test_load_and_processes_of_others_never_lower_a_tenant(crowd, more_us, more_processes, data):
    before = tenants_of([(1, 1), *crowd])[0]
    grown = data.draw(st.integers(0, len(crowd) - 1))
    busy_us, processes = crowd[grown]
    crowd = [*crowd[:grown], (busy_us + more_us, processes + more_processes), *crowd[grown + 1 :]]
    assert tenants_of([(1, 1), *crowd])[0] >= before


@given(st.integers(1, COVERED_US), st.integers(1, 9), st.integers(0, 9))
def test_a_single_active_tenant_is_in_nobodys_way(busy_us, processes, idle):
    assert tenant_ratio(busy_us, busy_us, COVERED_US, processes, processes) == 0
    assert device_ratio([busy_us, *[0] * idle], COVERED_US) == 0


@given(st.integers(1, 100))
def test_the_limit_of_round_robin_does_not_bind_equal_tenants_that_saturate_a_device(tenants):
    own_us = COVERED_US // 100
    all_us = own_us * tenants
    ratio = tenant_ratio(own_us, all_us, all_us, 1, tenants)
    assert ratio == (all_us - own_us) / all_us


KEYS = [("ml", f"pod-{number}", "main") for number in range(4)]
shares = st.dictionaries(
    st.sampled_from(KEYS),
    st.tuples(st.integers(0, 400_000), st.integers(1, 3)).map(
        lambda share: share if share[0] else (0, 0)
    ),
)
ticks = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 2 * US), shares, st.integers(0, 60_000)),
    max_size=60,
)
LONG, SHORT = 12, 5


class Naive:
    """The same, from a list of all ticks, with time in whole seconds and microseconds."""

    def __init__(self):
        self.ticks = []
        self.totals = {}

    def take(self, at, covered_us, tenants, unattributed_us):
        parts = [unattributed_us, *(busy_us for busy_us, _ in tenants.values())]
        if sum(parts) > covered_us:
            parts = [part * covered_us // sum(parts) for part in parts]
        busy_us = dict(zip(tenants, parts[1:], strict=True))
        self.ticks.append((at, covered_us, busy_us, tenants, parts[0]))
        for key, own_us in busy_us.items():
            if covered_us or key in self.totals:
                own, foreign = self.totals.get(key, (0, 0))
                others_us = sum(busy_us.values()) - own_us
                self.totals[key] = (own + own_us, foreign + others_us)
        named = {key for tick in self.ticks if tick[0] > at - LONG for key in tick[3]}
        self.totals = {key: sums for key, sums in self.totals.items() if key in named}

    def window(self, now, seconds):
        """Return covered time, unattributed time, busy times and processes of each tenant."""
        inside = [tick for tick in self.ticks if now - seconds < tick[0]]
        busy_us = {key: sum(tick[2].get(key, 0) for tick in inside) for key in self.totals}
        processes = {
            key: max((tick[3][key][1] for tick in inside if tick[2].get(key)), default=0)
            for key in self.totals
        }
        return sum(t[1] for t in inside), sum(t[4] for t in inside), busy_us, processes

    @staticmethod
    def is_known(covered_us, unattributed_us, seconds):
        enough = covered_us >= LEAST_COVERED_RATIO * seconds * US
        return enough and unattributed_us <= MOST_UNATTRIBUTED_RATIO * covered_us


def run(sequence):
    """Yield, after each tick, its time, the state and the naive model."""
    sharing, naive, now = Sharing(window_seconds=LONG, short_window_seconds=SHORT), Naive(), 100
    for pause, covered_us, tenants, unattributed_us in sequence:
        now += pause
        seconds = {key: (busy_us / US, count) for key, (busy_us, count) in tenants.items()}
        sharing.take(float(now), covered_us / US, seconds, unattributed_us / US)
        naive.take(now, covered_us, tenants, unattributed_us)
        yield now, sharing.state(float(now)), naive


@given(ticks)
def test_sharing_equals_a_naive_model(sequence):
    for now, state, naive in run(sequence):
        covered_us, unattributed_us, busy_us, processes = naive.window(now, LONG)
        known = naive.is_known(covered_us, unattributed_us, LONG)
        assert state.covered_seconds == covered_us / US
        expected = device_ratio(busy_us.values(), covered_us) if known else None
        assert state.contention_ratio == expected
        short_us, short_unattributed_us, short_busy_us, _ = naive.window(now, SHORT)
        short_known = naive.is_known(short_us, short_unattributed_us, SHORT)
        assert set(state.tenants) == set(naive.totals)
        for key, tenant in state.tenants.items():
            assert (
                tenant.busy_seconds_total,
                tenant.foreign_busy_seconds_total,
            ) == tuple(total / US for total in naive.totals[key])
            assert tenant.busy_ratio == (short_busy_us[key] / short_us if short_known else None)
            ratio = tenant_ratio(
                busy_us[key],
                sum(busy_us.values()),
                covered_us,
                processes[key],
                sum(processes.values()),
            )
            assert tenant.contention_ratio == (ratio if known else None)


@given(ticks)
def test_counters_never_go_down_while_a_tenant_is_remembered(sequence):
    before = None
    for _, state, _ in run(sequence):
        if before is not None:
            assert state.covered_seconds_total >= before.covered_seconds_total
            assert (state.contended_seconds_total or 0) >= (before.contended_seconds_total or 0)
            for key in state.tenants.keys() & before.tenants.keys():
                new, old = state.tenants[key], before.tenants[key]
                assert new.busy_seconds_total >= old.busy_seconds_total
                assert new.foreign_busy_seconds_total >= old.foreign_busy_seconds_total
        before = state


@given(ticks)
def test_what_is_busy_and_what_idles_is_exactly_what_is_covered(sequence):
    """The sum rule, of every tenant's view: its own time, that of the others, that of nobody."""
    always = ("ml", "witness", "main")
    sequence = [
        (pause, covered_us, {always: (0, 0)} | tenants, 0)
        for pause, covered_us, tenants, _ in sequence
    ]
    covered_us = busy_us = 0
    for tick, (_, state, naive) in zip(sequence, run(sequence), strict=True):
        if not naive.totals:
            continue
        covered_us += tick[1]
        busy_us += sum(naive.ticks[-1][2].values())
        witness = state.tenants[always]
        assert round(witness.foreign_busy_seconds_total * US) == busy_us <= covered_us
        assert round(state.covered_seconds_total * US) == covered_us


@given(st.integers(0, 100), st.integers(0, 100))
def test_too_few_samples_mean_no_ratio_and_enough_mean_one(covered, unattributed):
    sharing = Sharing(window_seconds=100, short_window_seconds=100)
    busy = covered / 100 * (1 - unattributed / 100) / 2
    for tick in range(1, 101):
        tenants = dict.fromkeys(KEYS[:2], (busy, 1))
        sharing.take(float(tick), covered / 100, tenants, covered * unattributed / 10_000)
    state = sharing.state(100.0)
    enough = covered >= 100 * LEAST_COVERED_RATIO
    attributed = unattributed <= 100 * MOST_UNATTRIBUTED_RATIO
    assert (state.unattributed_busy_ratio is not None) == enough
    assert (state.contention_ratio is not None) == (enough and attributed)
    for tenant in state.tenants.values():
        assert (tenant.contention_ratio is None) == (state.contention_ratio is None)
        if tenant.contention_ratio is not None:
            assert tenant.contention_ratio == pytest.approx((1 - unattributed / 100) / 2, abs=1e-4)
