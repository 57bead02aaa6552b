"""What the engine makes of evidence over time: raising, clearing, latching, forgetting."""

import msgspec
import pytest

from health.case import POLLS_KEPT
from health.checks.model import Action, Condition, Healthy, Subject, Unhealthy
from health.conditions import MESSAGE_BYTES
from health.decision import State, Wish
from health.engine import UnknownCheckError
from health.policy import Policy
from health.record import decode
from slicewatch.wire.evidence import EvidenceError, Holder
from testbed.evidence import event, gpu, uuid_of
from tests.unit.health.ward import BAD, DARK, GOOD, NODE, NOW, Ward, check

A = check("a")
B = check("b")
WARNS = check("warns", Action.WARN)
RESETS = check("resets", Action.RESET)


def sick(*checks, **known):
    """Return a ward in which the first check has raised a fault of GPU 0."""
    ward = Ward(*(checks or (A, B)), **known)
    ward.says[ward.checks[0].id, 0] = BAD
    ward.poll(3)
    assert ward.decision.faults
    return ward


class TestRaising:
    def test_a_fault_is_raised_by_the_third_poll_that_finds_it(self):
        ward = Ward(A)
        ward.says["a", 0] = BAD
        assert [ward.poll().wish for _ in range(3)] == [Wish.KEEP, Wish.KEEP, Wish.CORDON]
        assert ward.faults == [("a", 0)]
        assert ward.changes == [("A", True)]

    def test_polls_that_come_a_little_early_count_as_well(self):
        ward = Ward(A)
        ward.says["a", 0] = BAD
        assert ward.poll(3, seconds=58.5).wish is Wish.CORDON

    def test_one_poll_is_no_fault_however_short_the_time_that_it_has_to_last(self):
        ward = Ward(check("a", raise_seconds=1.0))
        ward.says["a", 0] = BAD
        assert not ward.poll().faults
        assert ward.poll().faults

    def test_one_good_poll_in_between_begins_it_anew(self):
        ward = Ward(A)
        for said in (BAD, BAD, GOOD, BAD, BAD, GOOD, BAD, BAD):
            ward.says["a", 0] = said
            assert not ward.poll().faults

    def test_a_poll_that_knows_nothing_neither_counts_nor_ends_it(self):
        ward = Ward(A)
        for said in (BAD, DARK, BAD, DARK):
            ward.says["a", 0] = said
            assert not ward.poll().faults
        ward.says["a", 0] = BAD
        assert ward.poll().faults

    def test_a_long_gap_is_no_long_evidence(self):
        ward = Ward(A)
        ward.says["a", 0] = BAD
        ward.poll()
        ward.quiet(8)
        assert not ward.poll().faults
        assert ward.poll().faults

    def test_what_was_seen_long_ago_does_not_count(self):
        ward = Ward(A)
        for _ in range(4):
            ward.says["a", 0] = BAD
            assert not ward.poll().faults
            ward.says["a", 0] = DARK
            assert not ward.poll(20).faults

    def test_a_finding_at_once_needs_one_poll(self):
        ward = Ward(A)
        ward.says["a", 0] = NOW
        assert ward.poll().wish is Wish.CORDON

    def test_a_fault_at_the_fiftieth_poll_is_acted_on_without_a_restart(self):
        """It took a restart there (draino #118)."""
        ward = Ward(A)
        assert ward.poll(49).wish is Wish.RELEASE
        ward.says["a", 1] = BAD
        assert ward.poll(3).wish is Wish.CORDON

    def test_a_check_asks_for_no_more_than_it_was_declared_to(self):
        ward = Ward(WARNS)
        ward.says["warns", 0] = Unhealthy(message="x", action=Action.CORDON, at_once=True)
        assert ward.poll().faults[0].action is Action.WARN
        assert ward.decision.wish is not Wish.CORDON

    def test_a_recorded_finding_is_told_and_shown_nowhere(self):
        ward = Ward(A)
        ward.says["a", 0] = Unhealthy(message="x", action=Action.RECORD, at_once=True)
        ward.poll()
        assert (ward.faults, ward.changes) == ([("a", 0)], [("A", True)])
        assert ward.condition() is False
        assert decode(ward.decision.record).faults == ()
        ward.says["a", 0] = DARK
        assert not ward.poll(6).faults

    def test_a_thousand_findings_of_one_kind_are_told_once(self):
        """They were told each time (NVSentinel #1710)."""
        ward = Ward(A)
        ward.says["a", 0] = Unhealthy(message="Xid 45", action=Action.RECORD, at_once=True)
        before = ward.poll().record
        ward.poll(100, events=[event(45, number=n) for n in range(1000)])
        assert ward.changes == [("A", True)]
        assert ward.decision.record == before

    def test_findings_grow_stronger_only_where_the_stronger_one_lasts(self):
        ward = Ward(A)
        weak = Unhealthy(message="hot", action=Action.WARN)
        for said in (weak, weak, weak, BAD, weak, BAD, BAD):
            ward.says["a", 0] = said
            ward.poll()
        assert [fault.action for fault in ward.decision.faults] == [Action.WARN]
        since = ward.decision.faults[0].since
        fault = ward.poll().faults[0]
        assert (fault.action, fault.message, fault.since) == (Action.CORDON, "it is ill", since)
        assert ward.changes == [("A", True), ("A", True)]

    def test_a_weaker_finding_keeps_the_stronger_fault(self):
        ward = sick()
        ward.says["a", 0] = Unhealthy(message="hot", action=Action.WARN)
        fault = ward.poll(30).faults[0]
        assert (fault.action, fault.message) == (Action.CORDON, "it is ill")

    def test_whoever_held_the_gpu_is_told_of(self):
        holder = Holder(namespace="ns", pod="train-0")
        ward = Ward(A)
        ward.gpus = [gpu(0, holders=(holder,))]
        ward.says["a", 0] = NOW
        assert ward.poll().changes[0].holders == (holder,)

    def test_a_check_that_fails_costs_its_own_verdict(self):
        ward = Ward(A, B)
        ward.says["a", 0] = TypeError("None")
        ward.says["a", 1] = EvidenceError("not what this probe reads")
        ward.says["b", 1] = NOW
        ward.poll()
        assert ward.faults == [("b", 1)]
        states = ward.decision.states
        assert states["a", uuid_of(0)] is states["a", uuid_of(1)] is State.UNKNOWN

    def test_a_check_of_the_node_has_no_gpu(self):
        ward = Ward(check("count", subject=Subject.NODE), gpus=0)
        ward.says["count", NODE] = BAD
        fault = ward.poll(3).faults[0]
        assert (fault.gpu, fault.index) == ("", None)
        assert fault.fingerprint.startswith("count/node/")


