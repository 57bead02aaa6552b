"""Who used a device, and who was in whose way: examples, limits, counters, memory."""

import math
import tracemalloc

import pytest

from exporter.measure.contention import (
    LEAST_COVERED_RATIO,
    MOST_UNATTRIBUTED_RATIO,
    device_ratio,
    is_contended,
    tenant_ratio,
)
from exporter.measure.sharing import HOST, Sharing

A, B, C = (("ml", f"pod-{letter}", "main") for letter in "abc")
WINDOW, SHORT = 60, 15


def shared(shares, *, ticks=WINDOW, covered=1.0, unattributed=0.0, sharing=None, start=0):
    """Return a sharing after ticks of one second that are all the same.

    Shares are ratios of the covered time, with one process each, or (ratio, processes).
    """
    sharing = sharing or Sharing(window_seconds=WINDOW, short_window_seconds=SHORT)
    pairs = {
        key: share if isinstance(share, tuple) else (share, 1) for key, share in shares.items()
    }
    tenants = {
        key: (ratio * covered, processes if ratio else 0)
        for key, (ratio, processes) in pairs.items()
    }
    for tick in range(start + 1, start + ticks + 1):
        sharing.take(float(tick), covered, tenants, unattributed * covered)
    return sharing


def contentions(state):
    return {key: tenant.contention_ratio for key, tenant in state.tenants.items()}


@pytest.mark.parametrize("tenants", [2, 4, 10])
def test_tenants_that_saturate_a_device_together_each_miss_what_the_others_have(tenants):
    keys = [("ml", f"pod-{number}", "main") for number in range(tenants)]
    state = shared(dict.fromkeys(keys, 1 / tenants)).state(WINDOW)
    lost = 1 - 1 / tenants
    assert contentions(state) == pytest.approx(dict.fromkeys(keys, lost), abs=1e-4)
    assert state.contention_ratio == pytest.approx(lost, abs=1e-4)


def test_a_light_tenant_beside_a_heavy_one_waits_for_every_other_slice_at_most():
    state = shared({A: 0.92, B: 0.08}).state(WINDOW)
    assert contentions(state) == {A: pytest.approx(0.08), B: 0.5}


def test_two_tenants_of_15_percent_reach_a_ratio_of_15_percent_and_no_contended_second():
    state = shared({A: 0.15, B: 0.15}).state(WINDOW)
    assert contentions(state) == {A: pytest.approx(0.15), B: pytest.approx(0.15)}
    assert state.contention_ratio == pytest.approx(0.15)
    assert state.contended_seconds_total == 0.0


def test_more_processes_of_the_others_can_take_more():
    state = shared({A: 0.1, B: (0.9, 3)}).state(WINDOW)
    assert contentions(state) == {A: 0.75, B: pytest.approx(0.1)}


def test_processes_count_by_how_many_ran_at_once_in_the_window():
    sharing = shared({A: 0.1, B: (0.9, 3)}, ticks=1)
    shared({A: 0.1, B: (0.9, 2)}, ticks=1, start=1, sharing=sharing)
    shared({A: 0.1, B: 0.9}, ticks=WINDOW - 2, start=2, sharing=sharing)
    assert sharing.state(WINDOW).tenants[A].contention_ratio == 3 / 4
    shared({A: 0.1, B: 0.9}, ticks=1, start=WINDOW, sharing=sharing)
    assert sharing.state(WINDOW + 1).tenants[A].contention_ratio == 2 / 3
    shared({A: 0.1, B: 0.9}, ticks=1, start=WINDOW + 1, sharing=sharing)
    assert sharing.state(WINDOW + 2).tenants[A].contention_ratio == 1 / 2


def test_each_tenant_has_the_share_of_its_own_processes_and_not_that_of_the_device():
    """dcgm-exporter #587: three pods of 24, 30 and 17 percent were all shown as 71.4."""
    state = shared({A: 0.24, B: 0.30, C: 0.17}).state(WINDOW)
    ratios = {key: tenant.busy_ratio for key, tenant in state.tenants.items()}
    assert ratios == pytest.approx({A: 0.24, B: 0.30, C: 0.17})
    assert state.tenants[A].busy_seconds_total == pytest.approx(0.24 * WINDOW)
    assert state.tenants[A].foreign_busy_seconds_total == pytest.approx(0.47 * WINDOW)


def test_what_the_tenants_lack_of_the_device_is_shown_and_not_spread_over_them():
    """dcgm-exporter #107: the processes never add up to the device."""
    state = shared({A: 0.60, B: 0.36}, unattributed=0.04).state(WINDOW)
    assert state.unattributed_busy_ratio == pytest.approx(0.04)
    assert state.tenants[A].busy_ratio == pytest.approx(0.60)
    assert state.tenants[A].foreign_busy_seconds_total == pytest.approx(0.36 * WINDOW)


