"""Memory errors, and what is done about them."""

from ctypes import c_uint32, c_uint64

from simulator.gpu import SimulatedGpu
from slicewatch.catalog.readings.errors import EccErrors, MemoryLocation
from testbed.driver.answers import Answers, error_counter, nvml

LOCATIONS = tuple(MemoryLocation)
# nvmlMemoryErrorType_t, nvmlEccCounterType_t.
COUNTERS = ((0, 0), (1, 0), (0, 1), (1, 1))


def answers(gpu: SimulatedGpu, into: Answers) -> None:
    """Put what a GPU tells of its errors, and of those of its MIG devices."""
    _put_ecc(gpu, into)
    _put_sram(gpu, into)
    _put_memory(gpu, into)
    action = c_uint32(gpu.errors.recovery().number)
    into.put_field(nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, action)


def _put_ecc(gpu: SimulatedGpu, into: Answers) -> None:
    total = gpu.errors.ecc()
    if total is not None:
        for (kind, counter), number in _counted(total):
            into.put("nvmlDeviceGetTotalEccErrors", c_uint64(number), key=(kind, counter))
    for slot, device in ((None, None), *((device.index, device) for device in gpu.mig_devices)):
        located = gpu.errors.by_location(device)
        for location, errors in located.found if located else ():
            for (kind, counter), number in _counted(errors):
                key = error_counter(kind, counter, LOCATIONS.index(location))
                call = "nvmlDeviceGetMemoryErrorCounter"
                into.put(call, c_uint64(number), key=key, slot=slot)


def _counted(errors: EccErrors) -> list[tuple[tuple[int, int], int]]:
    numbers = (
        errors.corrected_volatile,
        errors.uncorrected_volatile,
        errors.corrected_aggregate,
        errors.uncorrected_aggregate,
    )
    return [(key, n) for key, n in zip(COUNTERS, numbers, strict=True) if n is not None]


def _put_sram(gpu: SimulatedGpu, into: Answers) -> None:
    sram = gpu.errors.sram()
    if sram is None:
        return
    status = nvml.c_nvmlEccSramErrorStatus_v1_t()
    status.aggregateUncParity, status.aggregateUncSecDed = (
        sram.parity_aggregate,
        sram.sec_ded_aggregate,
    )
    status.aggregateCor, status.volatileCor = sram.corrected_aggregate, sram.corrected_volatile
    status.volatileUncParity, status.volatileUncSecDed = (
        sram.parity_volatile,
        sram.sec_ded_volatile,
    )
    status.aggregateUncBucketL2, status.aggregateUncBucketSm = sram.l2_aggregate, sram.sm_aggregate
    status.aggregateUncBucketPcie = sram.pcie_aggregate
    status.aggregateUncBucketMcu = sram.microcontroller_aggregate
    status.aggregateUncBucketOther = sram.other_aggregate
    status.bThresholdExceeded = sram.threshold_exceeded
    into.put_version("nvmlDeviceGetSramEccErrorStatus", status)


def _put_memory(gpu: SimulatedGpu, into: Answers) -> None:
    rows, banks, pages = (
        gpu.errors.remapped_rows(),
        gpu.errors.remap_banks(),
        gpu.errors.retired_pages(),
    )
    if rows is not None:
        call = "nvmlDeviceGetRemappedRows"
        into.put(call, rows.correctable, rows.uncorrectable, rows.pending, rows.failed)
    if banks is not None:
        call = "nvmlDeviceGetRowRemapperHistogram"
        into.put(call, banks.max, banks.high, banks.partial, banks.low, banks.none)
    if pages is not None:
        for field, number in (
            (nvml.NVML_FI_DEV_RETIRED_SBE, pages.single_bit),
            (nvml.NVML_FI_DEV_RETIRED_DBE, pages.double_bit),
            (nvml.NVML_FI_DEV_RETIRED_PENDING, pages.pending),
        ):
            into.put_field(field, c_uint64(number or 0))