class TestGrace:
    @pytest.mark.parametrize("young", ["uptime_seconds", "driver_seconds"])
    def test_nothing_is_raised_while_links_train_after_a_boot(self, young):
        """63 nodes of a fleet in one day (NVSentinel #1701)."""
        ward = Ward(check("links", grace=True))
        ward.says["links", 0] = BAD
        for age in (60.0, 120.0, 180.0, 240.0):
            assert not ward.poll(**{young: age}).faults
        assert ward.decision.states["links", uuid_of(0)] is State.SUSPECT
        ward.says["links", 0] = GOOD
        ward.poll(10)
        assert not ward.changes

    def test_what_was_seen_in_the_first_minutes_does_not_count_later(self):
        ward = Ward(check("links", grace=True))
        ward.says["links", 0] = BAD
        for age in (180.0, 240.0, 300.0, 360.0):
            assert not ward.poll(uptime_seconds=age).faults
        assert ward.poll(uptime_seconds=420.0).faults

    def test_a_lost_gpu_is_found_at_once_all_the_same(self):
        ward = Ward(A)
        ward.says["a", 0] = NOW
        assert ward.poll(uptime_seconds=10.0).faults


class TestClearing:
    def test_the_node_is_released_when_the_fault_has_been_over_long_enough(self):
        ward = sick()
        ward.says["a", 0] = GOOD
        assert [ward.poll().wish for _ in range(6)] == [Wish.KEEP] * 5 + [Wish.RELEASE]
        assert ward.changes == [("A", True), ("A", False)]
        assert ward.condition() is False

    def test_what_is_just_found_to_be_over_is_no_ground_for_a_cordon(self):
        """Of one that was held until then; nor is it a ground to release."""
        ward = sick()
        ward.says["a", 0] = GOOD
        assert ward.poll().wish is Wish.KEEP
        ward.says["a", 0] = DARK
        assert ward.poll().wish is Wish.CORDON
        ward.says["a", 0] = BAD
        assert ward.poll().wish is Wish.CORDON

    def test_it_takes_exactly_so_many_good_polls(self):
        """The condition was healthy and the node stayed cordoned (NVSentinel #458)."""
        ward = Ward(check("a", clear_seconds=0.0))
        ward.poll(10)
        ward.says["a", 0] = NOW
        ward.poll()
        ward.says["a", 0] = GOOD
        assert [ward.poll().wish for _ in range(5)] == [Wish.KEEP] * 4 + [Wish.RELEASE]

    def test_nothing_known_is_no_recovery(self):
        ward = sick()
        ward.says["a", 0] = DARK
        ward.poll(100)
        assert ward.faults == [("a", 0)]
        assert ward.decision.wish is Wish.CORDON
        assert ward.decision.states["a", uuid_of(0)] is State.UNHEALTHY

    def test_one_bad_poll_begins_the_recovery_anew(self):
        ward = sick()
        for _ in range(4):
            ward.says["a", 0] = GOOD
            assert ward.poll(5).faults
            assert ward.decision.states["a", uuid_of(0)] is State.RECOVERING
            ward.says["a", 0] = BAD
            ward.poll()

    def test_a_weaker_finding_does_not_begin_the_recovery_anew(self):
        ward = sick()
        weak = Unhealthy(message="hot", action=Action.WARN)
        for said in (GOOD, GOOD, GOOD, weak, GOOD, GOOD):
            ward.says["a", 0] = said
            assert ward.poll().faults
        assert not ward.poll().faults

    def test_time_without_an_answer_is_no_recovery(self):
        ward = sick()
        ward.says["a", 0] = GOOD
        ward.poll()
        ward.quiet(10)
        assert ward.poll().faults

    def test_a_suspicion_of_another_fault_keeps_the_cordon(self):
        ward = sick(check("a", clear_seconds=0.0), check("b", raise_seconds=1800.0))
        ward.says |= {("a", 0): GOOD, ("b", 1): BAD}
        assert ward.poll(10).wish is Wish.KEEP
        ward.says["b", 1] = GOOD
        assert ward.poll(5).wish is Wish.RELEASE

    @pytest.mark.parametrize("first", ["a", "b", "both"])
    def test_two_faults_that_end_in_any_order_release_the_node(self, first):
        """It depended on which ended first (NVSentinel #363)."""
        ward = Ward(A, B)
        ward.says |= {("a", 0): BAD, ("b", 0): BAD}
        ward.poll(3)
        for name in ("a", "b"):
            if first in {name, "both"}:
                ward.says[name, 0] = GOOD
        wish = ward.poll(8).wish
        assert wish is (Wish.RELEASE if first == "both" else Wish.CORDON)
        ward.says.clear()
        assert ward.poll(6).wish is Wish.RELEASE

    def test_a_later_fault_keeps_the_cordon_when_the_first_is_over(self):
        """Only the first fault counted (NVSentinel #1439, #753)."""
        ward = sick()
        ward.says["b", 1] = BAD
        ward.poll(3)
        ward.says["a", 0] = GOOD
        assert ward.poll(10).wish is Wish.CORDON
        assert ward.faults == [("b", 1)]
        assert [kept.fault.check for kept in decode(ward.decision.record).faults] == ["b"]

    def test_one_gpu_that_recovers_does_not_clear_another(self):
        """NVSentinel #1468, #1304."""
        ward = Ward(A)
        ward.says |= {("a", 0): BAD, ("a", 1): BAD}
        ward.poll(3)
        ward.says["a", 0] = GOOD
        assert ward.poll(20).wish is Wish.CORDON
        assert ward.faults == [("a", 1)]

    def test_a_gpu_of_which_nothing_is_known_is_not_good(self):
        ward = Ward(A)
        ward.says["a", 1] = DARK
        assert ward.poll(20).wish is Wish.KEEP

    def test_a_reset_is_over_when_the_driver_says_so_in_the_same_boot(self):
        """Devices stayed unhealthy until a restart (k8s-device-plugin #111, #234, #415)."""
        ward = Ward(RESETS)
        ward.says["resets", 0] = NOW
        ward.poll()
        ward.says["resets", 0] = DARK
        ward.poll(20)
        assert ward.condition(Condition.RESET_REQUIRED) is True
        ward.says["resets", 0] = GOOD
        ward.poll(6)
        assert ward.condition(Condition.RESET_REQUIRED) is False