def test_a_tenant_that_holds_a_device_and_does_nothing_has_values_of_0():
    """HAMi #1794, #281: nothing was shown until a process touched the GPU."""
    idle = shared({A: 0.6, B: 0.3, C: 0.0}).state(WINDOW).tenants[C]
    assert (idle.busy_ratio, idle.contention_ratio, idle.busy_seconds_total) == (0.0, 0.0, 0.0)
    assert idle.foreign_busy_seconds_total == pytest.approx(0.9 * WINDOW)


def test_a_device_with_no_or_one_active_tenant_has_no_contention():
    for shares in ({}, {A: 0.0, B: 0.0}, {A: 1.0, B: 0.0}):
        state = shared(shares).state(WINDOW)
        assert state.contention_ratio == 0.0
        assert contentions(state) == dict.fromkeys(shares, 0.0)
        assert state.contended_seconds_total == 0.0


def test_a_process_of_the_host_is_a_tenant_like_any_other():
    state = shared({A: 0.5, HOST: 0.5}).state(WINDOW)
    assert contentions(state) == {A: 0.5, HOST: 0.5}
    assert state.contended_seconds_total == WINDOW


def test_time_without_samples_is_unknown_and_not_idle():
    state = shared({A: 0.5, B: 0.5}, covered=0.6).state(WINDOW)
    assert state.covered_seconds == pytest.approx(0.6 * WINDOW)
    assert state.tenants[A].busy_ratio == 0.5
    assert state.contention_ratio == 0.5
    assert state.tenants[A].busy_seconds_total == pytest.approx(0.3 * WINDOW)
    assert state.contended_seconds_total == pytest.approx(0.6 * WINDOW)


@pytest.mark.parametrize(("covered", "is_known"), [(0.51, True), (0.49, False)])
def test_ratios_are_absent_when_less_than_half_of_the_window_is_covered(covered, is_known):
    assert LEAST_COVERED_RATIO == 0.5
    state = shared({A: 0.5, B: 0.5}, covered=covered).state(WINDOW)
    ratios = (
        state.contention_ratio,
        state.unattributed_busy_ratio,
        state.tenants[A].busy_ratio,
        state.tenants[A].contention_ratio,
    )
    assert [ratio is not None for ratio in ratios] == [is_known] * 4
    assert state.tenants[A].busy_seconds_total > 0


def test_after_the_start_the_busy_share_is_there_before_contention():
    sharing = shared({A: 0.5, B: 0.5}, ticks=8)
    tenant = sharing.state(8).tenants[A]
    assert (tenant.busy_ratio, tenant.contention_ratio) == (0.5, None)
    shared({A: 0.5, B: 0.5}, ticks=22, start=8, sharing=sharing)
    assert sharing.state(30).tenants[A].contention_ratio == 0.5


def test_ratios_are_withdrawn_and_totals_stay_when_ticks_end():
    sharing = shared({A: 0.5, B: 0.5})
    state = sharing.state(WINDOW + 31)
    assert state.contention_ratio is None
    assert state.tenants[A].busy_ratio is None
    assert state.tenants[A].contention_ratio is None
    assert state.tenants[A].busy_seconds_total == WINDOW / 2
    assert state.contended_seconds_total == WINDOW


@pytest.mark.parametrize(("over", "is_known"), [(-0.001, True), (0.001, False)])
def test_ratios_are_absent_while_too_much_belongs_to_nobody_known(over, is_known):
    unattributed = MOST_UNATTRIBUTED_RATIO + over
    state = shared({A: 0.4, B: 0.4}, unattributed=unattributed).state(WINDOW)
    assert state.unattributed_busy_ratio == pytest.approx(unattributed, abs=1e-5)
    assert (state.contention_ratio is not None) == is_known
    assert (state.tenants[A].contention_ratio is not None) == is_known
    assert (state.tenants[A].busy_ratio is not None) == is_known


def test_nothing_is_said_of_a_device_whose_processes_cannot_be_sampled():
    """dcgm-exporter #216, #3: what MIG does not support was reported as 0."""
    state = shared({A: 0.0, B: 0.0}, covered=0.0).state(WINDOW)
    assert state.tenants == {}
    assert state.contention_ratio is None
    assert state.unattributed_busy_ratio is None
    assert state.contended_seconds_total is None
    assert state.covered_seconds_total == 0.0


def test_reads_that_fail_for_a_while_leave_counters_where_they_are():
    sharing = shared({A: 0.5, B: 0.5})
    shared({A: 0.0, B: 0.0}, covered=0.0, ticks=200, start=WINDOW, sharing=sharing)
    state = sharing.state(WINDOW + 200)
    assert state.contention_ratio is None
    assert state.tenants[A].busy_seconds_total == WINDOW / 2
    assert state.tenants[A].foreign_busy_seconds_total == WINDOW / 2
    assert state.covered_seconds_total == WINDOW


