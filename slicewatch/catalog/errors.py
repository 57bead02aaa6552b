"""Memory errors of a board, what was done about them, and what should be.

A volatile counter starts anew with each load of the driver, an aggregate one never does: they are
two families, since a sum over both would count most errors twice.
"""

from typing import Final

from slicewatch.catalog.model import FLAG, Label, Limits, Probe, Scope, Unit
from slicewatch.catalog.readings.errors import (
    EccByLocation,
    EccErrors,
    RecoveryAction,
    RemapBanks,
    RemappedRows,
    RetiredPages,
    SramErrors,
)

# Below every word for "not available" that NVML and DCGM have, of which 0x7FFFFFF0 is the lowest.
ERRORS: Final = Limits(low=0, high=0x7FFFFFEF)

BOARD: Final = frozenset({Scope.GPU})

ECC: Final = Probe(name="ecc", reading=EccErrors, scopes=BOARD, interval_seconds=10)
# Up to 32 calls a board, 7 a MIG instance: those count uncorrected errors outside of DRAM only.
ECC_LOCATIONS: Final = Probe(
    name="ecc_locations",
    reading=EccByLocation,
    scopes=frozenset({Scope.GPU, Scope.MIG}),
    interval_seconds=60,
    optional=True,
)
SRAM: Final = Probe(name="sram_ecc", reading=SramErrors, scopes=BOARD, interval_seconds=60)
REMAPPED_ROWS: Final = Probe(
    name="remapped_rows", reading=RemappedRows, scopes=BOARD, interval_seconds=10
)
REMAP_BANKS: Final = Probe(
    name="row_remap_banks", reading=RemapBanks, scopes=BOARD, interval_seconds=60
)
RETIRED_PAGES: Final = Probe(
    name="retired_pages", reading=RetiredPages, scopes=BOARD, interval_seconds=10
)
RECOVERY: Final = Probe(
    name="recovery_action",
    reading=RecoveryAction,
    scopes=BOARD,
    interval_seconds=5,
    consistent=lambda r: r.consistent(),
)

OF_ECC: Final = (
    ECC.counter(
        "gpu_ecc_errors_volatile_total",
        help="ECC errors in all memories of the board since the driver was loaded.",
        unit=Unit.NONE,
        limits=ERRORS,
        value=lambda r: r.volatile(),
        labels=(Label.KIND,),
    ),
    ECC.counter(
        "gpu_ecc_errors_aggregate_total",
        help="ECC errors in all memories over the life of the board.",
        unit=Unit.NONE,
        limits=ERRORS,
        value=lambda r: r.aggregate(),
        labels=(Label.KIND,),
    ),
    ECC_LOCATIONS.counter(
        "gpu_ecc_location_errors_volatile_total",
        help="ECC errors by memory since the driver was loaded; of a MIG instance, uncorrected ones.",
        unit=Unit.NONE,
        limits=ERRORS,
        value=lambda r: r.volatile(),
        labels=(Label.LOCATION, Label.KIND),
    ),
    ECC_LOCATIONS.counter(
        "gpu_ecc_location_errors_aggregate_total",
        help="ECC errors by memory over the life of the board.",
        unit=Unit.NONE,
        limits=ERRORS,
        value=lambda r: r.aggregate(),
        labels=(Label.LOCATION, Label.KIND),
    ),
)
OF_SRAM: Final = (
    SRAM.gauge(
        "gpu_ecc_sram_threshold_exceeded",
        help="1 once the board's SRAM had so many uncorrectable errors that it should be replaced.",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: r.threshold_exceeded,
    ),
    SRAM.counter(
        "gpu_ecc_sram_errors_volatile_total",
        help="SRAM errors since the driver was loaded, the uncorrectable ones by what found them.",
        unit=Unit.NONE,
        limits=ERRORS,
        value=lambda r: {
            "corrected": r.corrected_volatile,
            "uncorrected_parity": r.parity_volatile,
            "uncorrected_sec_ded": r.sec_ded_volatile,
        },
        labels=(Label.KIND,),
    ),
    SRAM.counter(
        "gpu_ecc_sram_errors_aggregate_total",
        help="SRAM errors over the life of the board, the uncorrectable ones by what found them.",
        unit=Unit.NONE,
        limits=ERRORS,
        value=lambda r: {
            "corrected": r.corrected_aggregate,
            "uncorrected_parity": r.parity_aggregate,
            "uncorrected_sec_ded": r.sec_ded_aggregate,
        },
        labels=(Label.KIND,),
    ),
    SRAM.counter(
        "gpu_ecc_sram_uncorrected_errors_aggregate_total",
        help="Uncorrectable SRAM errors over the life of the board by the unit that had them.",
        unit=Unit.NONE,
        limits=ERRORS,
        value=lambda r: {
            "l2": r.l2_aggregate,
            "sm": r.sm_aggregate,
            "pcie": r.pcie_aggregate,
            "microcontroller": r.microcontroller_aggregate,
            "other": r.other_aggregate,
        },
        labels=(Label.LOCATION,),
        optional=True,
    ),
)
OF_ROWS: Final = (
    REMAPPED_ROWS.counter(
        "gpu_remapped_rows_total",
        help="Memory rows replaced by spare ones over the life of the board, by the errors they had.",
        unit=Unit.NONE,
        limits=ERRORS,
        value=lambda r: {"correctable": r.correctable, "uncorrectable": r.uncorrectable},
        labels=(Label.CAUSE,),
    ),
    REMAPPED_ROWS.gauge(
        "gpu_row_remap_pending",
        help="1 while a memory row waits for a reset of the GPU to be remapped.",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: r.pending,
    ),
    REMAPPED_ROWS.gauge(
        "gpu_row_remap_failure",
        help="1 once a memory row could not be remapped: the board should be replaced.",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: r.failed,
    ),
    REMAP_BANKS.gauge(
        "gpu_row_remap_banks",
        help="Memory banks by how many of their spare rows are left, from max (all) to none.",
        unit=Unit.NONE,
        limits=ERRORS,
        value=lambda r: {
            "max": r.max, "high": r.high, "partial": r.partial, "low": r.low, "none": r.none,
        },
        labels=(Label.AVAILABILITY,),
    ),
    RETIRED_PAGES.gauge(
        "gpu_retired_pages",
        help="Memory pages that boards before Ampere no longer use, by the errors they had.",
        unit=Unit.NONE,
        limits=ERRORS,
        value=lambda r: {"corrected": r.single_bit, "uncorrected": r.double_bit},
        labels=(Label.CAUSE,),
    ),
    RETIRED_PAGES.gauge(
        "gpu_retired_pages_pending",
        help="1 while a memory page waits for the next load of the driver to be retired.",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: r.pending,
    ),
)  # fmt: skip
OF_RECOVERY: Final = (
    RECOVERY.gauge(
        "gpu_recovery_action",
        help="1 for what the driver wants done to recover the GPU, 0 for all else.",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: r.wanted(),
        labels=(Label.ACTION,),
    ),
)
METRICS: Final = OF_ECC + OF_SRAM + OF_ROWS + OF_RECOVERY