class TestFlapping:
    def flap(self, ward, times):
        for _ in range(times):
            ward.says["a", 0] = BAD
            ward.poll(3)
            ward.says["a", 0] = GOOD
            ward.poll(6)
        return ward

    def test_what_comes_for_the_third_time_in_a_day_stays(self):
        """It came and went (gpud #391, #1247)."""
        ward = self.flap(Ward(A), 2)
        assert not ward.decision.faults
        self.flap(ward, 1)
        assert ward.poll(500).wish is Wish.CORDON
        assert "flapping, needs a human" in ward.message()
        assert ward.decision.faults[0].raises == 3
        assert ward.decision.states["a", uuid_of(0)] is State.UNHEALTHY

    def test_it_still_stays_after_a_day(self):
        ward = self.flap(Ward(A), 3)
        assert ward.poll(2 * 24 * 60).faults

    def test_raises_on_different_days_are_none(self):
        ward = Ward(A)
        for _ in range(4):
            self.flap(ward, 1)
            assert not ward.decision.faults
            ward.poll(13 * 60)

    def test_a_restart_does_not_forget_the_count(self):
        ward = Ward(A)
        for _ in range(3):
            ward.restart()
            self.flap(ward, 1)
        assert ward.poll(50).faults
        ward.restart()
        assert ward.poll(50).wish is Wish.CORDON
        assert "flapping" in ward.message()

    def test_a_gpu_that_is_away_meanwhile_is_not_a_new_one(self):
        ward = self.flap(Ward(A), 2)
        there, ward.gpus = ward.gpus, ward.gpus[1:]
        ward.poll(5)
        ward.gpus = there
        assert self.flap(ward, 1).poll(20).faults

    def test_a_warning_may_come_and_go(self):
        ward = Ward(check("a", Action.WARN))
        for _ in range(6):
            self.flap(ward, 1)
            assert not ward.decision.faults

    def test_a_human_ends_it(self):
        ward = self.flap(Ward(A), 3)
        assert not ward.clear("true").faults
        assert ward.poll(5).wish is Wish.RELEASE
        self.flap(ward, 1)
        assert not ward.decision.faults


