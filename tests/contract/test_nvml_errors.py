"""Memory errors and what is done about them, through both implementations of the Nvml seam."""

import pytest

from exporter.nvml.protocol import Unsupported, Value
from simulator import scenario
from slicewatch.catalog.errors import (
    ECC,
    ECC_LOCATIONS,
    RECOVERY,
    REMAP_BANKS,
    REMAPPED_ROWS,
    RETIRED_PAGES,
    SRAM,
)
from slicewatch.catalog.readings.errors import (
    EccByLocation,
    EccErrors,
    MemoryLocation,
    Recovery,
    RecoveryAction,
    RemapBanks,
    RemappedRows,
    RetiredPages,
)

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB}
      - {model: H100-80GB, mig: [1g.10gb, 2g.20gb]}
      - {model: V100-32GB}
      - {model: RTX4090}
faults:
  - {kind: ecc, node: n, gpu: 0, at: 0s, bits: single, errors: 3}
  - {kind: ecc, node: n, gpu: 0, at: 10s, bits: double, location: sram}
"""
WHOLE, PARTITIONED, OLD, DESKTOP = range(4)
NONE = Unsupported("device")


def read(world, probe, gpu, number=0):
    session = world.session(gpu)
    return session.read(probe, session.devices().value[number])


def ecc(gpu, bits, **more):
    return scenario.Ecc(node="n", gpu=gpu, bits=bits, **more)


def test_errors_are_counted_by_kind(world):
    assert read(world, ECC, WHOLE) == Value(EccErrors(3, 1, 3, 1))
    world.inject(ecc(WHOLE, "single", errors=2))
    assert read(world, ECC, WHOLE) == Value(EccErrors(5, 1, 5, 1))


def test_a_board_without_errors_has_counters_at_zero(world):
    """dcgm-exporter #700, #646: rows that were missing until the first error."""
    assert read(world, ECC, OLD) == Value(EccErrors(0, 0, 0, 0))
    assert read(world, RETIRED_PAGES, OLD) == Value(RetiredPages(0, 0, 0))
    assert read(world, REMAPPED_ROWS, WHOLE) == Value(RemappedRows(0, 0, 0, 0))


def test_volatile_counters_start_anew_with_the_driver_and_aggregate_ones_do_not(world):
    world.inject(scenario.DriverGone(node="n", lasts=scenario.Seconds(2)))
    world.advance(5)
    world.nvml.stop()
    world.nvml.start()
    assert read(world, ECC, WHOLE) == Value(EccErrors(0, 0, 3, 1))
    world.inject(ecc(WHOLE, "double"))
    assert read(world, ECC, WHOLE) == Value(EccErrors(0, 1, 3, 2))


@pytest.mark.parametrize("probe", [ECC, ECC_LOCATIONS, SRAM], ids=lambda probe: probe.name)
def test_where_ecc_is_off_that_is_the_reason(world, probe):
    assert read(world, probe, DESKTOP) == Unsupported("ecc_off")


def test_errors_are_told_apart_by_memory(world):
    assert read(world, ECC_LOCATIONS, WHOLE) == Value(
        EccByLocation(
            (
                (MemoryLocation.DRAM, EccErrors(3, 0, 3, 0)),
                (MemoryLocation.SRAM, EccErrors(0, 1, 0, 1)),
            )
        )
    )


def test_a_mig_device_has_the_uncorrected_errors_of_its_own_sram(world):
    instance = world.node.gpus[PARTITIONED].mig_devices[1].gpu_instance_id
    world.inject(ecc(PARTITIONED, "double", location="sram", gpu_instance=instance))
    world.inject(ecc(PARTITIONED, "single", location="sram", gpu_instance=instance))
    counted = [read(world, ECC_LOCATIONS, PARTITIONED, number) for number in (1, 2)]
    assert counted == [
        Value(EccByLocation(((MemoryLocation.SRAM, EccErrors(None, number)),)))
        for number in (0, 1)
    ]
    assert read(world, ECC, PARTITIONED, 1) == Unsupported("mig_instance")
    assert read(world, ECC, PARTITIONED) == Value(EccErrors(1, 1, 1, 1))


def test_sram_errors_reach_the_threshold(world):
    assert read(world, SRAM, OLD) == NONE
    before = read(world, SRAM, WHOLE).value
    assert (before.sec_ded_volatile, before.l2_aggregate, before.threshold_exceeded) == (1, 1, 0)
    assert (before.parity_volatile, before.parity_aggregate, before.sm_aggregate) == (0, 0, 0)
    world.inject(ecc(WHOLE, "double", location="sram", errors=3))
    world.inject(ecc(WHOLE, "single", location="sram", errors=9))
    after = read(world, SRAM, WHOLE).value
    assert (after.sec_ded_aggregate, after.corrected_volatile) == (4, 9)
    assert after.threshold_exceeded == 1


def test_a_row_is_pending_until_the_reset_and_stays_remapped(world):
    reset = world.inject(scenario.RowRemap(node="n", gpu=WHOLE, rows=2))
    assert read(world, REMAPPED_ROWS, WHOLE) == Value(RemappedRows(0, 2, 1, 0))
    assert read(world, REMAP_BANKS, WHOLE) == Value(RemapBanks(638, 2, 0, 0, 0))
    world.advance(1)
    world.clear(reset)
    assert read(world, REMAPPED_ROWS, WHOLE) == Value(RemappedRows(0, 2, 0, 0))


def test_a_bank_without_spare_rows_is_told(world):
    world.inject(scenario.RowRemap(node="n", gpu=WHOLE, rows=8, bank="same"))
    assert read(world, REMAP_BANKS, WHOLE) == Value(RemapBanks(639, 0, 0, 0, 1))


def test_a_failed_remapping_is_never_forgotten(world):
    failure = world.inject(scenario.RowRemap(node="n", gpu=WHOLE, failed=True))
    world.advance(1)
    world.clear(failure)
    assert read(world, REMAPPED_ROWS, WHOLE) == Value(RemappedRows(0, 0, 0, 1))


@pytest.mark.parametrize("probe", [REMAPPED_ROWS, REMAP_BANKS], ids=lambda probe: probe.name)
def test_rows_are_remapped_since_ampere_and_not_told_under_mig(world, probe):
    assert read(world, probe, PARTITIONED) == Unsupported("mig_enabled")
    assert read(world, probe, OLD) == NONE


def test_pages_are_retired_before_ampere_and_pending_until_the_driver_is_loaded_anew(world):
    assert read(world, RETIRED_PAGES, WHOLE) == NONE
    world.inject(ecc(OLD, "double"))
    assert read(world, RETIRED_PAGES, OLD) == Value(RetiredPages(0, 1, 1))
    world.inject(scenario.DriverGone(node="n", lasts=scenario.Seconds(2)))
    world.advance(5)
    world.nvml.stop()
    world.nvml.start()
    assert read(world, RETIRED_PAGES, OLD) == Value(RetiredPages(0, 1, 0))


def test_what_would_recover_the_gpu_is_told_while_it_is_needed(world):
    """nvidia_gpu_exporter #393: a GPU that waits for a reset looks like any other."""
    assert read(world, RECOVERY, WHOLE) == Value(RecoveryAction(0))
    needed = scenario.RecoveryNeeded(node="n", gpu=WHOLE, action=Recovery.GPU_RESET)
    injection = world.inject(needed)
    assert read(world, RECOVERY, WHOLE) == Value(RecoveryAction(1))
    assert read(world, RECOVERY, PARTITIONED) == Value(RecoveryAction(0))
    world.clear(injection)
    assert read(world, RECOVERY, WHOLE) == Value(RecoveryAction(0))
