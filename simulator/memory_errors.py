"""Memory errors of one simulated GPU, as its driver counts them, and what follows from them.

Everything is counted from the story whenever it is asked for: an error that happened stays, also
when the fault that caused it is cleared. Nothing here says what would be done about an error in
truth: a row is remapped, and an action wanted, because the scenario says so.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from simulator import garbage
from simulator.clock import Clock
from simulator.driver import Driver
from simulator.faults import Story
from simulator.scenario import Ecc, GpuFault, RecoveryNeeded, RowRemap
from simulator.stage import MigDevice
from simulator.timeline import GpuTimeline
from slicewatch.catalog.readings.errors import (
    RECOVERIES,
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
from slicewatch.hardware import GpuModel
from slicewatch.hardware.features import comes_with_ecc, retires_pages

# Of an A100; the number depends on the model.
BANKS: Final = 640
SPARE_ROWS_OF_A_BANK: Final = 8
# From how many spare rows on a bank counts as what: nobody documents it, but all and none.
_AVAILABILITIES: Final = {"max": 8, "high": 5, "partial": 2, "low": 1, "none": 0}
# Uncorrectable errors of the SRAM after which the simulated driver gives the board up.
SRAM_THRESHOLD: Final = 4

R = TypeVar("R", bound=msgspec.Struct)
F = TypeVar("F", bound=GpuFault)

Counted = Callable[[Ecc], bool]


class MemoryErrors:
    """What one GPU tells of its memory errors. Computed when read, on any thread.

    None is what the GPU does not support, now or ever.
    """

    def __init__(
        self,
        model: GpuModel,
        story: Story,
        timeline: GpuTimeline,
        *,
        clock: Clock,
        driver: Callable[[float], Driver],
    ) -> None:
        self._model = model
        self._story = story
        self._timeline = timeline
        self._clock = clock
        self._driver = driver
        self.ecc_enabled = comes_with_ecc(model)

    def ecc(self) -> EccErrors | None:
        """Return the errors of all memories; None while ECC is off."""
        return self._shown(self._errors(lambda _: True)) if self.ecc_enabled else None

    def by_location(self, device: MigDevice | None = None) -> EccByLocation | None:
        """Return the errors by memory, of the GPU or of a MIG device; None while ECC is off.

        Of a device they are the uncorrected ones of the SRAM.
        """
        if not self.ecc_enabled:
            return None
        if device is not None:
            number = device.gpu_instance_id
            alone = self._errors(lambda e: e.location == "sram" and e.gpu_instance == number)
            there = self._shown(EccErrors(uncorrected_volatile=alone.uncorrected_volatile))
            return EccByLocation(((MemoryLocation.SRAM, there),))
        return EccByLocation(
            (
                (MemoryLocation.DRAM, self._shown(self._errors(lambda e: e.location == "dram"))),
                (MemoryLocation.SRAM, self._shown(self._errors(lambda e: e.location == "sram"))),
            )
        )

    def sram(self) -> SramErrors | None:
        """Return the errors of the SRAM: all those that are uncorrected were found by SEC-DED."""
        if not self.ecc_enabled or retires_pages(self._model):
            return None
        errors = self._errors(lambda e: e.location == "sram")
        volatile, aggregate = errors.uncorrected_volatile or 0, errors.uncorrected_aggregate or 0
        return self._shown(
            SramErrors(
                parity_aggregate=0,
                sec_ded_aggregate=aggregate,
                corrected_aggregate=errors.corrected_aggregate or 0,
                parity_volatile=0,
                sec_ded_volatile=volatile,
                corrected_volatile=errors.corrected_volatile or 0,
                l2_aggregate=aggregate,
                sm_aggregate=0,
                pcie_aggregate=0,
                microcontroller_aggregate=0,
                other_aggregate=0,
                threshold_exceeded=int(aggregate >= SRAM_THRESHOLD),
            )
        )

    def remapped_rows(self) -> RemappedRows | None:
        """Return the remapped rows; None before Ampere, and while the GPU is partitioned."""
        if retires_pages(self._model) or self._timeline.stage(self._clock.now()).mig_enabled:
            return None
        pending = any(isinstance(f, RowRemap) and not f.failed for f in self._current())
        return self._shown(
            RemappedRows(
                correctable=self._rows("correctable"),
                uncorrectable=self._rows("uncorrectable"),
                pending=int(pending),
                failed=int(any(times for fault, times in self._begun(RowRemap) if fault.failed)),
            )
        )

    def remap_banks(self) -> RemapBanks | None:
        """Return how many spare rows the banks have left; None as for the rows."""
        if self.remapped_rows() is None:
            return None
        counts = {**dict.fromkeys(_AVAILABILITIES, 0), "max": BANKS}
        for used, banks in self._used_banks():
            touched = min(banks, counts["max"])
            counts["max"] -= touched
            counts[_availability(SPARE_ROWS_OF_A_BANK - used)] += touched
        return self._shown(RemapBanks(**counts))

    def retired_pages(self) -> RetiredPages | None:
        """Return the retired pages, one for each uncorrected error; None since Ampere."""
        if not self.ecc_enabled or not retires_pages(self._model):
            return None
        errors = self._errors(lambda e: e.location == "dram")
        return self._shown(
            RetiredPages(
                single_bit=0,
                double_bit=errors.uncorrected_aggregate,
                pending=int(bool(errors.uncorrected_volatile)),
            )
        )

    def recovery(self) -> RecoveryAction:
        """Return what the driver wants done, by the latest fault that says so."""
        return self._shown(RecoveryAction(self.recovery_at(self._clock.now())))

    def recovery_at(self, at: float) -> int:
        """Return the number of the action that the driver wants at a moment."""
        with self._timeline.changed:
            faults = self._story.current(at, self._timeline.index)
        wanted = [fault.action for fault in faults if isinstance(fault, RecoveryNeeded)]
        return RECOVERIES.index(wanted[-1] if wanted else Recovery.NONE)

    def _errors(self, counted: Counted) -> EccErrors:
        def number(bits: str, begun: Sequence[tuple[Ecc, int]]) -> int:
            return sum(f.errors * times for f, times in begun if f.bits == bits and counted(f))

        ever = self._begun(Ecc)
        volatile = self._begun(Ecc, since=self._driver(self._clock.now()).loaded_at)
        return EccErrors(
            corrected_volatile=number("single", volatile),
            uncorrected_volatile=number("double", volatile),
            corrected_aggregate=number("single", ever),
            uncorrected_aggregate=number("double", ever),
        )

    def _rows(self, cause: str) -> int:
        begun = self._begun(RowRemap)
        return sum(f.rows * times for f, times in begun if f.cause == cause and not f.failed)

    def _used_banks(self) -> list[tuple[int, int]]:
        """Return how many rows banks have lost, and how many banks; no two faults share one."""
        done = [(fault, times) for fault, times in self._begun(RowRemap) if not fault.failed]
        return [
            (fault.rows, times) if fault.bank == "same" else (1, fault.rows * times)
            for fault, times in done
        ]

    def _begun(self, kind: type[F], since: float = 0.0) -> list[tuple[F, int]]:
        with self._timeline.changed:
            return self._story.begun(kind, self._timeline.index, since, self._clock.now())

    def _current(self) -> list[object]:
        with self._timeline.changed:
            return [*self._story.current(self._clock.now(), self._timeline.index)]

    def _shown(self, reading: R) -> R:
        stage = self._timeline.stage(self._clock.now())
        return garbage.instead_of(reading) if stage.garbage else reading


def _availability(spare: int) -> str:
    return next(name for name, least in _AVAILABILITIES.items() if spare >= least)
