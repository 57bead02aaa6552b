"""The loop: each turn hears, decides and acts; no fault of one turn reaches the next."""

import asyncio

import msgspec
import pytest

from health import agent
from health.agent import Agent, Clocks
from health.decision import Decision, State, Wish
from health.observation import Observation
from health.source import FakeExporter, Silence
from slicewatch.catalog.health import HEALTH
from slicewatch.kube.errors import UnavailableError
from slicewatch.service.own_metrics import OwnMetrics
from testbed import evidence
from tests.unit.health.house import labelled_samples


class Hour:
    """Clocks that only move while the agent rests; an hour after the start the test ends."""

    def __init__(self, seconds=3600):
        self.now = 1000.0
        self.rests = []
        self._end = self.now + seconds

    def clocks(self):
        return Clocks(monotonic=lambda: self.now, wall=lambda: 1.8e9 + self.now, rest=self._rest)

    async def _rest(self, seconds):
        self.rests.append(seconds)
        self.now += seconds
        if self.now >= self._end:
            raise asyncio.CancelledError


class Notes:
    """A judge and hands that write down what they are asked, and fail when they are told to."""

    def __init__(self, due_seconds=60.0):
        self.heard_events, self.silences, self.done = [], [], []
        self.failures = {"begin": [], "judge": [], "act": []}
        self._due_seconds = due_seconds

    def _fail(self, part):
        failure = self.failures[part].pop(0) if self.failures[part] else None
        if failure is not None:
            raise failure

    async def begin(self):
        self._fail("begin")
        return self

    def heard(self, heard, now, wall):
        self.heard_events.append([event.data for event in heard.events])
        assert wall == 1.8e9 + now
        self._fail("judge")
        return self._decision(heard.gpus[0].device.uuid)

    def silent(self, why, now, wall):
        assert wall == 1.8e9 + now
        self.silences.append(why)
        self._fail("judge")
        return self._decision("")

    async def carry_out(self, decision):
        self._fail("act")
        self.done.append(decision.wish)

    def _decision(self, uuid):
        states = {("xid", uuid): State.HEALTHY if uuid else State.UNKNOWN}
        return Decision(states=states, wish=Wish.KEEP, next_due_seconds=self._due_seconds)


class Bench:
    def __init__(self, due_seconds=60.0, hours=1.0):
        self.hour = Hour(hours * 3600)
        self.notes = Notes(due_seconds)
        self.exporter = FakeExporter(evidence.evidence([evidence.gpu(3)]))
        self.metrics = OwnMetrics(HEALTH)
        clock = self.hour.clocks()
        observation = Observation(self.metrics, dry_run=False, clock=clock.monotonic)
        self.agent = Agent(
            node="node-1", source=self.exporter, hands=self.notes, observation=observation,
            interval_seconds=60, clocks=clock,
        )  # fmt: skip

    async def run(self):
        with pytest.raises(asyncio.CancelledError):
            await self.agent.run()

    def samples(self, name):
        return labelled_samples(self.metrics, name)


async def test_it_takes_a_turn_per_interval():
    bench = Bench()
    await bench.run()
    assert len(bench.notes.done) == 60
    assert set(bench.hour.rests) == {60}


async def test_it_looks_sooner_when_something_is_due():
    bench = Bench(due_seconds=20)
    await bench.run()
    assert set(bench.hour.rests) == {20}


@pytest.mark.parametrize("due", [0.0, -5.0])
async def test_it_never_looks_without_pause(due):
    bench = Bench(due_seconds=due, hours=0.01)
    await bench.run()
    assert set(bench.hour.rests) == {agent.SHORTEST_PAUSE_SECONDS}


async def test_an_event_reaches_the_judge_once():
    bench = Bench()
    bench.exporter.happen(evidence.event(79))
    await bench.agent.turn()
    bench.exporter.happen(evidence.event(31), evidence.event(43))
    await bench.agent.turn()
    await bench.agent.turn()
    assert bench.notes.heard_events == [[79], [31, 43], []]


async def test_silence_is_a_turn_of_its_own_and_nothing_is_lost_over_it():
    bench = Bench()
    bench.exporter.happen(evidence.event(79))
    bench.exporter.fail_next(Silence.TIMEOUT, 2)
    for _ in range(3):
        await bench.agent.turn()
    assert bench.notes.silences == [Silence.TIMEOUT] * 2
    assert bench.notes.heard_events == [[79]]
    assert len(bench.notes.done) == 3
    polls = bench.samples("slicewatch_health_polls_total")
    assert polls == {("heard",): 1, ("timeout",): 2}


