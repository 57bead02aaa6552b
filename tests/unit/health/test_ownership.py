"""Whose cordon it is: each state of the node against each wish, and every human hand on it."""

from dataclasses import replace

import pytest

from health.case import Since
from health.checks.model import Action, CheckId
from health.decision import Change, Decision, Fault, Wish
from health.names import CORDONED, HOLD
from health.ownership import Cordon, GiveUp, NodeNow, Nothing, Uncordon, Why, decide


def fault(check="lost", action=Action.CORDON, at_seconds=1000.0):
    return Fault(
        check=CheckId(check),
        reason="Lost",
        message="GPU is lost",
        action=action,
        since=Since(boot_id="boot-1", driver_run="run-1/1", at_seconds=at_seconds),
        gpu="GPU-0",
    )


LOST = fault()
WARM = fault("warm", Action.WARN)
CORDONS = Decision(faults=(LOST, WARM), wish=Wish.CORDON, next_due_seconds=60)
RELEASES = Decision(wish=Wish.RELEASE, next_due_seconds=60)
KEEPS = Decision(faults=(LOST,), wish=Wish.KEEP, next_due_seconds=60)

FREE = NodeNow()
OURS = NodeNow(unschedulable=True, annotations={CORDONED: LOST.fingerprint})
FOREIGN = NodeNow(unschedulable=True)
UNCORDONED = NodeNow(annotations={CORDONED: LOST.fingerprint})
HELD = {HOLD: "true"}
CONTROL_PLANE = {"node-role.kubernetes.io/control-plane": ""}


def with_(node, annotations):
    return replace(node, annotations={**node.annotations, **annotations})


@pytest.mark.parametrize(
    ("node", "decision", "step"),
    [
        (FREE, CORDONS, Cordon(grounds=(LOST,))),
        (FREE, RELEASES, Nothing(why=Why.HEALTHY)),
        (FREE, KEEPS, Nothing(why=Why.UNCERTAIN)),
        (OURS, CORDONS, Nothing(why=Why.CORDONED)),
        (OURS, RELEASES, Uncordon()),
        (OURS, KEEPS, Nothing(why=Why.UNCERTAIN)),
        (FOREIGN, CORDONS, Nothing(why=Why.PREEXISTING)),
        (FOREIGN, RELEASES, Nothing(why=Why.PREEXISTING)),
        (FOREIGN, KEEPS, Nothing(why=Why.UNCERTAIN)),
        (UNCORDONED, CORDONS, GiveUp(ignored=(LOST.fingerprint,))),
        (UNCORDONED, RELEASES, GiveUp(ignored=())),
        (UNCORDONED, KEEPS, GiveUp(ignored=(LOST.fingerprint,))),
        (NodeNow(tainted=True), RELEASES, GiveUp(ignored=())),
        (NodeNow(tainted=True), CORDONS, GiveUp(ignored=(LOST.fingerprint,))),
        (NodeNow(tainted=True, unschedulable=True), CORDONS, Nothing(why=Why.PREEXISTING)),
    ],
)
def test_what_is_done(node, decision, step):
    assert decide(node, decision) == step


def test_a_cordon_of_others_is_neither_taken_over_nor_released():
    """NVSentinel #1424; k8s-driver-manager #212, system-upgrade-controller #341."""
    for decision in (CORDONS, RELEASES, RELEASES):
        assert isinstance(decide(FOREIGN, decision), Nothing)


def test_others_ending_their_cordon_leaves_the_node_to_its_faults():
    assert decide(FOREIGN, CORDONS) == Nothing(why=Why.PREEXISTING)
    assert isinstance(decide(FREE, CORDONS), Cordon)


def test_taking_our_mark_off_makes_the_cordon_somebody_elses():
    without = replace(OURS, annotations={})
    assert decide(without, RELEASES) == Nothing(why=Why.PREEXISTING)


def test_a_mark_counts_whatever_it_says():
    assert decide(replace(OURS, annotations={CORDONED: ""}), RELEASES) == Uncordon()


class TestHold:
    @pytest.mark.parametrize(("node", "decision"), [(FREE, CORDONS), (OURS, RELEASES)])
    def test_the_node_stays_as_it_is(self, node, decision):
        assert decide(with_(node, HELD), decision) == Nothing(why=Why.HELD)

    @pytest.mark.parametrize("value", ["true", "True", " TRUE "])
    def test_it_is_read_as_people_write_it(self, value):
        assert decide(with_(OURS, {HOLD: value}), RELEASES) == Nothing(why=Why.HELD)

    @pytest.mark.parametrize("value", ["", "false", "no"])
    def test_anything_else_holds_nothing(self, value):
        assert decide(with_(OURS, {HOLD: value}), RELEASES) == Uncordon()

    def test_a_cordon_that_a_human_ended_is_given_up_all_the_same(self):
        assert isinstance(decide(with_(UNCORDONED, HELD), CORDONS), GiveUp)


class TestControlPlane:
    NODE = replace(FREE, labels=CONTROL_PLANE)

    @pytest.mark.parametrize(
        "label", ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"]
    )
    def test_it_is_not_cordoned(self, label):
        node = replace(FREE, labels={label: ""})
        assert decide(node, CORDONS) == Nothing(why=Why.CONTROL_PLANE)

    def test_it_is_where_that_is_allowed(self):
        assert isinstance(decide(self.NODE, CORDONS, allow_control_plane=True), Cordon)

    def test_a_cordon_of_ours_is_released_even_so(self):
        assert decide(replace(OURS, labels=CONTROL_PLANE), RELEASES) == Uncordon()


class TestIgnored:
    def test_a_fault_that_a_human_has_uncordoned_is_no_reason(self):
        decision = replace(CORDONS, ignored=frozenset({LOST.fingerprint}))
        assert decide(FREE, decision) == Nothing(why=Why.IGNORED)

    def test_the_same_fault_of_another_time_is_one(self):
        again = fault(at_seconds=5000.0)
        decision = replace(CORDONS, faults=(again,), ignored=frozenset({LOST.fingerprint}))
        assert decide(FREE, decision) == Cordon(grounds=(again,))

    def test_only_what_whoever_uncordoned_could_know_of_is_ignored(self):
        new = fault("ecc", at_seconds=2000.0)
        decision = replace(CORDONS, faults=(LOST, new), changes=(Change(fault=new, raised=True),))
        assert decide(UNCORDONED, decision) == GiveUp(ignored=(LOST.fingerprint,))

    def test_a_fault_that_tells_of_another_reason_is_still_the_same(self):
        told = replace(LOST, reason="Other")
        decision = replace(CORDONS, changes=(Change(fault=told, raised=True),))
        assert decide(UNCORDONED, decision) == GiveUp(ignored=(LOST.fingerprint,))


@pytest.mark.parametrize("node", [FREE, OURS, FOREIGN, UNCORDONED])
def test_beside_a_newer_record_nothing_is_touched(node):
    for decision in (CORDONS, RELEASES, KEEPS):
        step = decide(node, replace(decision, read_only="the record is of version 2"))
        assert step == Nothing(why=Why.READ_ONLY)


def test_the_mark_is_what_the_cordon_was_for():
    assert Cordon(grounds=(LOST,)).mark == "lost/GPU-0/1000"


def test_every_reason_for_doing_nothing_has_a_sentence():
    assert all(why.sentence for why in Why)
