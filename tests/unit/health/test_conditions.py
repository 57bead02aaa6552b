"""The node's conditions: which problem shows where, in which words, and when the words change."""

import pytest

from health.checks.model import Action, Condition, Subject, Unhealthy
from health.conditions import MESSAGE_BYTES, fit
from testbed.evidence import gpu
from tests.unit.health.ward import BAD, DARK, GOOD, NODE, NOW, Ward, check

A = check("a", raise_seconds=0.0)
B = check("b", raise_seconds=0.0)
MISSING = check("missing", Action.WARN, subject=Subject.NODE, condition=Condition.UNMONITORED)
EACH = (
    check("cordons"),
    check("resets", Action.RESET),
    check("warns", Action.WARN),
    MISSING,
)


def statuses(ward):
    return {str(c): said.present for c, said in ward.decision.conditions.items()}


@pytest.mark.parametrize(
    ("name", "index", "shown"),
    [
        ("cordons", 0, Condition.UNHEALTHY),
        ("resets", 0, Condition.RESET_REQUIRED),
        ("warns", 0, Condition.DEGRADED),
        ("missing", NODE, Condition.UNMONITORED),
    ],
)
def test_a_problem_shows_in_its_own_condition(name, index, shown):
    ward = Ward(*EACH)
    ward.says[name, index] = NOW
    ward.poll()
    assert [c for c in Condition if ward.condition(c) is True] == [shown]
    assert ward.decision.conditions[shown].reason == name.title()


def test_all_is_well_where_a_check_has_said_so():
    ward = Ward(*EACH)
    ward.poll()
    assert set(statuses(ward).values()) == {False}
    assert ward.decision.conditions[Condition.UNHEALTHY].reason == "NoGPUFailed"


def test_a_gpu_that_nobody_could_look_at_yet_is_not_called_well():
    ward = Ward(check("of_a_gpu"), check("of_the_node", subject=Subject.NODE))
    ward.says["of_a_gpu", 1] = DARK
    ward.poll(10)
    assert ward.condition(Condition.UNHEALTHY) == "left"
    ward.says["of_a_gpu", 1] = GOOD
    ward.poll()
    ward.says["of_a_gpu", 1] = DARK
    ward.poll()
    assert ward.condition(Condition.UNHEALTHY) is False


def test_a_condition_that_no_check_could_answer_is_left_out():
    ward = Ward(*EACH)
    ward.says |= {("resets", 0): DARK, ("resets", 1): DARK, ("cordons", 0): DARK}
    ward.says["cordons", 1] = DARK
    ward.poll(10)
    assert set(statuses(ward)) == {Condition.DEGRADED, Condition.UNMONITORED}


def test_nothing_is_known_while_the_gpus_are_not_monitored():
    ward = Ward(*EACH)
    ward.poll()
    ward.says["missing", NODE] = NOW
    ward.says |= {("cordons", 0): DARK, ("cordons", 1): DARK}
    ward.poll()
    assert statuses(ward) == {
        Condition.UNHEALTHY: None,
        Condition.RESET_REQUIRED: None,
        Condition.DEGRADED: None,
        Condition.UNMONITORED: True,
    }


def test_a_fault_stays_shown_while_the_gpus_are_not_monitored():
    ward = Ward(*EACH)
    ward.says |= {("cordons", 0): NOW, ("missing", NODE): NOW}
    ward.poll()
    assert ward.condition() is True
    assert ward.message() == "1 of 2 GPUs healthy: GPU 0: it is ill"


def test_a_driver_that_is_not_there_for_four_minutes_after_a_boot_is_no_problem():
    """It was one, on each new node (NVSentinel #1423)."""
    ward = Ward(check("driver", Action.WARN, subject=Subject.NODE, grace=True), *EACH, gpus=0)
    ward.says["driver", NODE] = BAD
    for age in (60.0, 120.0, 180.0, 240.0):
        ward.poll(down="no_driver", uptime_seconds=age, driver_seconds=age)
        assert True not in statuses(ward).values()
    ward.says.clear()
    ward.gpus = [gpu(0)]
    ward.poll(10, driver_seconds=30.0)
    assert ward.changes == []