class TestHumans:
    def test_a_latched_fault_is_forgotten_on_demand(self):
        """A latched fault could not be cleared (gpud #1072)."""
        ward = Ward(A)
        ward.says["a", 0] = NOW
        ward.poll()
        ward.says["a", 0] = DARK
        ward.poll(10)
        assert not ward.clear("true").faults
        assert ward.changes[-1] == ("A", False)
        assert not ward.poll(10).faults
        ward.restart()
        assert not ward.poll(10).faults

    def test_what_was_forgotten_is_looked_for_in_as_many_polls_as_ever(self):
        ward = Ward(A, B)
        ward.says["a", 0] = NOW
        ward.poll()
        ward.says["a", 0] = DARK
        ward.poll(20)
        ward.says["a", 0] = GOOD
        assert ward.clear("true").wish is Wish.KEEP
        assert [ward.poll().wish for _ in range(5)] == [Wish.KEEP] * 4 + [Wish.RELEASE]

    def test_the_faults_of_one_check_may_be_forgotten(self):
        ward = Ward(A, B)
        ward.says |= {("a", 0): NOW, ("a", 1): NOW, ("b", 1): NOW}
        ward.poll()
        ward.clear(" a ")
        assert ward.faults == [("b", 1)]

    def test_what_is_still_there_is_found_again(self):
        ward = sick()
        assert not ward.clear("a").faults
        assert ward.poll(3).faults

    def test_a_name_that_no_check_has_is_refused_with_those_that_there_are(self):
        ward = sick()
        with pytest.raises(UnknownCheckError, match=r"no check is called 'xid79'.*'true'.* a, b"):
            ward.clear("xid79")
        assert ward.decision.faults

    def test_an_ignored_fault_is_no_reason_until_it_came_back(self):
        ward = sick()
        fault = ward.decision.faults[0]
        ward.decision = ward.engine.ignore([fault.fingerprint], ward.now)
        assert ward.decision.ignored == {fault.fingerprint}
        assert ward.decision.wish is not Wish.CORDON
        assert ward.poll(10).wish is not Wish.CORDON
        assert ward.condition() is True
        ward.restart()
        assert ward.poll(10).wish is not Wish.CORDON
        assert ward.decision.ignored == {fault.fingerprint}
        ward.says["a", 0] = GOOD
        assert not ward.poll(6).ignored
        ward.says["a", 0] = BAD
        assert ward.poll(3).wish is Wish.CORDON

    def test_another_event_is_a_reason_and_the_same_one_again_is_not(self):
        ward = sick(check("xid", tells_events=True, raise_seconds=0.0))
        before = ward.decision.faults[0]
        ward.engine.ignore([before.fingerprint], ward.now)
        assert ward.poll(3).wish is not Wish.CORDON
        ward.says["xid", 0] = Unhealthy(message="it is ill in another way", at_once=True)
        assert ward.poll().wish is Wish.CORDON
        (after,) = ward.decision.faults
        assert after.fingerprint != before.fingerprint
        assert after.message == "it is ill in another way"
        assert ward.changes[-2:] == [("Xid", False), ("Xid", True)]

    def test_after_a_restart_the_same_event_in_full_words_is_not_another_one(self):
        ward = sick(check("xid", tells_events=True, raise_seconds=0.0))
        ward.engine.ignore([ward.decision.faults[0].fingerprint], ward.now)
        ward.poll()
        ward.restart()
        assert ward.poll(6).wish is not Wish.CORDON

    def test_another_fault_is_a_reason_beside_an_ignored_one(self):
        ward = sick()
        ward.engine.ignore([ward.decision.faults[0].fingerprint], ward.now)
        ward.says["b", 0] = NOW
        assert ward.poll().wish is Wish.CORDON
        ward.says["b", 0] = GOOD
        assert ward.poll(6).wish is Wish.RELEASE
        assert ward.faults == [("a", 0)]

    def test_without_auto_cordon_nothing_is_wished(self):
        ward = sick(policy=Policy(auto_cordon=False))
        assert ward.decision.wish is Wish.KEEP
        assert ward.condition() is True
        ward.says["a", 0] = GOOD
        assert ward.poll(30).wish is Wish.KEEP


