"""Xids: what each leads to, when it is over, and what is no reason for anything."""

import pytest

from health.checks.index import CHECKS
from health.checks.model import Action
from slicewatch.catalog.errors import RECOVERY
from slicewatch.catalog.nvlink import STATES
from slicewatch.catalog.power import ENERGY
from slicewatch.catalog.readings.errors import RecoveryAction
from slicewatch.catalog.readings.nvlink import Nvlinks
from slicewatch.catalog.readings.power import Energy
from slicewatch.hardware.xids import XIDS, Tier
from slicewatch.wire.evidence import Happening, Unsupported
from slicewatch.wire.layout import Device
from testbed.evidence import DAY_SECONDS, case, event, evidence, gpu, since, value
from tests.unit.health.checks.verdict import (
    action,
    actions,
    found,
    is_healthy,
    is_unknown,
    judged,
)

NONE_WANTED = {RECOVERY: RecoveryAction(0)}
OLD_DRIVER = {RECOVERY: Unsupported(reason="driver")}
UP = Nvlinks(states=(1,) * 18)
DOWN = Nvlinks(states=(0,) * 18)


def told(*events, readings=NONE_WANTED, mig=False, instances=(), **said):
    """Return evidence of one GPU of which these events are told."""
    return evidence([gpu(readings=readings, mig=mig, instances=instances)], events=events, **said)


QUIET = told()


class TestTiers:
    @pytest.mark.parametrize("fact", XIDS.values(), ids=lambda fact: str(fact.number))
    def test_each_listed_xid_alone_leads_to_what_its_tier_says_and_no_more(self, fact):
        expected = {
            Tier.RECORD: {"xid_recorded": Action.RECORD},
            Tier.REPEAT: {"xid_recorded": Action.RECORD},
            Tier.TOLD: {"xid_recorded": Action.RECORD},
            Tier.WARN: {"xid_warning": Action.WARN},
            Tier.RESET: {"xid_reset": Action.RESET},
            Tier.LINK: {"xid_link": Action.WARN},
            Tier.CORDON: {"xid_fatal": Action.CORDON},
        }
        assert actions(case(QUIET, told(event(fact.number)))) == expected[fact.tier]

    @pytest.mark.parametrize("number", [42, 177, 999, 4_000_000_000])
    def test_an_unknown_number_warns_and_never_cordons(self, number):
        """NVSentinel cordons for what its list lacks; NVIDIA adds numbers with each driver."""
        assert actions(case(told(event(number)))) == {"xid_warning": Action.WARN}

    @pytest.mark.parametrize("number", [13, 31, 43, 45, 68, 69, 94, 109])
    def test_what_programs_cause_never_cordons(self, number):
        """As device plugins do for good (k8s-device-plugin #189, #945, #1974)."""
        asked = actions(case(told(event(number), readings=OLD_DRIVER)))
        assert max(asked.values()) <= (Action.RESET if number == 94 else Action.WARN)

    def test_a_crashing_program_is_an_event_only(self):
        """A node stayed cordoned for one (NVSentinel #911)."""
        assert actions(case(told(event(31)))) == {"xid_recorded": Action.RECORD}

    def test_what_is_fatal_needs_not_be_seen_again(self):
        (fatal,) = [check for check in CHECKS if check.id == "xid_fatal"]
        assert fatal.judge(case(told(event(79)))).at_once
        assert fatal.raise_seconds == 0


