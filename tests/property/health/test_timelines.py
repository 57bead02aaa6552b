"""Whatever faults, humans, restarts and outages do to a node: no cordon is wrong, none is left.

A node, its humans and an API server are modelled; the engine, the record and the ownership are
the real ones. The writes of each poll are what the parts that write make of its step.
"""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from health.checks.model import Action, Condition, Unhealthy
from health.decision import Wish
from health.names import CLEAR, CORDONED, HOLD, STATE
from health.ownership import Cordon, GiveUp, NodeNow, Nothing, Uncordon, decide
from health.policy import Policy
from health.record import RECORD_BYTES, decode
from tests.unit.health.ward import BAD, DARK, GOOD, NOW, Ward, check

CHECKS = (
    check("seen"),
    check("told", clear_seconds=0.0),
    check("warns", Action.WARN),
)
WARM = Unhealthy(message="it is warm", action=Action.WARN)
GPUS = 2


class Timeline(RuleBasedStateMachine):
    """Attributes: ``owner`` is who cordoned the node, as only the model can know."""

    dry_run = False

    def __init__(self):
        super().__init__()
        self.ward = Ward(*CHECKS, policy=Policy(flapping_raises=3), gpus=GPUS)
        self.node = NodeNow()
        self.owner = None
        self.given_up = set()
        self.api = True
        self.boot = 1
        self.good_polls = 0

    @initialize(cordoned=st.sampled_from([False, False, False, True]))
    def may_be_cordoned_before(self, cordoned):
        if cordoned:
            self._human_cordons()

    @rule(
        name=st.sampled_from([one.id for one in CHECKS]),
        index=st.integers(0, GPUS - 1),
        said=st.sampled_from([GOOD, GOOD, BAD, NOW, DARK, WARM]),
    )
    def something_changes(self, name, index, said):
        self.ward.says[name, index] = said

    @rule(times=st.integers(1, 7))
    def time_passes(self, times):
        for _ in range(times):
            self._poll()

    @rule(times=st.integers(1, 8))
    def the_exporter_is_silent(self, times):
        for _ in range(times):
            self.ward.quiet()
            self._act()

    @rule()
    def the_monitor_restarts(self):
        self.good_polls = 0
        self.ward.restart(
            self.node.annotations.get(STATE, ""), mark=self.node.annotations.get(CORDONED, "")
        )

    @rule()
    def the_node_boots(self):
        self.boot += 1

    @rule(up=st.sampled_from([True, True, False]))
    def the_api_server_comes_or_goes(self, up):
        self.api = up

    @rule(name=st.sampled_from(["seen", "told"]), index=st.integers(0, GPUS - 1))
    def a_gpu_fails(self, name, index):
        self.ward.says[name, index] = NOW
        self._poll()

    @rule(times=st.integers(0, 8))
    def all_is_well(self, times):
        self.ward.says.clear()
        self.time_passes(times)

    @rule(does=st.sampled_from(["cordon", "hold", "let go", "let go"]))
    def a_human_decides(self, does):
        if does == "cordon":
            self._human_cordons()
        else:
            self._annotate(**{HOLD: "true" if does == "hold" else None})

    @precondition(lambda self: self.node.unschedulable)
    @rule(polled=st.booleans())
    def a_human_uncordons(self, polled):
        self.owner = None
        self.node = replace(self.node, unschedulable=False)
        if polled:
            self._poll()

    @rule(what=st.sampled_from(["true", "seen", "told"]))
    def a_human_clears(self, what):
        if not self.dry_run:
            self._annotate(**{CLEAR: what})

    @rule(record=st.sampled_from([None, "{rubbish"]))
    def a_human_spoils_the_record(self, record):
        self._annotate(**{STATE: record})

    def teardown(self):
        """Faults and humans have stopped: in the end the node is as nobody's or as theirs."""
        self.api = True
        self._annotate(**{HOLD: None, CLEAR: None})
        self.ward.says.clear()
        self.ward.clear("true")
        for _ in range(14):
            self._poll()
        assert self.ward.decision.wish is Wish.RELEASE
        assert not self.ward.decision.faults
        assert self.ward.condition() is False
        assert not self.node.marked
        assert self.node.unschedulable == (self.owner == "human")

    @invariant()
    def the_record_is_small_and_readable(self):
        record = self.ward.decision.record if self.ward.decision else ""
        assert len(record.encode()) <= RECORD_BYTES
        assert not record or decode(record)

    @invariant()
    def a_fault_that_cordons_is_shown(self):
        decision = self.ward.decision
        if decision and any(fault.action is Action.CORDON for fault in decision.faults):
            assert decision.conditions[Condition.UNHEALTHY].present is True
            assert decision.wish is not Wish.RELEASE or decision.ignored

    def _human_cordons(self):
        if not self.node.unschedulable:
            # Of a mark that is still there, the monitor cannot tell that it means another cordon.
            self.owner = "us" if self.node.marked else "human"
        self.node = replace(self.node, unschedulable=True)

    def _poll(self):
        decision = self.ward.poll(boot_id=f"boot-{self.boot}")
        ills = [
            self.ward.says.get((one.id, index), GOOD)
            for one in CHECKS
            for index in range(GPUS)
            if one.action is Action.CORDON
        ]
        fine = all(said in (GOOD, DARK, WARM) for said in ills)
        self.good_polls = self.good_polls + 1 if fine or decision.ignored else 0
        self._act()

    def _act(self):
        """Do what the parts that write do with a decision."""
        if not self.api:
            return
        decision = self.ward.decision
        if CLEAR in self.node.annotations:
            decision = self.ward.clear(self.node.annotations[CLEAR])
        step = decide(self.node, decision)
        self._check(step, decision)
        if self.dry_run:
            return
        if isinstance(step, Cordon):
            self.owner = "us"
            self.node = replace(self.node, unschedulable=True)
            self._annotate(**{CORDONED: step.mark})
        elif isinstance(step, Uncordon):
            self.owner = None
            self.node = replace(self.node, unschedulable=False)
            self._annotate(**{CORDONED: None})
        elif isinstance(step, GiveUp):
            self.given_up |= set(step.ignored)
            decision = self.ward.engine.ignore(step.ignored, self.ward.now)
            self._annotate(**{CORDONED: None})
        if decision.record:
            self._annotate(**{STATE: decision.record})
        self._annotate(**{CLEAR: None})

    def _check(self, step, decision):
        if isinstance(step, Uncordon):
            assert self.owner == "us"
            assert HOLD not in self.node.annotations
            assert self.good_polls >= 5
            assert all(
                fault.fingerprint in decision.ignored
                for fault in decision.faults
                if fault.action is Action.CORDON
            )
        if isinstance(step, Cordon):
            assert self.owner is None
            assert not self.node.unschedulable
            assert HOLD not in self.node.annotations
            assert all(fault.action is Action.CORDON for fault in step.grounds)
            assert not {fault.fingerprint for fault in step.grounds} & self.given_up
        if isinstance(step, GiveUp):
            assert self.owner is None
        if self.node.unschedulable and not self.node.marked:
            assert isinstance(step, Nothing)

    def _annotate(self, **values):
        known = {**self.node.annotations, **values}
        kept = {name: value for name, value in known.items() if value is not None}
        self.node = replace(self.node, annotations=kept)


class DryRun(Timeline):
    """The same, but nothing is ever written."""

    dry_run = True

    @invariant()
    def nothing_of_ours_is_on_the_node(self):
        assert not self.node.marked
        assert self.node.annotations.get(STATE, "{rubbish") == "{rubbish"


# Long timelines find what short ones do not: a raise takes three polls, a recovery six.
LIMITS = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_no_timeline_leads_to_a_wrong_cordon_and_all_of_them_end_well():
    run_state_machine_as_test(Timeline, settings=LIMITS)


def test_a_dry_run_writes_nothing_whatever_happens():
    run_state_machine_as_test(DryRun, settings=settings(LIMITS, max_examples=20))
