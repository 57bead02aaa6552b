"""Memory: what was not corrected, what could not be repaired, what waits for a repair."""

import pytest

from health.case import Thresholds
from health.checks.model import Action, Healthy, Unhealthy
from slicewatch.catalog.errors import ECC, REMAP_BANKS, REMAPPED_ROWS, RETIRED_PAGES, SRAM
from slicewatch.catalog.readings.errors import (
    EccErrors,
    RemapBanks,
    RemappedRows,
    RetiredPages,
    SramErrors,
)
from slicewatch.wire.evidence import Unsupported
from testbed.evidence import case, gpu
from tests.unit.health.checks.verdict import action, actions, found, is_healthy, is_unknown, judged


def ecc(volatile, *, corrected=0):
    return gpu(
        readings={
            ECC: EccErrors(
                corrected_volatile=corrected,
                uncorrected_volatile=volatile,
                corrected_aggregate=corrected,
                uncorrected_aggregate=0,
            )
        }
    )


def rows(*, pending=0, failed=0, uncorrectable=0):
    reading = RemappedRows(0, uncorrectable, pending, failed)
    return gpu(readings={REMAPPED_ROWS: reading})


def sram(threshold_exceeded):
    return gpu(readings={SRAM: SramErrors(*11 * [0], threshold_exceeded)})


class TestUncorrected:
    CHECK = "uncorrected_memory_errors"

    def course(self, *counts, baseline=None, limit=10):
        """Judge counts one after the other, as the engine does; return the last verdict."""
        kept, verdict = dict(baseline or {}), None
        for count in counts:
            thresholds = Thresholds(memory_errors=limit)
            verdict = judged(self.CHECK, case(ecc(count), thresholds=thresholds, baseline=kept))
            kept = dict(verdict.baseline)
        return verdict

    def test_as_many_as_the_threshold_since_the_first_look_are_a_fault(self):
        assert isinstance(self.course(0, 9), Healthy)
        assert isinstance(self.course(0, 10), Unhealthy)
        assert isinstance(self.course(0, 1, 5, 9, 10), Unhealthy)

    def test_what_was_there_at_the_first_look_is_of_before(self):
        assert isinstance(self.course(500), Healthy)
        assert isinstance(self.course(500, 509), Healthy)
        assert isinstance(self.course(500, 510), Unhealthy)

    def test_a_fault_stays_as_long_as_the_count_does(self):
        assert isinstance(self.course(0, 50, 50, 50), Unhealthy)

    def test_a_count_that_falls_has_begun_anew_at_zero(self):
        assert isinstance(self.course(5, 50, 0), Healthy)
        assert isinstance(self.course(5, 50, 0, 9), Healthy)
        assert isinstance(self.course(5, 50, 3, 10), Unhealthy)

    def test_the_operators_threshold_counts(self):
        assert isinstance(self.course(0, 1, limit=1), Unhealthy)
        assert isinstance(self.course(0, 99, limit=100), Healthy)

    def test_a_board_that_healed_itself_keeps_its_history_and_is_well(self):
        """Lifetime and volatile counts were mixed (gpud PR #108, wandb #9347)."""
        healed = gpu(
            readings={
                ECC: EccErrors(0, 0, 90, 5),
                REMAPPED_ROWS: RemappedRows(0, 1, 0, 0),
            }
        )
        assert actions(case(*5 * [healed])) == {}
        assert is_healthy(self.CHECK, case(healed))

    def test_corrected_errors_are_no_fault_however_many(self):
        seen = case(ecc(0, corrected=2_000_000_000), baseline={"uncorrected": 0})
        assert is_healthy(self.CHECK, seen)

    @pytest.mark.parametrize("count", [None, -1, 0x7FFFFFF0, 2**64 - 1, 10**400])
    def test_a_count_that_is_none_is_not_known(self, count):
        assert is_unknown(self.CHECK, case(ecc(count), baseline={"uncorrected": 0}))

    def test_the_message_does_not_change_as_errors_come_in(self):
        messages = {self.course(0, count).message for count in (10, 11, 4000)}
        assert messages == {"at least 10 uncorrected memory errors"}


class TestFlags:
    @pytest.mark.parametrize(
        ("check", "ill", "well", "expected"),
        [
            ("sram_threshold", sram(1), sram(0), Action.CORDON),
            ("row_remap_failure", rows(failed=1), rows(), Action.CORDON),
            ("row_remap_pending", rows(pending=1), rows(), Action.RESET),
        ],
    )
    def test_a_flag_that_is_set_is_a_fault_and_one_that_is_not_is_none(
        self, check, ill, well, expected
    ):
        """Remapping was left out of the fatal ones (NVSentinel #1826, eks-node-monitoring-agent #245, #246)."""
        assert action(check, case(ill)) is expected
        assert is_healthy(check, case(well))

    @pytest.mark.parametrize("value", [-1, 2, 2**32 - 1])
    def test_a_flag_that_is_neither_0_nor_1_says_nothing(self, value):
        assert is_unknown("sram_threshold", case(sram(value)))
        assert is_unknown("row_remap_failure", case(rows(failed=value)))
        assert is_unknown("row_remap_pending", case(rows(pending=value)))

    def test_a_pending_remapping_leaves_running_work_alone(self):
        assert actions(case(rows(pending=1, uncorrectable=1))) == {
            "row_remap_pending": Action.RESET
        }

    def test_in_mig_mode_rows_are_not_told_and_nothing_follows_from_it(self):
        masked = gpu(mig=True, readings={REMAPPED_ROWS: Unsupported(reason="mig_enabled")})
        assert is_unknown("row_remap_failure", case(masked))
        assert is_unknown("row_remap_pending", case(masked))


class TestSpares:
    def test_a_bank_without_spare_rows_warns(self):
        assert action("spare_rows", self.banks(none=1)) is Action.WARN
        assert is_healthy("spare_rows", self.banks(low=600))

    def banks(self, *, low=0, none=0):
        return case(gpu(readings={REMAP_BANKS: RemapBanks(640, 0, 0, low, none)}))


class TestRetiredPages:
    def pages(self, single, double, pending=0):
        return case(gpu(readings={RETIRED_PAGES: RetiredPages(single, double, pending)}))

    def test_nearly_as_many_pages_as_can_be_retired_warn(self):
        assert is_healthy("retired_pages", self.pages(30, 29))
        assert action("retired_pages", self.pages(30, 30)) is Action.WARN
        assert found("retired_pages", self.pages(30, 30)) == found(
            "retired_pages", self.pages(32, 31)
        )

    def test_a_pending_page_wants_a_load_of_the_driver(self):
        assert action("page_retirement_pending", self.pages(0, 1, 1)) is Action.RESET
        assert is_healthy("page_retirement_pending", self.pages(0, 1, 0))

    def test_what_is_not_told_is_not_zero(self):
        assert is_unknown("retired_pages", self.pages(None, 3))
        assert is_unknown("page_retirement_pending", self.pages(0, 0, None))