async def test_evidence_of_another_node_is_none():
    bench = Bench()
    bench.exporter.state = msgspec.structs.replace(bench.exporter.state, node="node-2")
    bench.exporter.happen(evidence.event(79))
    await bench.agent.turn()
    assert bench.notes.silences == [Silence.OTHER_NODE]
    bench.exporter.state = msgspec.structs.replace(bench.exporter.state, node="node-1")
    await bench.agent.turn()
    assert bench.notes.heard_events == [[79]]


async def test_nothing_is_judged_before_the_record_of_the_node_was_read():
    bench = Bench()
    bench.notes.failures["begin"] = [UnavailableError("503"), UnavailableError("503")]
    bench.exporter.happen(evidence.event(79))
    for _ in range(2):
        await bench.agent.turn()
        assert bench.agent.ready() == "begin: 503"
        assert not bench.notes.heard_events
    await bench.agent.turn()
    assert bench.notes.heard_events == [[79]]
    assert bench.agent.ready() is None


async def test_what_the_api_server_refused_is_decided_anew_and_not_repeated():
    bench = Bench()
    bench.notes.failures["act"] = [UnavailableError("503")] * 3
    for _ in range(4):
        await bench.agent.turn()
    assert bench.notes.done == [Wish.KEEP]
    failures = bench.samples("slicewatch_health_failures_total")
    assert failures == {("act", "UnavailableError"): 3}


@pytest.mark.parametrize("part", ["begin", "judge", "act"])
async def test_a_part_that_throws_costs_its_turn_alone(part):
    bench = Bench()
    bench.notes.failures[part] = [ValueError("broken")]
    await bench.run()
    assert len(bench.notes.done) == 59
    assert bench.samples("slicewatch_health_failures_total") == {(part, "ValueError"): 1}
    assert bench.agent.ready() is None


async def test_an_event_that_breaks_the_judge_does_not_come_again():
    bench = Bench()
    bench.exporter.happen(evidence.event(79))
    bench.notes.failures["judge"] = [ValueError("broken")]
    for _ in range(2):
        await bench.agent.turn()
    assert bench.notes.heard_events == [[79], []]


async def test_a_turn_that_does_not_end_is_given_up(monkeypatch):
    monkeypatch.setattr(agent, "TURN_SECONDS", 0.05)
    bench = Bench()

    async def hang(_decision):
        await asyncio.Event().wait()

    monkeypatch.setattr(bench.notes, "carry_out", hang)
    await bench.agent.turn()
    assert bench.samples("slicewatch_health_failures_total") == {("act", "TimeoutError"): 1}


class TestLiveness:
    async def test_neither_exporter_nor_api_server_costs_the_process_its_life(self):
        """The kubelet killed it 49 times, and no fault was told (NVSentinel #1748)."""
        bench = Bench()
        bench.exporter.fail_next(Silence.NO_SOCKET, 1000)
        bench.notes.failures["act"] = [UnavailableError("down")] * 1000
        await bench.run()
        assert bench.agent.alive() is None
        assert bench.agent.ready() == "act: down"

    async def test_a_loop_that_stands_still_does(self):
        bench = Bench()
        await bench.run()
        bench.hour.now += 60 + 2 * agent.TURN_SECONDS + 61
        assert "stood still for" in bench.agent.alive()


class TestObserved:
    async def test_a_check_has_one_series_per_gpu_with_its_present_state(self):
        """Gauges stayed at 1 (node-problem-detector #474, #936)."""
        bench = Bench()
        await bench.agent.turn()
        states = bench.samples("gpu_health_check_state")
        assert states == {("xid", "3", "healthy", evidence.uuid_of(3)): 1}
        bench.exporter.fail_next(Silence.REFUSED)
        await bench.agent.turn()
        assert bench.samples("gpu_health_check_state") == {("xid", "", "unknown", ""): 1}

    async def test_the_age_of_what_was_heard_grows_in_silence(self):
        bench = Bench()
        await bench.agent.turn()
        bench.exporter.fail_next(Silence.REFUSED, 100)
        await bench.run()
        age = bench.samples("slicewatch_health_evidence_age_seconds")
        assert age == {(): 3600}

    async def test_missed_events_are_counted(self):
        bench = Bench()
        bench.exporter = FakeExporter(bench.exporter.state, kept=2)
        bench.agent._source = bench.exporter
        bench.exporter.happen(*(evidence.event(number) for number in range(1, 8)))
        await bench.agent.turn()
        assert bench.samples("slicewatch_health_missed_events_total") == {(): 5}

    async def test_what_is_not_known_has_no_series(self):
        bench = Bench()
        for name in ("condition", "cordon", "budget_nodes", "budget_paused", "faults"):
            assert bench.samples(f"slicewatch_health_{name}") == {}
