"""GPUs that are gone, drivers that are, calls that hang, and what only looks like it."""

import pytest

from health.case import Thresholds
from health.checks.model import Action, Condition
from slicewatch.catalog.power import POWER
from slicewatch.catalog.readings.power import Power
from slicewatch.catalog.readings.state import Inforom, InforomCheck
from slicewatch.catalog.state import INFOROM, INFOROM_CHECK
from slicewatch.wire.evidence import Failed, Lost, Unidentified
from testbed.evidence import case, evidence, gpu, value
from tests.unit.health.checks.verdict import (
    BY_ID,
    action,
    actions,
    found,
    is_healthy,
    is_unknown,
    judged,
)

READ = {POWER: Power(120_000)}
WELL = gpu(readings=READ)


def node(*said, **more):
    return case(*said, index=None, **more)


class TestLost:
    def test_a_lost_gpu_is_a_fault_at_once(self):
        seen = case(gpu(silent="gpu_is_lost"))
        assert found("gpu_lost", seen) == (
            Action.CORDON, "the GPU is lost: it does not answer any more",
        )  # fmt: skip
        assert judged("gpu_lost", seen).at_once
        assert is_healthy("gpu_lost", case(WELL))

    def test_a_gpu_that_needs_a_reset_is_a_fault_at_once(self):
        assert judged("reset_required", case(gpu(silent="reset_required"))).at_once
        assert is_unknown("gpu_lost", case(gpu(silent="reset_required")))
        assert is_healthy("reset_required", case(WELL))

    @pytest.mark.parametrize(
        ("word", "check"),
        [("gpu_is_lost", "gpu_lost"), ("reset_required", "reset_required")],
    )
    def test_one_read_that_says_so_is_enough(self, word, check):
        one = gpu(readings=READ | {INFOROM: Lost(reason=word, age_seconds=1)})
        assert action(check, case(one)) is Action.CORDON
        old = gpu(readings=READ | {INFOROM: Lost(reason=word, age_seconds=4000)})
        assert is_healthy(check, case(old))

    @pytest.mark.parametrize("check", ["gpu_lost", "reset_required", "gpu_missing"])
    def test_a_gpu_of_which_nothing_was_read_yet_is_not_back(self, check):
        assert is_unknown(check, case(gpu()))
        old = gpu(readings={POWER: value(Power(1), age_seconds=300)})
        assert is_unknown(check, case(old))

    def test_one_that_nvml_lists_no_more_is_a_fault_if_it_lasts(self):
        assert action("gpu_missing", case(gpu(silent="gpu_not_found"))) is Action.CORDON
        assert BY_ID["gpu_missing"].raise_seconds == 300
        assert is_healthy("gpu_missing", case(WELL))

    def test_a_lost_gpu_says_nothing_of_others(self):
        """Clearing one entity cleared another (NVSentinel #1468, #1304)."""
        said = evidence([gpu(0, silent="gpu_is_lost"), gpu(1, readings=READ)])
        assert action("gpu_lost", case(said, index=0)) is Action.CORDON
        assert is_healthy("gpu_lost", case(said, index=1))


class TestCount:
    def gpus(self, count, **more):
        return node(evidence([gpu(n, readings=READ) for n in range(count)]), **more)

    def test_fewer_than_expected_are_a_fault(self):
        """No GPU at all was called healthy (eks-node-monitoring-agent #241)."""
        expected = Thresholds(expected_gpus=8)
        assert is_healthy("gpu_count", self.gpus(8, thresholds=expected))
        assert found("gpu_count", self.gpus(7, thresholds=expected)) == (
            Action.CORDON, "7 of 8 GPUs are there",
        )  # fmt: skip
        assert action("gpu_count", self.gpus(0, thresholds=expected)) is Action.CORDON

    def test_fewer_than_there_were_in_this_boot_are_too(self):
        first = judged("gpu_count", self.gpus(8))
        assert first.baseline == {"gpus": 8}
        later = self.gpus(7, baseline=first.baseline)
        assert action("gpu_count", later) is Action.CORDON
        assert judged("gpu_count", later).baseline == {"gpus": 8}

    def test_a_gpu_that_is_known_from_before_and_not_listed_does_not_count(self):
        gone = evidence([gpu(0, readings=READ), gpu(1, silent="gpu_not_found")])
        assert action("gpu_count", node(gone, baseline={"gpus": 2})) is Action.CORDON

    def test_the_operators_number_is_the_one(self):
        fewer = Thresholds(expected_gpus=4)
        assert is_healthy("gpu_count", self.gpus(4, thresholds=fewer, baseline={"gpus": 8}))

    def test_a_node_of_which_nobody_expects_gpus_is_unknown_without_them(self):
        assert is_unknown("gpu_count", self.gpus(0))

    def test_while_the_driver_is_away_nothing_is_counted(self):
        away = evidence([], down="no_driver")
        assert is_unknown("gpu_count", node(away, baseline={"gpus": 8}))