class TestSilence:
    def test_one_missed_answer_changes_nothing(self):
        ward = Ward(A)
        before = ward.poll(5).conditions
        assert ward.quiet().conditions == before
        assert ward.decision.wish is Wish.KEEP

    def test_after_five_minutes_nothing_is_known(self):
        ward = Ward(A)
        ward.poll(5)
        assert [ward.quiet().conditions[Condition.UNHEALTHY].present for _ in range(6)] == (
            [False] * 4 + [None] * 2
        )
        assert ward.condition(Condition.UNMONITORED) is True
        assert "timeout" in ward.message(Condition.UNMONITORED)

    def test_a_fault_outlives_silence_but_is_not_acted_on_any_more(self):
        ward = sick()
        assert ward.quiet(4).wish is Wish.CORDON
        assert ward.quiet(60).wish is Wish.KEEP
        assert ward.condition() is True
        assert ward.poll().wish is Wish.CORDON

    def test_what_an_earlier_process_has_found_is_not_acted_on_in_silence(self):
        """The node may have been repaired and booted since."""
        ward = sick()
        ward.restart()
        assert ward.quiet().wish is Wish.KEEP
        assert ward.condition() is True
        ward.says["a", 0] = DARK
        assert ward.poll().wish is Wish.CORDON

    def test_the_text_does_not_follow_every_reason(self):
        ward = Ward(A)
        ward.poll()
        said = ward.quiet(6, "timeout").conditions
        assert ward.quiet(1, "no socket").conditions == said

    def test_an_exporter_that_never_came_is_given_the_same_time(self):
        ward = Ward(A)
        assert not ward.quiet(5).conditions
        assert ward.quiet().conditions[Condition.UNMONITORED].present is True
        assert ward.decision.wish is Wish.KEEP

    def test_it_is_looked_at_again_when_silence_begins_to_mean_something(self):
        ward = Ward(A)
        assert ward.poll().next_due_seconds == 60
        ward.quiet(4)
        ward.pass_time(50)
        assert ward.engine.silent("timeout", ward.now, ward.wall).next_due_seconds == 10

    def test_an_answer_ends_it(self):
        ward = Ward(A)
        ward.poll(5)
        ward.quiet(10)
        assert ward.poll().wish is Wish.KEEP
        assert ward.condition() is False
        assert ward.condition(Condition.UNMONITORED) is False
        assert ward.poll(4).wish is Wish.RELEASE