class TestFolding:
    def test_what_nvml_and_the_log_tell_of_one_xid_counts_once(self):
        both = told(event(31), event(31, number=2, age_seconds=1.4, text="Ch 00000008"))
        assert action("xid_repeated", case(both)) is None
        assert found("xid_recorded", case(both)) == (
            Action.RECORD, "Xid 31: access to an illegal address",
        )  # fmt: skip

    def test_a_storm_has_the_message_of_one(self):
        """Of 800,000 lines 29 were different (NVSentinel #1120)."""
        storm = [event(95, number=n, age_seconds=60 - n * 0.005) for n in range(10_000)]
        assert found("xid_fatal", case(told(*storm))) == (
            Action.CORDON, "Xid 95: uncontained memory error",
        )  # fmt: skip

    def test_a_clean_up_xid_is_never_a_repetition(self):
        """It was 168,924 of 168,934 Xids of a fleet, and cordoned three nodes (NVSentinel #1710)."""
        storm = [event(45, number=n, age_seconds=60 - n * 0.06) for n in range(1000)]
        assert actions(case(*5 * [told(*storm)])) == {"xid_recorded": Action.RECORD}

    def test_the_detail_of_an_uncorrectable_error_is_not_counted_beside_it(self):
        said = told(event(48), event(171, number=2))
        assert found("xid_fatal", case(said)) == (
            Action.CORDON, "Xid 48: uncorrectable memory error",
        )  # fmt: skip

    def test_power_smoothing_that_is_on_again_takes_its_loss_back(self):
        """NVSentinel #1252, #1270."""
        lost, back = event(163, age_seconds=9), event(162, number=2, age_seconds=3)
        assert is_healthy("xid_warning", case(told(lost, back)))
        again = event(163, number=3, age_seconds=1)
        assert action("xid_warning", case(told(lost, back, again))) is Action.WARN

    def test_many_numbers_make_a_short_message(self):
        said = told(*(event(number) for number in (32, 38, 44, 61, 69, 92, 109)))
        assert found("xid_warning", case(said))[1].endswith("; +3 more")

    def test_the_mig_device_is_named(self):
        instance = Device(uuid="MIG-1", gpu=0, model="H100", gpu_instance=5, profile="2g.20gb")
        said = told(
            event(94, gpu_instance=5, compute_instance=0),
            event(94, number=2, text="Contained", gpu_instance=7),
            mig=True,
            instances=(instance,),
        )
        message = "Xid 94: contained memory error, which ended one program"
        places = "(GPU instance 5 2g.20gb/0, GPU instance 7)"
        assert found("xid_reset", case(said)) == (Action.RESET, f"{message} {places}")


class TestRepetition:
    def seen(self, *ages):
        return told(*(event(31, number=n, age_seconds=age) for n, age in enumerate(ages)))

    def test_three_times_on_one_gpu_may_be_the_gpu(self):
        seen = [self.seen(1), QUIET, self.seen(1), QUIET, self.seen(1), QUIET]
        assert action("xid_repeated", case(*seen[:3])) is None
        assert action("xid_repeated", case(*seen[:5])) is Action.WARN
        # As long as the polls are kept.
        assert action("xid_repeated", case(*seen)) is Action.WARN

    def test_the_end_of_one_program_is_one_time_however_many_lines_it_has(self):
        assert action("xid_repeated", case(self.seen(25, 17, 9, 1))) is None

    def test_times_are_told_apart_by_when_they_happened_not_by_when_they_were_told(self):
        assert action("xid_repeated", case(self.seen(100, 50, 1))) is Action.WARN