class TestUnidentified:
    def seen(self, reason):
        slots = [Unidentified(index=3, reason=reason)]
        return node(evidence([gpu(n, readings=READ) for n in range(3)], unidentified=slots))

    @pytest.mark.parametrize("reason", ["gpu_is_lost", "reset_required"])
    def test_an_index_where_a_gpu_is_lost_is_a_fault_at_once(self, reason):
        """It kept the whole check from running (k8s-device-plugin PR #1641)."""
        assert judged("gpu_unidentified", self.seen(reason)).at_once
        assert action("gpu_unidentified", self.seen(reason)) is Action.CORDON

    @pytest.mark.parametrize("reason", ["hang", "HANG", "INSUFFICIENT_POWER", "gpu_not_found"])
    def test_one_that_hangs_or_has_no_power_is_one_if_it_lasts(self, reason):
        assert action("gpu_unidentified", self.seen(reason)) is Action.CORDON
        assert not judged("gpu_unidentified", self.seen(reason)).at_once

    @pytest.mark.parametrize("reason", ["unknown", "permission", "corrupted_inforom", "failed"])
    def test_any_other_reason_only_warns(self, reason):
        assert action("gpu_unidentified", self.seen(reason)) is Action.WARN

    def test_the_others_are_judged_all_the_same(self):
        said = self.seen("gpu_is_lost").newest.evidence
        assert [is_healthy("gpu_lost", case(said, index=n)) for n in range(3)] == [True] * 3
        assert is_healthy("gpu_unidentified", node(evidence([WELL])))


class TestDriver:
    @pytest.mark.parametrize(
        "down", ["no_driver", "no_library", "permission", "starting", "unknown", "new"]
    )
    def test_a_driver_that_is_not_ready_says_nothing_against_a_gpu(self, down):
        """Nodes were replaced for it (containers-roadmap #2555, NVSentinel #1423)."""
        seen = node(evidence([gpu(silent="no_driver")], down=down))
        assert actions(seen) == {"driver_not_ready": Action.WARN}
        check = BY_ID["driver_not_ready"]
        assert check.condition is Condition.UNMONITORED
        assert check.grace
        assert check.raise_seconds > 240
        assert actions(case(evidence([gpu(silent="no_driver")], down=down))) == {}

    def test_one_that_was_let_go_of_is_not_known(self):
        released = node(evidence([WELL], down="released"))
        assert is_unknown("driver_not_ready", released)
        assert is_unknown("driver_version_mismatch", released)

    def test_library_and_driver_of_two_versions_are_told_apart(self):
        seen = node(evidence([], down="version_mismatch"))
        assert actions(seen) == {"driver_version_mismatch": Action.WARN}
        assert BY_ID["driver_version_mismatch"].condition is Condition.UNMONITORED

    def test_a_driver_that_works_is_healthy(self):
        for check in ("driver_not_ready", "driver_version_mismatch", "exporter_stalled"):
            assert is_healthy(check, node(evidence([WELL])))

    @pytest.mark.parametrize("age_seconds", [None, 61.0])
    def test_an_exporter_that_has_stopped_reading_is_seen(self, age_seconds):
        seen = node(evidence([WELL], tick_age_seconds=age_seconds))
        assert actions(seen) == {"exporter_stalled": Action.WARN}
        assert BY_ID["exporter_stalled"].condition is Condition.UNMONITORED