def test_tenants_in_turn_are_not_contended_seconds():
    sharing = Sharing(window_seconds=WINDOW, short_window_seconds=SHORT)
    for tick in range(1, WINDOW + 1):
        turn, other = (A, B) if tick % 2 else (B, A)
        sharing.take(float(tick), 1.0, {turn: (1.0, 1), other: (0.0, 0)})
    assert sharing.state(WINDOW).contended_seconds_total == 0.0


@pytest.mark.parametrize(("busy", "contended"), [(0.95, WINDOW), (0.94, 0.0)])
def test_contended_seconds_need_a_device_that_is_95_percent_busy(busy, contended):
    state = shared({A: busy / 2, B: busy / 2}).state(WINDOW)
    assert state.contended_seconds_total == contended


def test_unattributed_time_makes_a_device_busy_but_is_no_second_tenant():
    assert shared({A: 0.9}, unattributed=0.1).state(WINDOW).contended_seconds_total == 0.0
    both = shared({A: 0.45, B: 0.45}, unattributed=0.1).state(WINDOW)
    assert both.contended_seconds_total == WINDOW


def test_parts_that_exceed_the_whole_are_scaled_down():
    state = shared({A: 0.9, B: 0.6}, ticks=WINDOW).state(WINDOW)
    assert state.tenants[A].busy_ratio == pytest.approx(0.6)
    assert state.tenants[B].busy_ratio == pytest.approx(0.4)


def test_a_tenant_that_comes_back_within_the_window_goes_on_counting():
    sharing = shared({A: 0.5, B: 0.5}, ticks=10)
    shared({B: 0.5}, ticks=WINDOW - 1, start=10, sharing=sharing)
    assert sharing.state(WINDOW + 9).tenants[A].busy_seconds_total == 5.0
    shared({A: 0.5, B: 0.5}, ticks=1, start=WINDOW + 9, sharing=sharing)
    tenant = sharing.state(WINDOW + 10).tenants[A]
    assert tenant.busy_seconds_total == 5.5
    assert tenant.foreign_busy_seconds_total == 5.5


def test_a_tenant_that_nobody_named_for_a_window_is_gone():
    """dcgm-exporter #140: series of ended pods lived on for half an hour."""
    sharing = shared({A: 0.5, B: 0.5}, ticks=10)
    shared({B: 0.5}, ticks=WINDOW, start=10, sharing=sharing)
    assert set(sharing.state(WINDOW + 10).tenants) == {B}


def test_a_tenant_survives_a_silence_longer_than_the_window():
    sharing = shared({A: 0.5})
    shared({A: 0.5}, ticks=1, start=10 * WINDOW, sharing=sharing)
    state = sharing.state(10 * WINDOW + 1)
    assert state.tenants[A].busy_seconds_total == WINDOW / 2 + 0.5
    assert state.contention_ratio is None


def test_ten_thousand_pods_that_come_and_go_leave_no_memory_behind():
    """dcgm-exporter #536, #702, #292, gpu-operator #340, ci-infra #1011: memory grew with time."""
    sharing = Sharing(window_seconds=WINDOW, short_window_seconds=SHORT)

    def live(first, last):
        for tick in range(first, last):
            newest = {("ml", f"pod-{tick - back}", "main"): (0.3, 1 + back) for back in range(3)}
            sharing.take(float(tick), 1.0, newest)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        early = live(1, 1_000)
        late = live(1_000, 10_000)
    finally:
        tracemalloc.stop()
    assert late - early < 20_000
    # The pods of the last window, of which each is named for three ticks.
    assert len(sharing.state(9_999.0).tenants) == WINDOW + 2


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf])
@pytest.mark.parametrize("where", ["covered", "unattributed", "tenant"])
def test_an_impossible_time_is_refused_by_name_and_nothing_of_its_tick_is_counted(wrong, where):
    sharing = shared({A: 0.5, B: 0.5})
    before = sharing.state(WINDOW)
    covered, unattributed, busy = (
        wrong if name == where else 0.1 for name in ("covered", "unattributed", "tenant")
    )
    with pytest.raises(ValueError, match=rf"{'pod-a' if where == 'tenant' else where}.*{wrong}"):
        sharing.take(WINDOW + 0.5, covered, {A: (busy, 1)}, unattributed)
    assert sharing.state(WINDOW) == before


def test_the_formulas_say_0_where_there_is_nothing_to_divide_by():
    assert device_ratio([], 0) == 0.0
    assert device_ratio([0, 0], 0) == 0.0
    assert tenant_ratio(0, 0, 0, 0, 0) == 0.0
    assert not is_contended(0, 0, 0)