def test_two_findings_that_alternate_change_neither_reason_nor_message():
    """Repair never came (eks-node-monitoring-agent #39)."""
    ward = Ward(A, B)
    ward.says |= {("a", 0): BAD, ("b", 0): BAD}
    first = ward.poll(3).conditions
    for turn in range(20):
        ward.says = {("a" if turn % 2 else "b", 0): BAD}
        assert ward.poll().conditions == first


def test_two_reasons_of_one_check_that_alternate_change_nothing_either():
    ward = Ward(check("a", reasons=("Other",)))
    one = Unhealthy(message="Xid 79", at_once=True)
    other = Unhealthy(message="Xid 48", reason="Other", at_once=True)
    ward.says["a", 0] = one
    first = ward.poll().conditions
    for turn in range(30):
        ward.says["a", 0] = other if turn % 2 else one
        assert ward.poll().conditions == first
    assert ward.changes == [("A", True), ("Other", True)]


def test_words_that_stay_different_are_taken_over_in_time():
    ward = Ward(A)
    ward.says["a", 0] = Unhealthy(message="1 link down", at_once=True)
    ward.poll()
    ward.says["a", 0] = Unhealthy(message="4 links down", at_once=True)
    assert "1 link" in ward.poll().conditions[Condition.UNHEALTHY].message
    ward.poll(8)
    assert ward.message().endswith("GPU 0: 4 links down")


def test_the_strongest_comes_first_then_the_oldest_then_by_place():
    ward = Ward(A, B, gpus=4)
    ward.says["b", 3] = NOW
    ward.poll()
    ward.says |= {("a", 2): NOW, ("a", 1): NOW}
    ward.poll()
    assert ward.decision.conditions[Condition.UNHEALTHY].reason == "B"
    assert ward.message() == (
        "1 of 4 GPUs healthy: GPU 3: it is ill; GPU 1: it is ill; GPU 2: it is ill"
    )


def test_a_problem_of_the_node_counts_no_gpus():
    ward = Ward(MISSING)
    ward.says["missing", NODE] = Unhealthy(message="7 of 8 expected", at_once=True)
    ward.poll()
    assert ward.message(Condition.UNMONITORED) == "7 of 8 expected"


def test_a_gpu_that_is_not_listed_any_more_still_counts():
    ward = Ward(A)
    ward.says["a", 1] = NOW
    ward.poll()
    ward.gpus = ward.gpus[:1]
    ward.poll()
    assert ward.message() == "1 of 2 GPUs healthy: GPU 1: it is ill"


def test_over_means_over():
    """Nothing cleared it (node-problem-detector #215, #673)."""
    ward = Ward(A)
    ward.says["a", 0] = BAD
    ward.poll(3)
    ward.says["a", 0] = GOOD
    ward.poll(7)
    assert statuses(ward)[Condition.UNHEALTHY] is False
    assert ward.decision.faults == ()


class TestFit:
    def test_what_fits_is_all_there(self):
        assert fit("1 of 2: ", ["a", "b"], 12) == "1 of 2: a; b"

    def test_what_does_not_is_counted(self):
        text = fit("", ["first", *["x" * 10] * 9], 40)
        assert text == "first; xxxxxxxxxx; xxxxxxxxxx; +7 more"

    def test_the_first_is_there_if_need_be_cut(self):
        assert fit("", ["a" * 100], 10) == "a" * 7 + "…"
        assert fit("", ["a" * 100, "b"], 20) == "a" * 8 + "…; +1 more"

    @pytest.mark.parametrize("limit", range(20, 60))
    def test_it_never_takes_more_bytes(self, limit):
        text = fit("7 of 8: ", ["übel", "schlimm — wirklich", "ok", "…" * 9], limit)
        assert len(text.encode()) <= limit

    def test_a_condition_takes_a_kilobyte(self):
        assert MESSAGE_BYTES == 1024