class TestUnreadable:
    def test_errors_without_a_name_on_every_read_are_no_reason_to_cordon(self):
        """Containers lost their devices with a reload of systemd (k8s-device-plugin #426)."""
        failed = {probe: Failed(error="UNKNOWN", age_seconds=1) for probe in (POWER, INFOROM)}
        seen = case(*9 * [gpu(readings=failed)])
        assert actions(seen) == {"gpu_unreadable": Action.WARN}
        assert BY_ID["gpu_unreadable"].condition is Condition.UNMONITORED

    @pytest.mark.parametrize("word", ["not_read", "failed", "unknown", "permission"])
    def test_a_gpu_that_is_silent_without_a_fault_is_not_monitored(self, word):
        assert actions(case(gpu(silent=word))) == {"gpu_unreadable": Action.WARN}

    def test_one_read_that_works_is_enough(self):
        some = READ | {INFOROM: Failed(error="UNKNOWN", age_seconds=1)}
        assert is_healthy("gpu_unreadable", case(gpu(readings=some)))

    @pytest.mark.parametrize("word", ["gpu_is_lost", "reset_required", "no_driver", "hang"])
    def test_what_other_checks_say_is_not_said_twice(self, word):
        assert is_unknown("gpu_unreadable", case(gpu(silent=word)))


class TestCalls:
    def calling(self, seconds, **more):
        return gpu(readings=READ, call="ecc", call_seconds=seconds, **more)

    def test_a_call_that_has_not_returned_for_minutes_hangs(self):
        """Nobody noticed (NVSentinel #1576, gpud PR #117, gpu-monitoring-tools #46)."""
        hung = case(self.calling(301, silent="not_read"))
        assert action("driver_call_hangs", hung) is Action.CORDON
        assert BY_ID["driver_call_hangs"].raise_seconds >= 120
        patient = Thresholds(hang_seconds=900)
        assert is_unknown("driver_call_hangs", case(self.calling(800), thresholds=patient))

    def test_slow_is_not_hung(self):
        """Calls of 45 s under a storm of errors return (DCGM #313, NVSentinel #1748)."""
        slow = case(*10 * [self.calling(50)])
        assert actions(slow) == {"driver_slow": Action.WARN}
        assert is_unknown("driver_call_hangs", slow)

    @pytest.mark.parametrize("check", ["driver_call_hangs", "driver_slow"])
    def test_a_call_that_has_begun_is_neither_good_nor_bad(self, check):
        """A new life of the exporter sees a hung call begin."""
        assert is_unknown(check, case(self.calling(2)))
        assert is_healthy(check, case(WELL))
        assert is_unknown(check, case(gpu()))

    def test_a_gpu_that_hangs_before_it_says_who_it_is_hangs_too(self):
        hung = gpu(silent="hang", silent_seconds=400)
        assert action("driver_call_hangs", case(hung)) is Action.CORDON
        assert is_unknown("driver_call_hangs", case(gpu(silent="hang", silent_seconds=10)))


class TestBoard:
    VERSIONS = Inforom("G520.0200.00.05", None, None, None)

    def test_a_corrupted_inforom_warns(self):
        wrong = gpu(readings={INFOROM: self.VERSIONS, INFOROM_CHECK: InforomCheck(valid=False)})
        assert action("inforom", case(wrong)) is Action.WARN
        refused = gpu(readings={INFOROM: Failed(error="CORRUPTED_INFOROM", age_seconds=3000)})
        assert action("inforom", case(refused)) is Action.WARN
        assert action("inforom", case(gpu(silent="corrupted_inforom"))) is Action.WARN

    def test_one_that_is_read_is_well(self):
        assert is_healthy("inforom", case(gpu(readings={INFOROM: self.VERSIONS})))
        checked = gpu(readings={INFOROM_CHECK: InforomCheck(valid=True)})
        assert is_healthy("inforom", case(checked))

    def test_a_board_without_its_power_connectors_is_out_of_service(self):
        unplugged = gpu(readings={POWER: Failed(error="INSUFFICIENT_POWER", age_seconds=1)})
        assert action("power_connectors", case(unplugged)) is Action.CORDON
        assert action("power_connectors", case(gpu(silent="insufficient_power"))) is Action.CORDON
        assert is_healthy("power_connectors", case(WELL))
        assert is_unknown("power_connectors", case(gpu(silent="gpu_is_lost")))