class TestEnd:
    """A latched fault ends with evidence only: the driver's word, or a reset."""

    @pytest.mark.parametrize(
        ("check", "number"), [("xid_fatal", 79), ("xid_reset", 94), ("xid_link", 74)]
    )
    def test_it_ends_when_the_driver_wants_nothing_any_more(self, check, number):
        """It never ended (k8s-device-plugin #1014, #403, HAMi #2200)."""
        seen = [told(event(number)), QUIET]
        assert is_healthy(check, case(*seen, raised=since()))

    @pytest.mark.parametrize(
        ("check", "number"), [("xid_fatal", 79), ("xid_reset", 94), ("xid_link", 74)]
    )
    def test_it_does_not_end_while_the_driver_wants_something(self, check, number):
        wanting = told(readings={RECOVERY: RecoveryAction(1)})
        assert is_unknown(check, case(told(event(number)), wanting, raised=since()))

    @pytest.mark.parametrize("check", ["xid_fatal", "xid_reset", "xid_link"])
    def test_silence_alone_is_no_recovery(self, check):
        quiet = told(readings=OLD_DRIVER)
        assert is_unknown(check, case(*9 * [quiet], raised=since()))

    @pytest.mark.parametrize("check", ["xid_fatal", "xid_reset", "xid_link"])
    def test_it_ends_with_a_new_boot(self, check):
        quiet = told(readings=OLD_DRIVER, boot_id="boot-2")
        assert is_healthy(check, case(quiet, raised=since(boot_id="boot-1")))

    @pytest.mark.parametrize("boot_ids", [("", "boot-1"), ("boot-1", "")])
    def test_a_boot_that_is_not_told_is_no_new_one(self, boot_ids):
        quiet = told(readings=OLD_DRIVER, boot_id=boot_ids[1])
        assert is_unknown("xid_fatal", case(quiet, raised=since(boot_id=boot_ids[0])))

    @pytest.mark.parametrize("said", [{"starts": 7}, {"run": "run-2"}], ids=str)
    def test_a_start_of_nvml_or_of_the_exporter_is_no_reset(self, said):
        """NVML is started anew also when another GPU is lost."""
        quiet = told(readings=OLD_DRIVER, **said)
        assert is_unknown("xid_fatal", case(told(readings=OLD_DRIVER), quiet, raised=since()))

    def used(self, millijoules, *events):
        return told(*events, readings=OLD_DRIVER | {ENERGY: Energy(millijoules)})

    def test_it_ends_when_the_energy_counter_began_anew(self):
        seen = [self.used(5_000_000, event(48)), self.used(5_100_000), self.used(900)]
        assert is_unknown("xid_fatal", case(*seen[:2], raised=since()))
        assert is_healthy("xid_fatal", case(*seen, raised=since()))

    def test_a_reset_before_the_xid_does_not_end_it(self):
        seen = [self.used(5_000_000), self.used(900, event(48)), self.used(1000)]
        assert is_unknown("xid_fatal", case(*seen, raised=since()))

    def test_what_wants_no_action_is_over_when_it_is_not_told_again(self):
        seen = [told(event(43), event(92, number=2)), QUIET]
        assert is_healthy("xid_recorded", case(*seen, raised=since()))
        assert is_healthy("xid_warning", case(*seen, raised=since()))

    @pytest.mark.parametrize("said", [{"listening": "no_events"}, {"missed": 3}], ids=str)
    @pytest.mark.parametrize("check", [c.id for c in CHECKS if c.id.startswith("xid_")])
    def test_where_nobody_listens_or_events_were_lost_no_news_is_no_good_news(self, check, said):
        index = None if check == "xid_unattributed" else 0
        assert is_unknown(check, case(told(**said), index=index))

    @pytest.mark.parametrize("check", [c.id for c in CHECKS if c.id.startswith("xid_")][:-1])
    @pytest.mark.parametrize("said", [{}, {"down": "no_driver"}], ids=["unread", "no driver"])
    def test_no_news_of_a_gpu_that_was_not_read_is_no_good_news(self, check, said):
        readings = NONE_WANTED if said else {}
        assert is_unknown(check, case(told(readings=readings, **said)))

    def test_the_kernels_log_alone_is_enough_to_listen(self):
        assert is_healthy("xid_fatal", case(told(listening="no_events", kernel_log="")))

    def test_records_that_the_kernels_log_has_lost_count_until_the_next_poll(self):
        log = {"listening": "no_events", "kernel_log": ""}
        lost = told(kernel_log_lost=7, **log)
        assert is_unknown("xid_fatal", case(lost))
        assert is_unknown("xid_fatal", case(told(**log), lost))
        assert is_healthy("xid_fatal", case(lost, lost))
        assert is_unknown("xid_fatal", case(told(kernel_log_lost=7, run="run-0", **log), lost))
        assert is_healthy("xid_fatal", case(told(kernel_log="", kernel_log_lost=7)))


class TestTime:
    def test_an_xid_from_before_the_monitor_is_found(self):
        """It was lost there (NVSentinel #1532, #1417)."""
        late = event(79, age_seconds=1800, text="pid=1, GPU has fallen off the bus.")
        wanting = told(late, readings={RECOVERY: RecoveryAction(2)})
        assert action("xid_fatal", case(wanting)) is Action.CORDON
        assert action("xid_fatal", case(told(late, readings=OLD_DRIVER))) is Action.CORDON

    def test_an_xid_of_an_earlier_boot_is_not(self):
        """An old line kept a node drained (azurehpc #648)."""
        early = event(79, age_seconds=DAY_SECONDS + 120, text="GPU has fallen off the bus.")
        assert actions(case(told(early, readings=OLD_DRIVER))) == {}

    def test_what_was_dealt_with_before_it_is_told_raises_nothing(self):
        """A log that is read anew by each life of the exporter tells it anew."""
        late = event(48, age_seconds=1800, text="uncorrectable")
        assert actions(case(told(late))) == {}

    def test_what_may_have_been_dealt_with_long_ago_only_warns(self):
        late = event(48, age_seconds=7200, text="uncorrectable")
        assert action("xid_fatal", case(told(late, readings=OLD_DRIVER))) is Action.WARN

    def test_what_just_happened_counts_though_the_driver_wants_nothing_yet(self):
        before = {RECOVERY: value(RecoveryAction(0), age_seconds=4)}
        assert action("xid_fatal", case(told(event(48), readings=before))) is Action.CORDON


