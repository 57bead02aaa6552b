"""Memory errors that were not corrected, and what the board could not or not yet do about them.

Corrected errors and counts over the life of a board are left out: NVIDIA knows no limit for the
former, and a board that was healed keeps the latter for ever.
"""

from typing import Final

from health.case import Case
from health.checks.model import (
    THREE_POLLS_SECONDS,
    Action,
    Check,
    CheckId,
    Healthy,
    Judgement,
    Unhealthy,
)
from health.checks.reading import careful, counted, flag, read
from slicewatch.catalog.errors import ECC, REMAP_BANKS, REMAPPED_ROWS, RETIRED_PAGES, SRAM

# A board can retire 64; NVIDIA takes it back from 60 on, under conditions that only it can check.
MOST_RETIRED_PAGES: Final = 60

_UNCORRECTED: Final = "uncorrected"


@careful
def _uncorrected(case: Case) -> Judgement:
    now = counted(read(case.newest, ECC).uncorrected_volatile, "the count of uncorrected errors")
    before = case.baseline.get(_UNCORRECTED, now)
    # What fell has begun anew, at 0: with a reset, or a load of the driver.
    baseline = {_UNCORRECTED: before if now >= before else 0.0}
    if now - baseline[_UNCORRECTED] >= case.thresholds.memory_errors:
        limit = case.thresholds.memory_errors
        return Unhealthy(message=f"at least {limit} uncorrected memory errors", baseline=baseline)
    return Healthy(baseline=baseline)


@careful
def _sram(case: Case) -> Judgement:
    if flag(read(case.newest, SRAM).threshold_exceeded, "the SRAM threshold"):
        return Unhealthy(
            message="so many uncorrectable SRAM errors that the board is to be replaced"
        )
    return Healthy()


@careful
def _remap_failed(case: Case) -> Judgement:
    if flag(read(case.newest, REMAPPED_ROWS).failed, "the failure of a row remapping"):
        return Unhealthy(message="a memory row could not be remapped")
    return Healthy()


@careful
def _remap_pending(case: Case) -> Judgement:
    if flag(read(case.newest, REMAPPED_ROWS).pending, "the pending of a row remapping"):
        return Unhealthy(message="a memory row waits for a reset of the GPU to be remapped")
    return Healthy()


@careful
def _spares(case: Case) -> Judgement:
    if counted(read(case.newest, REMAP_BANKS).none, "the number of banks without spare rows"):
        return Unhealthy(message="a memory bank has no spare rows left")
    return Healthy()


@careful
def _retired(case: Case) -> Judgement:
    reading = read(case.newest, RETIRED_PAGES)
    single = counted(reading.single_bit, "the number of retired pages")
    double = counted(reading.double_bit, "the number of retired pages")
    if single + double >= MOST_RETIRED_PAGES:
        return Unhealthy(message=f"at least {MOST_RETIRED_PAGES} memory pages are retired")
    return Healthy()


@careful
def _retirement_pending(case: Case) -> Judgement:
    if flag(read(case.newest, RETIRED_PAGES).pending, "the pending of a page retirement"):
        return Unhealthy(
            message="a memory page waits for the next load of the driver to be retired"
        )
    return Healthy()


CHECKS: Final = (
    Check(
        id=CheckId("uncorrected_memory_errors"),
        title="More uncorrected memory errors in this boot than MEMORY_ERROR_THRESHOLD.",
        reason="UncorrectedMemoryErrors",
        needs=(ECC,),
        raise_seconds=THREE_POLLS_SECONDS,
        action=Action.CORDON,
        judge=_uncorrected,
    ),
    Check(
        id=CheckId("sram_threshold"),
        title="The board says that its SRAM had too many uncorrectable errors.",
        reason="SRAMThresholdExceeded",
        needs=(SRAM,),
        raise_seconds=THREE_POLLS_SECONDS,
        action=Action.CORDON,
        judge=_sram,
    ),
    Check(
        id=CheckId("row_remap_failure"),
        title="A memory row could not be remapped.",
        reason="RowRemapFailed",
        needs=(REMAPPED_ROWS,),
        raise_seconds=THREE_POLLS_SECONDS,
        action=Action.CORDON,
        judge=_remap_failed,
    ),
    Check(
        id=CheckId("row_remap_pending"),
        title="A memory row is remapped with the next reset.",
        reason="RowRemapPending",
        needs=(REMAPPED_ROWS,),
        raise_seconds=THREE_POLLS_SECONDS,
        action=Action.RESET,
        judge=_remap_pending,
    ),
    Check(
        id=CheckId("spare_rows"),
        title="A memory bank has no spare rows left: its next bad row cannot be remapped.",
        reason="NoSpareRows",
        needs=(REMAP_BANKS,),
        raise_seconds=THREE_POLLS_SECONDS,
        action=Action.WARN,
        judge=_spares,
    ),
    Check(
        id=CheckId("retired_pages"),
        title="A board before Ampere has retired nearly as many memory pages as it can.",
        reason="ManyRetiredPages",
        needs=(RETIRED_PAGES,),
        raise_seconds=THREE_POLLS_SECONDS,
        action=Action.WARN,
        judge=_retired,
    ),
    Check(
        id=CheckId("page_retirement_pending"),
        title="A memory page of a board before Ampere is retired with the next load of the driver.",
        reason="PageRetirementPending",
        needs=(RETIRED_PAGES,),
        raise_seconds=THREE_POLLS_SECONDS,
        action=Action.RESET,
        judge=_retirement_pending,
    ),
)
