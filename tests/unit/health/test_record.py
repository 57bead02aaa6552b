"""The record on the node: what it keeps, within what size, and what a restart makes of it."""

import pytest

from health.case import Since
from health.checks.model import Action, CheckId, Condition
from health.decision import Fault, Wish
from health.record import (
    RECORD_BYTES,
    Kept,
    NewerRecordError,
    Record,
    RecordError,
    decode,
    encode,
)
from testbed.evidence import gpu, uuid_of
from tests.unit.health.ward import BAD, DARK, EPOCH, GOOD, NOW, Ward, check

A = check("a")
B = check("b")
LOST = check("lost")


def fault(check_id="a", index=0, action=Action.CORDON, message="it is ill", **known):
    boot = known.pop("boot_id", "boot-1")
    return Fault(
        check=CheckId(check_id),
        reason=known.pop("reason", ""),
        message=message,
        action=action,
        since=Since(boot_id=boot, driver_run="run-1/1", at_seconds=EPOCH),
        gpu=uuid_of(index),
        index=index,
        pci_bus_id=f"00000000:{index:02x}:00.0",
        **known,
    )


class TestText:
    def test_it_is_read_back_as_it_was(self):
        node = Fault(
            check=CheckId("count"),
            reason="",
            message="",
            action=Action.WARN,
            since=Since(boot_id="boot-0", driver_run="x/2", at_seconds=5.0),
        )
        record = Record(
            boot_id="boot-1",
            faults=(
                Kept(fault=fault(raises=2), ignored=True, raised=(EPOCH - 60, EPOCH)),
                Kept(fault=fault("b", 1, Action.RESET, reason="Other")),
                Kept(fault=node),
            ),
            past={(CheckId("b"), uuid_of(0)): (EPOCH,)},
            baselines={
                (CheckId("links"), uuid_of(0)): {"up": 18.0},
                (CheckId("links"), uuid_of(1)): {"up": 12.0, "rate": 0.5},
                (CheckId("seen"), ""): {"gpus": 8.0},
            },
        )
        assert decode(encode(record)) == record

    def test_the_same_is_written_the_same(self):
        record = Record(boot_id="b", faults=(Kept(fault=fault()),))
        assert encode(record) == encode(decode(encode(record)))

    def test_eight_gpus_with_twenty_faults_each_leave_the_strongest_and_say_so(self):
        faults = [
            Kept(fault=fault(f"check_{n}", index, Action.CORDON if n < 2 else Action.WARN))
            for n in range(20)
            for index in range(8)
        ]
        text = encode(Record(boot_id="b" * 36, faults=tuple(faults)))
        record = decode(text)
        assert len(text.encode()) <= RECORD_BYTES < 2048
        assert {kept.fault.action for kept in record.faults[:16]} == {Action.CORDON}
        assert record.forgotten is Action.WARN
        assert len(record.faults) > 16

    def test_what_was_forgotten_before_is_not_weakened(self):
        record = Record(forgotten=Action.CORDON, faults=(Kept(fault=fault(action=Action.WARN)),))
        assert decode(encode(record)).forgotten is Action.CORDON
        assert decode(encode(record, limit=100)).forgotten is Action.CORDON

    def test_words_and_baselines_give_way_to_faults(self):
        faults = [Kept(fault=fault(f"check_{n}", message="x" * 60)) for n in range(25)]
        baselines = {(CheckId("links"), uuid_of(n)): {"up": 18.0} for n in range(8)}
        record = decode(encode(Record(faults=tuple(faults), baselines=baselines)))
        assert len(record.faults) == 25
        assert not all(kept.fault.message for kept in record.faults)
        assert not record.baselines

    def test_sixteen_gpus_keep_their_baselines(self):
        baselines = {
            (CheckId(name), uuid_of(n)): {"value": float(n)}
            for n in range(16)
            for name in ("nvlinks_down", "uncorrected_memory_errors", "pcie_width")
        }
        assert decode(encode(Record(boot_id="b" * 36, baselines=baselines))).baselines == baselines

    @pytest.mark.parametrize(
        "text",
        [
            "rubbish",
            "[]",
            "{}",
            '{"version":"1"}',
            '{"version":1,"faults":{"a":[[0,3,0,0]]}}',
            '{"version":1,"gpus":[["u"]],"faults":{"a":[[0,3,0,0]]}}',
            '{"version":1,"gpus":[["u"]],"eras":[["b","r"]],"faults":{"a":[[-1,3,0,0]]}}',
            '{"version":1,"gpus":[["u"]],"eras":[["b","r"]],"faults":{"a":[[0,9,0,0]]}}',
            '{"version":1,"gpus":[["u"]],"eras":[["b","r"]],"faults":{"a":[[0,3,1e400,0]]}}',
            '{"version":1,"baselines":{"a":{"x":[1]}}}',
            "[" * 5000,
        ],
    )
    def test_anything_else_is_refused(self, text):
        with pytest.raises(RecordError):
            decode(text)

    def test_a_newer_one_is_told_from_a_broken_one(self):
        with pytest.raises(NewerRecordError, match="version 2, this program knows 1"):
            decode('{"version":2,"faults":"of another shape"}')