@pytest.mark.parametrize(
    ("check", "number"), [("xid_fatal", 79), ("xid_reset", 94), ("xid_link", 74)]
)
class TestToldAnew:
    """By a monitor or an exporter that began anew, with a driver that does not say what it wants."""

    READ = OLD_DRIVER | {ENERGY: Energy(5_000_000)}

    def remembered(self, check, number):
        first = told(event(number, age_seconds=1), readings=self.READ)
        return judged(check, case(first)).baseline

    def anew(self, number, *, age_seconds, **said):
        late = event(number, age_seconds=age_seconds, text="told by the kernel")
        said = {"uptime_seconds": DAY_SECONDS + 600, "run": "run-2"} | said
        return told(late, readings=self.READ, **said)

    def test_what_was_dealt_with_raises_nothing(self, check, number):
        """An old line of the log kept a node drained (azurehpc #648)."""
        known = self.remembered(check, number)
        again = self.anew(number, age_seconds=601)
        assert is_healthy(check, case(again, baseline=known))
        assert is_healthy(check, case(told(readings=self.READ), again, baseline=known))

    def test_what_happened_while_nobody_asked_counts(self, check, number):
        known = self.remembered(check, number)
        assert found(check, case(self.anew(number, age_seconds=400), baseline=known))

    def test_within_one_run_of_the_exporter_each_is_new(self, check, number):
        known = self.remembered(check, number)
        soon = [told(readings=self.READ), self.anew(number, age_seconds=595, run="run-1")]
        assert found(check, case(*soon, baseline=known))

    def test_where_the_boot_is_not_told_nothing_is_taken_for_known(self, check, number):
        known = self.remembered(check, number)
        assert found(check, case(self.anew(number, age_seconds=601, boot_id=""), baseline=known))


class TestLinks:
    NONFATAL = "RLW_REMAP Nonfatal XC1 i0 Link 03 (0x00000004 0x80000000 0x0 0x0 0x0 0x0 0x0)"
    FATAL = "NETIR_LINK_EVT Fatal XC0 i0 Link 07 (0x00000004 0x80000000 0x0 0x0 0x0 0x0 0x0)"

    def test_a_nonfatal_error_is_an_event_only(self):
        """It was called fatal there (NVSentinel #1357)."""
        said = told(event(145), event(145, number=2, text=self.NONFATAL), readings=OLD_DRIVER)
        assert actions(case(said)) == {"xid_recorded": Action.RECORD}
        assert "link 3" in found("xid_recorded", case(said))[1]

    def test_a_fatal_one_cordons_where_the_driver_does_not_say_better(self):
        said = event(149, text=self.FATAL)
        assert found("xid_link", case(told(said, readings=OLD_DRIVER))) == (
            Action.CORDON, "Xid 149: NVLink error in NETIR (link 7)",
        )  # fmt: skip
        assert action("xid_link", case(told(said))) is Action.WARN
        wanting = {RECOVERY: RecoveryAction(1)}
        assert action("xid_link", case(told(said, readings=wanting))) is Action.CORDON

    def test_the_fatal_one_of_two_counts(self):
        said = [event(149, number=n, text=t) for n, t in enumerate((self.NONFATAL, self.FATAL))]
        assert action("xid_link", case(told(*said, readings=OLD_DRIVER))) is Action.CORDON

    @pytest.mark.parametrize("number", [147, 148])
    def test_units_of_which_no_error_takes_a_reset_warn(self, number):
        said = told(event(number, text="Fatal"), readings=OLD_DRIVER)
        assert action("xid_link", case(said)) is Action.WARN

    def test_without_a_text_the_links_and_the_driver_decide(self):
        up, down = NONE_WANTED | {STATES: UP}, NONE_WANTED | {STATES: DOWN}
        before = told(readings=up)
        assert action("xid_link", case(before, told(event(145), readings=up))) is Action.RECORD
        assert action("xid_link", case(before, told(event(145), readings=down))) is Action.WARN
        old = OLD_DRIVER | {STATES: DOWN}
        assert action("xid_link", case(before, told(event(145), readings=old))) is Action.CORDON

    def test_the_kernels_text_is_found_among_the_words_of_the_process(self):
        said = told(event(145, text="pid=12, name=fatality, RLW Nonfatal XC1"))
        assert actions(case(said)) == {"xid_recorded": Action.RECORD}


