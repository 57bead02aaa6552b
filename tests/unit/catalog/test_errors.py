"""What readings of memory errors become: counters by kind, flags, and never a sentinel."""

import msgspec
import pytest

from slicewatch.catalog import CATALOG
from slicewatch.catalog.errors import METRICS
from slicewatch.catalog.index import reads_of
from slicewatch.catalog.readings.errors import (
    EccByLocation,
    EccErrors,
    MemoryLocation,
    Recovery,
    RecoveryAction,
    RemapBanks,
    RemappedRows,
    RetiredPages,
    SramErrors,
)

# nvml.h, and the words of DCGM for: blank, not found, not supported, no permission.
SENTINELS = [
    2**32 - 1, 2**64 - 1, *range(0x7FFFFFF0, 0x7FFFFFF4), *range(2**63 - 16, 2**63 - 12),
]  # fmt: skip
SRAM = SramErrors(
    parity_aggregate=1, sec_ded_aggregate=2, corrected_aggregate=3, parity_volatile=4,
    sec_ded_volatile=5, corrected_volatile=6, l2_aggregate=7, sm_aggregate=8, pcie_aggregate=9,
    microcontroller_aggregate=10, other_aggregate=11, threshold_exceeded=0,
)  # fmt: skip


def value(name, reading):
    return CATALOG[name].value(reading)


def test_volatile_and_aggregate_errors_are_two_families_so_that_a_sum_makes_sense():
    reading = EccErrors(1, 2, 3, 4)
    assert value("gpu_ecc_errors_volatile_total", reading) == {"corrected": 1, "uncorrected": 2}
    assert value("gpu_ecc_errors_aggregate_total", reading) == {"corrected": 3, "uncorrected": 4}


def test_no_errors_are_zero_and_a_counter_that_is_not_there_is_absent():
    """dcgm-exporter #700, #646: counters that were blank instead of 0."""
    reading = EccErrors(0, 0, None, 0)
    assert value("gpu_ecc_errors_volatile_total", reading) == {"corrected": 0, "uncorrected": 0}
    assert value("gpu_ecc_errors_aggregate_total", reading) == {
        "corrected": None, "uncorrected": 0,
    }  # fmt: skip


def test_errors_by_location_have_both_labels():
    reading = EccByLocation(
        (
            (MemoryLocation.DRAM, EccErrors(1, 0, 5, 2)),
            (MemoryLocation.SRAM, EccErrors(uncorrected_volatile=7)),
        )
    )
    assert value("gpu_ecc_location_errors_volatile_total", reading) == {
        ("dram", "corrected"): 1, ("dram", "uncorrected"): 0,
        ("sram", "corrected"): None, ("sram", "uncorrected"): 7,
    }  # fmt: skip
    assert value("gpu_ecc_location_errors_aggregate_total", reading) == {
        ("dram", "corrected"): 5, ("dram", "uncorrected"): 2,
        ("sram", "corrected"): None, ("sram", "uncorrected"): None,
    }  # fmt: skip


def test_sram_errors_are_told_apart_by_what_found_them_and_where():
    assert value("gpu_ecc_sram_errors_volatile_total", SRAM) == {
        "corrected": 6, "uncorrected_parity": 4, "uncorrected_sec_ded": 5,
    }  # fmt: skip
    assert value("gpu_ecc_sram_errors_aggregate_total", SRAM) == {
        "corrected": 3, "uncorrected_parity": 1, "uncorrected_sec_ded": 2,
    }  # fmt: skip
    assert value("gpu_ecc_sram_uncorrected_errors_aggregate_total", SRAM) == {
        "l2": 7, "sm": 8, "pcie": 9, "microcontroller": 10, "other": 11,
    }  # fmt: skip
    assert value("gpu_ecc_sram_threshold_exceeded", SRAM) == 0


def test_rows_banks_and_pages_have_their_own_labels():
    rows = RemappedRows(1, 2, 1, 0)
    assert value("gpu_remapped_rows_total", rows) == {"correctable": 1, "uncorrectable": 2}
    assert value("gpu_row_remap_pending", rows) == 1
    assert value("gpu_row_remap_failure", rows) == 0
    assert value("gpu_row_remap_banks", RemapBanks(5, 4, 3, 2, 1)) == {
        "max": 5, "high": 4, "partial": 3, "low": 2, "none": 1,
    }  # fmt: skip
    pages = RetiredPages(3, None, 0)
    assert value("gpu_retired_pages", pages) == {"corrected": 3, "uncorrected": None}
    assert value("gpu_retired_pages_pending", pages) == 0


@pytest.mark.parametrize(("number", "action"), list(enumerate(Recovery)))
def test_exactly_the_wanted_action_is_one(number, action):
    """nvidia_gpu_exporter #393: the wish for a reset is a metric of its own."""
    reading = RecoveryAction(number)
    assert reading.consistent()
    wanted = value("gpu_recovery_action", reading)
    assert wanted.keys() == set(Recovery)
    assert {name for name, flag in wanted.items() if flag} == {action}


def test_an_action_of_a_newer_driver_is_none_of_ours_and_not_no_action():
    reading = RecoveryAction(len(Recovery))
    assert reading.consistent()
    assert set(value("gpu_recovery_action", reading).values()) == {0}


@pytest.mark.parametrize("sentinel", [*SENTINELS, -1])
def test_a_word_for_not_available_is_no_action(sentinel):
    assert not RecoveryAction(sentinel).consistent()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
@pytest.mark.parametrize("sentinel", SENTINELS)
def test_a_word_for_not_available_never_comes_out(metric, sentinel):
    """DCGM #83: its blank of 32 bits was taken for a number."""
    (probe,) = reads_of(metric)
    if probe.reading is EccByLocation:
        reading = EccByLocation(((MemoryLocation.DRAM, EccErrors(*[sentinel] * 4)),))
    else:
        reading = probe.reading(*[sentinel] * len(msgspec.structs.fields(probe.reading)))
    if probe.consistent is not None and not probe.consistent(reading):
        return
    made = metric.value(reading)
    values = made.values() if isinstance(made, dict) else [made]
    assert list(values)
    assert not any(metric.limits.hold(number) for number in values)


def test_only_what_is_wide_has_to_be_asked_for():
    assert {metric.name for metric in METRICS if metric.optional} == {
        "gpu_ecc_location_errors_volatile_total",
        "gpu_ecc_location_errors_aggregate_total",
        "gpu_ecc_sram_uncorrected_errors_aggregate_total",
    }
