"""Memory errors of drivers that answer in part, with an error, or with nonsense."""

from ctypes import c_uint32

import pynvml
import pytest

from exporter.nvml.protocol import Failed, Lost, Unsupported, Value
from exporter.nvml.real.returns import Return
from slicewatch.catalog import CATALOG
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
    RemapBanks,
    RemappedRows,
    RetiredPages,
)
from testbed.driver.answers import error_counter

SCENARIO = """
nodes: [{name: n, gpus: [{model: A100-80GB}, {model: A100-80GB, mig: [1g.10gb]}, {model: T4}]}]
"""
WHOLE, PARTITIONED, OLD = range(3)
CORRECTED, UNCORRECTED = 0, 1
VOLATILE, AGGREGATE = 0, 1
BY_LOCATION = "nvmlDeviceGetMemoryErrorCounter"


def read(world, probe, gpu=WHOLE, number=0):
    session = world.session(gpu)
    return session.read(probe, session.devices().value[number])


def test_a_counter_that_is_refused_leaves_the_others(world):
    def change(answers):
        key = (UNCORRECTED, AGGREGATE)
        answers.refuse("nvmlDeviceGetTotalEccErrors", Return.NOT_SUPPORTED, key=key)

    world.answer(WHOLE, change)
    assert read(world, ECC) == Value(EccErrors(0, 0, 0, None))


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (Return.NOT_SUPPORTED, Unsupported("device")),
        (Return.UNKNOWN, Failed("UNKNOWN")),
        (Return.NO_PERMISSION, Unsupported("permission")),
        (Return.FUNCTION_NOT_FOUND, Unsupported("driver")),
        (Return.GPU_IS_LOST, Lost("gpu_is_lost")),
    ],
)
def test_where_every_counter_is_refused_the_code_says_why(world, code, outcome):
    world.answer(WHOLE, lambda into: into.forget("nvmlDeviceGetTotalEccErrors"))
    world.fail(WHOLE, nvmlDeviceGetTotalEccErrors=code)
    assert read(world, ECC) == outcome


def test_a_board_that_does_not_tell_its_ecc_mode_just_lacks_counters(world):
    def change(answers):
        answers.forget("nvmlDeviceGetTotalEccErrors")
        answers.forget("nvmlDeviceGetEccMode")

    world.answer(WHOLE, change)
    assert read(world, ECC) == Unsupported("device")


def test_ecc_that_is_turned_off_is_the_reason(world):
    def change(answers):
        answers.forget("nvmlDeviceGetTotalEccErrors")
        answers.put("nvmlDeviceGetEccMode", 0, 1)

    world.answer(WHOLE, change)
    assert read(world, ECC) == Unsupported("ecc_off")


def test_only_memories_with_a_counter_are_listed(world):
    def change(answers):
        answers.forget(BY_LOCATION)
        answers.put(BY_LOCATION, 7, 0, key=error_counter(CORRECTED, VOLATILE, 1))

    world.answer(WHOLE, change)
    found = EccByLocation(((MemoryLocation.L2_CACHE, EccErrors(corrected_volatile=7)),))
    assert read(world, ECC_LOCATIONS) == Value(found)


def test_an_instance_is_not_asked_for_what_it_cannot_know(world):
    session = world.session(PARTITIONED)
    _, instance = session.devices().value
    world.driver.forget_calls()
    session.read(ECC_LOCATIONS, instance)
    assert world.driver.calls() == {BY_LOCATION: len(MemoryLocation) - 1}


def test_an_instance_without_counters_does_not_support_them(world):
    world.answer(PARTITIONED, lambda into: into.forget(BY_LOCATION))
    assert read(world, ECC_LOCATIONS, PARTITIONED, 1) == Unsupported("device")


def test_the_sram_is_told_to_root_only(world):
    call = "nvmlDeviceGetSramEccErrorStatus"
    world.answer(WHOLE, lambda into: into.forget(call))
    world.fail(WHOLE, **{call: Return.NO_PERMISSION})
    assert read(world, SRAM) == Unsupported("permission")


