"""What readings of vGPUs become: shares, seconds, one waiting ratio; and what is absent."""

import pytest

from exporter.measure.windows import Grid, Window
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Unit
from slicewatch.catalog.readings.vgpu import (
    Vgpu,
    VgpuRate,
    Vgpus,
    VgpuScheduler,
    VgpuTime,
    VgpuUtilization,
    VgpuWaits,
)

WORD, LONG, BLANK = 2**32 - 1, 2**64 - 1, 2_147_483_632
WAIT_RATIO = CATALOG["gpu_vgpu_wait_ratio"]
WAITED = CATALOG["gpu_vgpu_wait_seconds_total"]
SLICE = CATALOG["gpu_vgpu_scheduler_time_slice_seconds"]
POLICY = CATALOG["gpu_vgpu_scheduler_info"]

STATED = Vgpu("u-1", "NVIDIA L40S-12Q", "vm-1", 7, 12, 1)
SILENT = Vgpu("u-2", "", "")
VGPUS = Vgpus(3, (STATED, SILENT))


def value(name, reading):
    return CATALOG[name].value(reading)


def test_each_vgpu_is_described_and_all_are_counted():
    assert value("gpu_vgpu_info", VGPUS) == {
        ("u-1", "NVIDIA L40S-12Q", "vm-1"): 1, ("u-2", "", ""): 1,
    }  # fmt: skip
    assert value("gpu_vgpu_active", VGPUS) == 3


@pytest.mark.parametrize(
    ("name", "stated"),
    [
        ("gpu_vgpu_memory_used_bytes", 7),
        ("gpu_vgpu_memory_limit_bytes", 12),
        ("gpu_vgpu_licensed", 1),
    ],
)
def test_what_a_vgpu_does_not_state_is_absent_and_never_nothing(name, stated):
    assert value(name, VGPUS) == {"u-1": stated, "u-2": None}
    assert not CATALOG[name].limits.hold(LONG)


@pytest.mark.parametrize(
    ("name", "ratio"),
    [
        ("gpu_vgpu_sm_ratio", 0.4),
        ("gpu_vgpu_memory_bandwidth_ratio", 0.3),
        ("gpu_vgpu_encoder_ratio", 0.2),
        ("gpu_vgpu_decoder_ratio", 0.1),
    ],
)
def test_rates_are_shares_of_the_whole_gpu(name, ratio):
    metric = CATALOG[name]
    assert metric.unit is Unit.RATIO
    assert value(name, VgpuUtilization((VgpuRate("u", 40, 30, 20, 10),))) == {"u": ratio}
    for nonsense in (101, WORD, LONG, BLANK):
        rates = VgpuUtilization((VgpuRate("u", *[nonsense] * 4),))
        assert not metric.limits.hold(value(name, rates)["u"])


@pytest.mark.parametrize(
    ("number", "name"), [(1, "best_effort"), (2, "equal_share"), (3, "fixed_share")]
)
def test_a_policy_is_named(number, name):
    assert POLICY.value(VgpuScheduler(number, 0)) == {name: 1}


@pytest.mark.parametrize("number", [0, 4, WORD])
def test_a_policy_without_a_name_has_no_series(number):
    assert POLICY.value(VgpuScheduler(number, 2_000_000)) is None


def test_a_time_slice_is_absent_where_none_is_kept_to():
    assert SLICE.value(VgpuScheduler(2, 2_000_000)) == pytest.approx(0.002)
    assert SLICE.value(VgpuScheduler(2, 0)) is None
    assert SLICE.value(VgpuScheduler(1, 2_000_000)) is None
    assert not SLICE.limits.hold(SLICE.value(VgpuScheduler(3, WORD)))


def test_running_and_waiting_are_counted_in_seconds():
    waits = VgpuWaits((VgpuTime("u", 2_500_000_000, 500_000_000), VgpuTime("", 0, 0)))
    assert value("gpu_vgpu_run_seconds_total", waits) == {"u": 2.5, "": 0}
    assert WAITED.value(waits) == {"u": 0.5, "": 0}
    assert not WAITED.limits.hold(WAITED.value(VgpuWaits((VgpuTime("u", 0, LONG),)))["u"])


def test_waiting_is_unknown_where_nobody_had_work():
    assert WAIT_RATIO.value(VgpuWaits(())) is None
    assert WAIT_RATIO.value(VgpuWaits((), 3, 1)) == 0.25
    assert WAIT_RATIO.value(VgpuWaits((), 3, 0)) == 0


def test_a_log_that_cannot_be_true_is_no_reading():
    consistent = WAIT_RATIO.origin.consistent
    assert consistent(VgpuWaits((), accepted=1, rejected=1))
    assert consistent(VgpuWaits(()))
    assert not consistent(VgpuWaits((), rejected=1))


def test_over_the_window_a_busy_second_weighs_more_than_an_idle_one():
    grid = Grid(window_seconds=15, tick_seconds=1)
    window = Window(1, grid)
    second = 10**9
    reads = [(second, 3 * second), (second // 2, 0), (second // 4, second // 4)]
    for tick, (run, wait) in enumerate(reads):
        grid.advance(tick)
        reading = VgpuWaits((), run, wait)
        window.add(0, WAIT_RATIO.value(reading), WAIT_RATIO.weight(reading))
    (mean,) = window.means()
    assert mean == pytest.approx(sum(w for _, w in reads) / sum(r + w for r, w in reads))