class TestRestart:
    def test_a_fault_is_there_before_it_is_found_again(self):
        ward = Ward(A)
        ward.says["a", 0] = BAD
        before = ward.poll(3)
        ward.restart()
        after = ward.poll()
        assert after.wish is Wish.CORDON
        assert after.faults == before.faults
        assert after.conditions == before.conditions
        assert after.record == before.record
        assert not after.changes

    def test_a_fault_of_which_nothing_is_known_stays_over_any_number_of_restarts(self):
        ward = Ward(A)
        ward.says["a", 0] = NOW
        ward.poll()
        ward.says["a", 0] = DARK
        for _ in range(5):
            ward.restart()
            ward.poll(10)
            assert ward.condition() is True
            assert ward.message() == "1 of 2 GPUs healthy: GPU 0: it is ill"
        assert ward.decision.wish is Wish.CORDON

    def test_without_an_answer_a_known_fault_is_shown_and_nothing_else(self):
        ward = Ward(A)
        ward.says["a", 0] = NOW
        ward.poll()
        ward.restart()
        assert set(ward.quiet().conditions) == {Condition.UNHEALTHY}
        assert ward.condition() is True

    def test_a_restart_begins_the_good_polls_anew(self):
        ward = Ward(A)
        ward.says["a", 0] = BAD
        ward.poll(3)
        ward.says["a", 0] = GOOD
        ward.poll(5)
        ward.restart()
        assert [ward.poll().wish for _ in range(6)] == [Wish.KEEP] * 5 + [Wish.RELEASE]

    def test_a_condition_that_stands_is_not_taken_back_before_enough_good_polls(self):
        ward = Ward(A)
        ward.says["a", 0] = BAD
        ward.restart("", standing=[Condition.UNHEALTHY])
        assert [_left(ward) for _ in range(4)] == ["left", "left", True, True]
        ward.says["a", 0] = GOOD
        ward.restart("", standing=[Condition.UNHEALTHY])
        assert [_left(ward) for _ in range(5)] == ["left"] * 4 + [False]

    def test_nothing_is_said_before_the_node_is_known(self):
        ward = Ward(A)
        ward.engine = ward._new_engine()
        ward.says["a", 0] = BAD
        decision = ward.poll(4)
        assert (decision.wish, decision.conditions, decision.record) == (Wish.KEEP, {}, "")
        ward.engine.restore("")
        assert ward.poll().wish is Wish.CORDON

    def test_a_newer_record_makes_it_watch_only(self):
        ward = Ward(A)
        said = ward.restart('{"version":7}', mark="a/x/1")
        ward.says["a", 0] = NOW
        decision = ward.poll(10)
        assert "version 7" in said
        assert decision.read_only == said
        assert (decision.wish, decision.record) == (Wish.KEEP, "")
        assert ward.condition(Condition.UNMONITORED) is True
        assert ward.condition() is True
        ward.engine.restore("")
        decision = ward.poll()
        assert (decision.wish, decision.read_only) == (Wish.CORDON, "")

    def test_a_broken_record_is_no_empty_one(self):
        ward = Ward(A)
        said = ward.restart("{rubbish", mark="")
        assert "not a record" in said
        assert ward.quiet().record == ""
        assert [ward.poll().wish for _ in range(5)] == [Wish.KEEP] * 4 + [Wish.RELEASE]
        assert decode(ward.decision.record)

    @pytest.mark.parametrize("text", ["", "{rubbish"])
    def test_the_mark_says_for_what_the_cordon_was_when_the_record_does_not(self, text):
        ward = Ward(A)
        ward.says["a", 0] = NOW
        mark = ward.poll().faults[0].fingerprint
        ward.says["a", 0] = DARK
        ward.restart(text, mark=mark)
        assert ward.poll(20).wish is Wish.CORDON
        assert ward.decision.faults[0].fingerprint == mark
        assert ward.cases["a", 0].raised.boot_id == "boot-1"
        ward.says["a", 0] = GOOD
        assert ward.poll(6).wish is Wish.RELEASE

    @pytest.mark.parametrize(
        "mark", ["true", "a", "a//5", "//", "a/x/y", "a/x/" + "9" * 400, "gone/x/1"]
    )
    def test_any_other_mark_waits_for_good_polls(self, mark):
        ward = Ward(A)
        ward.restart("", mark=mark)
        assert ward.poll(4).wish is not Wish.RELEASE

    def test_more_faults_than_were_kept_are_not_over_by_being_forgotten(self):
        ward = Ward(A)
        ward.poll()
        ward.restart(encode(Record(boot_id="boot-1", forgotten=Action.CORDON)))
        assert ward.poll(100).wish is Wish.CORDON
        assert "more faults than" in ward.message()
        ward.restart()
        assert ward.poll(100).wish is Wish.CORDON
        assert not ward.clear("true").faults
        assert ward.poll(5).wish is Wish.RELEASE

    def test_a_boot_ends_what_was_forgotten(self):
        ward = Ward(A)
        ward.restart(encode(Record(boot_id="boot-1", forgotten=Action.CORDON)))
        assert ward.poll(5, boot_id="boot-2").wish is Wish.RELEASE

    def test_a_weaker_fault_that_was_forgotten_is_looked_for_anew(self):
        ward = Ward(A)
        ward.restart(encode(Record(boot_id="boot-1", forgotten=Action.WARN)))
        assert ward.poll(5).wish is Wish.RELEASE

    def test_a_check_that_is_no_more_leaves_its_cordon_to_a_human(self):
        ward = Ward(A, LOST, check("warns", Action.WARN))
        ward.says |= {("lost", 0): NOW, ("warns", 1): NOW}
        record = ward.poll().record
        newer = Ward(A)
        newer.restart(record)
        assert newer.poll(100).wish is Wish.CORDON
        assert newer.faults == [("lost", 0)]
        assert newer.condition(Condition.DEGRADED) != True  # noqa: E712 - False or left
        newer.clear("lost")
        assert newer.poll(5).wish is Wish.RELEASE

    def test_sixteen_lost_gpus_are_all_there_after_a_restart(self):
        ward = Ward(LOST, B, gpus=16)
        ward.gpus = [gpu(index) for index in range(16)]
        ward.says = {(name, index): NOW for name in ("lost", "b") for index in range(16)}
        faults = ward.poll().faults
        ward.restart()
        assert {f.fingerprint for f in ward.poll().faults} == {f.fingerprint for f in faults}


def _left(ward):
    ward.poll()
    return ward.condition()