def test_each_number_of_the_sram_lands_in_its_own_field(world):
    names = [name for name, _ in pynvml.c_nvmlEccSramErrorStatus_v1_t._fields_[1:]]

    def change(answers):
        status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
        for number, name in enumerate(names, start=2**33):
            setattr(status, name, number if name != "bThresholdExceeded" else 1)
        answers.put_version("nvmlDeviceGetSramEccErrorStatus", status)

    world.answer(WHOLE, change)
    sram = read(world, SRAM).value
    told = dict(zip(names, range(2**33, 2**33 + 11), strict=False))
    assert sram.parity_aggregate == told["aggregateUncParity"]
    assert sram.sec_ded_aggregate == told["aggregateUncSecDed"]
    assert sram.corrected_aggregate == told["aggregateCor"]
    assert sram.parity_volatile == told["volatileUncParity"]
    assert sram.sec_ded_volatile == told["volatileUncSecDed"]
    assert sram.corrected_volatile == told["volatileCor"]
    assert sram.l2_aggregate == told["aggregateUncBucketL2"]
    assert sram.sm_aggregate == told["aggregateUncBucketSm"]
    assert sram.pcie_aggregate == told["aggregateUncBucketPcie"]
    assert sram.microcontroller_aggregate == told["aggregateUncBucketMcu"]
    assert sram.other_aggregate == told["aggregateUncBucketOther"]
    assert sram.threshold_exceeded == 1


def test_rows_that_a_driver_tells_in_mig_mode_are_taken(world):
    def change(answers):
        answers.put("nvmlDeviceGetRemappedRows", 1, 2, 0, 1)
        answers.put("nvmlDeviceGetRowRemapperHistogram", 5, 4, 3, 2, 1)

    world.answer(PARTITIONED, change)
    assert read(world, REMAPPED_ROWS, PARTITIONED) == Value(RemappedRows(1, 2, 0, 1))
    assert read(world, REMAP_BANKS, PARTITIONED) == Value(RemapBanks(5, 4, 3, 2, 1))


def test_a_failure_in_mig_mode_is_still_a_failure(world):
    world.fail(PARTITIONED, nvmlDeviceGetRemappedRows=Return.UNKNOWN)
    assert read(world, REMAPPED_ROWS, PARTITIONED) == Failed("UNKNOWN")


def test_pages_that_are_not_counted_are_absent_and_pending_ones_told(world):
    def change(answers):
        for field in (pynvml.NVML_FI_DEV_RETIRED_SBE, pynvml.NVML_FI_DEV_RETIRED_DBE):
            answers.refuse("nvmlDeviceGetFieldValues", Return.NOT_SUPPORTED, key=(field, 0))

    world.answer(OLD, change)
    assert read(world, RETIRED_PAGES, OLD) == Value(RetiredPages(None, None, 0))


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (Return.NOT_SUPPORTED, Unsupported("device")),
        (Return.INVALID_ARGUMENT, Unsupported("driver")),
        (Return.UNKNOWN, Failed("UNKNOWN")),
    ],
)
def test_a_driver_that_knows_no_recovery_action_says_so(world, code, outcome):
    field = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
    world.answer(WHOLE, lambda into: into.refuse("nvmlDeviceGetFieldValues", code, key=(field, 0)))
    assert read(world, RECOVERY) == outcome


def test_an_action_that_means_not_available_is_not_shown(world):
    field = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
    world.answer(WHOLE, lambda into: into.put_field(field, c_uint32(2**32 - 1)))
    assert not read(world, RECOVERY).value.consistent()


def test_flags_that_mean_not_available_are_not_shown(world):
    world.answer(WHOLE, lambda into: into.put("nvmlDeviceGetRemappedRows", *[0xFFFFFFFF] * 4))
    reading = read(world, REMAPPED_ROWS).value
    for name in ("gpu_row_remap_pending", "gpu_row_remap_failure"):
        metric = CATALOG[name]
        assert not metric.limits.hold(metric.value(reading))