class TestHistory:
    def test_a_check_sees_the_last_polls_of_its_gpu(self):
        ward = Ward(A)
        ward.poll(40)
        case = ward.cases["a", 1]
        assert len(case.polls) == POLLS_KEPT
        assert case.gpu.device.uuid == uuid_of(1)
        assert [poll.at for poll in case.polls] == sorted(poll.at for poll in case.polls)
        assert case.newest.at == ward.now

    def test_polls_of_another_boot_are_none_of_its(self):
        ward = Ward(A)
        ward.poll(5)
        ward.poll(2, boot_id="boot-2")
        assert len(ward.cases["a", 0].polls) == 2

    def test_events_come_to_the_gpu_that_they_are_of(self):
        ward = Ward(A, check("count", subject=Subject.NODE))
        by_place = event(79, gpu="", number=2, text="fell off")
        told = [event(45, gpu=1, number=1), event(13, gpu="GPU-unheard-of", number=3)]
        ward.poll(events=[*told, _at(by_place, "0000:01:00"), _at(by_place, "rubbish")])
        assert [e.data for e in ward.cases["a", 0].newest.events] == [79]
        assert [e.data for e in ward.cases["a", 1].newest.events] == [45]
        assert [e.data for e in ward.cases["count", NODE].newest.events] == [13, 79]
        ward.poll()
        assert not ward.cases["a", 0].newest.events

    def test_a_check_is_told_when_its_fault_was_raised(self):
        ward = sick()
        ward.poll(1, run="run-2")
        raised = ward.cases["a", 0].raised
        assert raised == ward.decision.faults[0].since
        assert (raised.boot_id, raised.driver_run) == ("boot-1", "run-1/1")
        assert ward.cases["a", 1].raised is None

    def test_a_baseline_is_kept_for_the_boot_and_no_longer(self):
        ward = Ward(A)
        ward.says["a", 0] = Healthy(baseline={"links": 18})
        ward.poll()
        ward.says["a", 0] = GOOD
        ward.poll(2)
        assert ward.cases["a", 0].baseline == {"links": 18}
        assert ward.cases["a", 1].baseline == {}
        ward.restart()
        ward.poll()
        assert ward.cases["a", 0].baseline == {"links": 18}
        ward.poll(boot_id="boot-2")
        assert ward.cases["a", 0].baseline == {}

    def test_a_baseline_of_an_earlier_boot_does_not_outlive_a_restart(self):
        ward = Ward(A)
        ward.says["a", 0] = Healthy(baseline={"links": 18})
        ward.poll()
        ward.says.clear()
        ward.restart()
        ward.poll(boot_id="boot-2")
        assert ward.cases["a", 0].baseline == {}

    def test_a_gpu_that_is_not_listed_any_more_keeps_its_fault(self):
        ward = sick()
        ward.gpus = ward.gpus[1:]
        ward.poll(100)
        assert ward.faults == [("a", 0)]
        assert ward.decision.wish is Wish.CORDON

    def test_a_fault_follows_its_gpu_to_another_index(self):
        ward = sick()
        ward.says[("a", 3)] = BAD
        ward.gpus = [gpu(3, uuid=uuid_of(0))]
        ward.poll(boot_id="boot-2")
        assert ward.faults == [("a", 3)]