class TestRecovery:
    def text(self, number, text, **more):
        return told(event(154, number=number, text=text, **more), readings=OLD_DRIVER)

    def test_what_the_driver_wants_alone_is_enough(self):
        """The GPU was unusable and called healthy (DCGM #263)."""
        seen = case(told(readings={RECOVERY: RecoveryAction(1)}))
        assert found("recovery_action", seen) == (
            Action.CORDON, "the driver wants a reset of the GPU",
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("number", "expected"),
        [
            (1, Action.CORDON), (2, Action.CORDON), (3, Action.RESET), (4, Action.RESET),
            (5, Action.WARN), (6, Action.CORDON), (7, Action.CORDON), (8, Action.WARN),
            (200, Action.WARN),
        ],
    )  # fmt: skip
    def test_each_action_leads_to_what_it_needs(self, number, expected):
        seen = case(told(readings={RECOVERY: RecoveryAction(number)}))
        assert action("recovery_action", seen) is expected

    def test_a_number_that_is_none_is_not_known(self):
        assert is_unknown("recovery_action", case(told(readings={RECOVERY: RecoveryAction(-1)})))

    def test_wanting_nothing_is_healthy(self):
        assert is_healthy("recovery_action", case(QUIET))

    def test_the_text_of_the_log_says_it_where_nvml_cannot(self):
        changed = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
        over = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
        first, last = self.text(1, changed), self.text(2, over)
        assert action("recovery_action", case(first)) is Action.CORDON
        assert action("recovery_action", case(first, told(readings=OLD_DRIVER))) is Action.CORDON
        assert is_healthy("recovery_action", case(first, last))
        # It is what ends an Xid, too.
        fatal = told(event(48), readings=OLD_DRIVER)
        assert is_healthy("xid_fatal", case(fatal, last, raised=since()))

    def test_the_event_of_nvml_is_newer_than_the_reading(self):
        old = {RECOVERY: value(RecoveryAction(0), age_seconds=4)}
        wanting = event(2, kind=Happening.RECOVERY_ACTION, age_seconds=1)
        seen = case(told(wanting, readings=old))
        assert found("recovery_action", seen) == (
            Action.CORDON, "the driver wants a reboot of the node",
        )  # fmt: skip
        assert is_healthy("recovery_action", case(told(wanting, readings=old), QUIET))

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "GPU recovery action changed from",
            "GPU recovery action changed from 0x0 (None) to 0x",
            "GPU recovery action changed from 0x0 (None) to 0xffff (?)",
            "GPU recovery action changed to",
        ],
    )
    def test_a_malformed_text_says_nothing(self, text):
        """It was a crash there (NVSentinel #1440)."""
        assert is_unknown("recovery_action", case(self.text(1, text)))


class TestUnlisted:
    def test_the_xid_of_a_gpu_that_nvml_does_not_list_is_a_matter_of_the_node(self):
        said = evidence([gpu()], events=[event(79, gpu="", text="GPU has fallen off the bus.")])
        assert actions(case(said)) == {}
        assert action("xid_unattributed", case(said, index=None)) is Action.WARN
        harmless = evidence([gpu()], events=[event(45, gpu="")])
        assert action("xid_unattributed", case(harmless, index=None)) is Action.RECORD
        assert is_healthy("xid_unattributed", case(evidence([gpu()]), index=None))