class TestReplacement:
    @pytest.mark.parametrize("restarted", [False, True])
    def test_a_new_gpu_at_the_place_of_a_failed_one_makes_the_node_well(self, restarted):
        """The fault of the old one stayed for ever (NVSentinel PR #1587)."""
        ward = sick()
        ward.says.clear()
        ward.gpus[0] = gpu(0, uuid="GPU-new")
        if restarted:
            ward.restart()
        assert not ward.poll(boot_id="boot-2").faults
        assert ward.changes[-1] == ("A", False)
        assert ward.poll(4, boot_id="boot-2").wish is Wish.RELEASE

    def test_one_that_only_looks_replaced_while_nobody_answers_there_is_kept(self):
        ward = sick()
        ward.gpus = [gpu(0, uuid="GPU-new", silent="gpu_is_lost"), gpu(1)]
        assert ward.poll(10).faults

    @pytest.mark.parametrize("restarted", [False, True])
    def test_a_known_one_that_has_its_number_after_a_boot_does_not_replace_it(self, restarted):
        """A dead board is not enumerated any more, and the bus is counted without it."""
        ward = sick()
        for index in (0, 1):
            ward.says["b", index] = Healthy(baseline={"errors": 1.0})
        ward.poll()
        place = ward.gpus[0].device.pci_bus_id
        if restarted:
            ward.restart()
        moved = gpu(1)
        ward.gpus = [msgspec.structs.replace(moved, device=_at(moved.device, place))]
        ward.poll(10, boot_id="boot-2")
        assert [fault.gpu for fault in ward.decision.faults] == [uuid_of(0)]
        assert ward.decision.wish is not Wish.RELEASE

    def test_two_that_answer_from_one_place_are_both_there(self):
        ward = sick()
        ward.gpus.append(gpu(0, uuid="GPU-twin"))
        assert ward.poll(10).faults
        assert len(ward.decision.states) == 6

    def test_the_old_one_is_not_judged_while_the_exporter_still_lists_it(self):
        ward = sick()
        old = gpu(0, silent="gpu_not_found")
        ward.gpus = [old, gpu(0, uuid="GPU-new"), gpu(1)]
        ward.says.clear()
        ward.poll()
        assert not ward.decision.faults
        assert ("a", uuid_of(0)) not in ward.decision.states


def _at(told, bus_id):
    return msgspec.structs.replace(told, pci_bus_id=bus_id)


def test_messages_fit_a_condition_whatever_fails():
    """38,000 characters, or none (NVSentinel #470, #1009, #546)."""
    checks = [check(f"check_{n}") for n in range(20)]
    ward = Ward(*checks, gpus=8)
    long = Unhealthy(message="uncorrected memory errors, " * 3, at_once=True)
    ward.says = {(one.id, index): long for one in checks for index in range(8)}
    ward.poll()
    message = ward.message()
    assert len(message.encode()) <= MESSAGE_BYTES
    assert message.startswith("0 of 8 GPUs healthy: GPU 0: uncorrected memory errors")
    assert message.endswith(" more")
