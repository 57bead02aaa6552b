"""Turns: one at a time, in order, nobody waits for who hangs, nobody starves."""

import threading
from collections import Counter
from itertools import count

import pytest

from exporter.nvml.plan import Plan
from exporter.nvml.protocol import Value
from exporter.nvml.reader import Cycle
from exporter.nvml.relay import PATIENCE_SECONDS, Relay
from slicewatch.service.threads import Threads
from slicewatch.wire.layout import Device

PLAN = Plan.of(())
TOO_LONG = PATIENCE_SECONDS + 0.001


class Runner:
    """A GPU that the test reads by hand."""

    def __init__(self, name):
        self.name = name

    def attempt(self):
        return cycle(self.name)


def cycle(name):
    gpu = Device(uuid=name, gpu=0, model="m")
    return Cycle(gpu=gpu, plan=PLAN, devices=Value((gpu,)), at=0.0, spent={})


class Stage:
    """A relay with runners, the order of their turns, and how often the loop was woken."""

    def __init__(self, clock, names):
        self.clock = clock
        self.turns = []
        self.woken = 0
        self.relay = Relay(self._begin, clock)
        self.runners = {name: Runner(name) for name in names}
        self.relay.join(tuple(self.runners.values()))

    def start(self):
        return self.relay.start(self._wake)

    def finish(self, name):
        following = self.relay.finished(self.runners[name], cycle(name))
        if following is not None:
            self._begin(following)

    def delivered(self):
        return [c.gpu.uuid for c in self.relay.take()]

    def _begin(self, runner):
        self.turns.append(runner.name)

    def _wake(self):
        self.woken += 1


@pytest.fixture
def stage(hand):
    return Stage(hand, "abc")


def test_turns_go_from_one_to_the_next_and_the_last_wakes_the_loop(stage):
    assert stage.start()
    assert stage.turns == ["a"]
    stage.finish("a")
    stage.finish("b")
    assert stage.turns == ["a", "b", "c"]
    assert stage.woken == 0
    stage.finish("c")
    assert stage.woken == 1
    assert stage.delivered() == ["a", "b", "c"]
    assert stage.delivered() == []


def test_without_runners_there_is_nothing_to_wait_for(hand):
    assert not Relay(pytest.fail, hand).start(lambda: pytest.fail("nobody has anything to say"))


def test_who_keeps_its_turn_is_overtaken(stage, hand):
    stage.start()
    hand.now += PATIENCE_SECONDS / 2
    stage.relay.overtake()
    assert stage.turns == ["a"]
    hand.now += PATIENCE_SECONDS
    stage.relay.overtake()
    assert stage.turns == ["a", "b"]


def test_patience_is_for_the_turn_and_not_for_each_call_of_it(stage, hand):
    """Forty calls of 40 ms would else keep the others waiting for a second and a half."""
    stage.start()
    for _ in range(10):
        hand.now += 0.04
        stage.relay.overtake()
    assert "b" in stage.turns


def test_who_was_overtaken_and_finishes_within_the_pass_is_waited_for(stage, hand):
    stage.start()
    hand.now += TOO_LONG
    stage.relay.overtake()
    stage.finish("b")
    stage.finish("c")
    assert stage.woken == 0
    stage.finish("a")
    assert stage.woken == 1
    assert stage.delivered() == ["b", "c", "a"]


def test_one_that_hangs_gets_no_second_turn_and_holds_up_no_later_pass(stage, hand):
    stage.start()
    hand.now += TOO_LONG
    stage.relay.overtake()
    for done in range(1, 4):
        stage.finish("b")
        stage.finish("c")
        stage.start()
        assert stage.turns.count("a") == 1
        assert stage.turns.count("b") == done + 1
        assert stage.woken == done - 1


def test_one_that_comes_back_late_takes_part_in_the_next_pass_and_its_reading_counts(stage, hand):
    """device-metrics-exporter #565: where reading all GPUs took too long, none had a value."""
    stage.start()
    hand.now += TOO_LONG
    stage.relay.overtake()
    stage.finish("b")
    stage.finish("c")
    stage.start()
    stage.finish("a")
    assert "a" in stage.delivered()
    stage.finish("b")
    stage.finish("c")
    stage.start()
    for name in "abc":
        stage.finish(name)
    assert sorted(stage.turns[-3:]) == ["a", "b", "c"]


def test_a_late_end_does_not_take_the_turn_from_who_has_it(stage, hand):
    stage.start()
    hand.now += TOO_LONG
    stage.relay.overtake()
    stage.finish("a")
    assert stage.turns == ["a", "b"]
    assert list(stage.relay.running()) == [stage.runners["b"]]


def test_who_got_no_turn_in_a_pass_is_first_in_the_next(stage, hand):
    stage.start()
    stage.finish("a")
    stage.start()
    stage.finish("b")
    stage.finish("c")
    assert stage.turns == ["a", "b", "c", "a"]


def test_nobody_gets_a_turn_after_a_halt(stage):
    stage.start()
    assert not stage.relay.halt()
    stage.finish("a")
    assert stage.turns == ["a"]
    assert stage.relay.halt()
    stage.start()
    assert len(stage.turns) == 2


def test_a_halt_sees_who_was_overtaken(stage, hand):
    stage.start()
    hand.now += TOO_LONG
    stage.relay.overtake()
    stage.relay.halt()
    stage.finish("b")
    assert not stage.relay.halt()
    stage.finish("a")
    assert stage.relay.halt()


def test_running_tells_for_how_long(stage, hand):
    stage.start()
    hand.now += 3.0
    stage.relay.overtake()
    hand.now += 1.0
    assert stage.relay.running() == {stage.runners["a"]: 4.0, stage.runners["b"]: 1.0}


def test_what_a_runner_raised_is_raised_where_passes_are_taken(stage):
    stage.start()
    stage.relay.finished(stage.runners["a"], ZeroDivisionError("ours"))
    with pytest.raises(ZeroDivisionError, match="ours"):
        stage.relay.take()
    assert stage.relay.take() == ()


def test_one_thread_carries_all_turns_as_long_as_nobody_is_overtaken(hand):
    relay = Relay(lambda runner: threads.append(runner.name), hand)
    threads, woken = [], []
    runners = [Runner(name) for name in "abc"]
    relay.join(runners)
    relay.start(lambda: woken.append(True))
    assert threads == ["a"]
    relay.carry(runners[0])
    assert threads == ["a"]
    assert [found.gpu.uuid for found in relay.take()] == ["a", "b", "c"]
    assert woken == [True]


def test_every_turn_is_delivered_once_however_the_threads_interleave():
    """A thousand passes over eight GPUs, with a loop that overtakes whenever it can."""
    rounds = 1000
    threads = Threads()
    # A clock that leaps, so that whoever has the turn may be overtaken at any time.
    relay = Relay(lambda runner: threads.run(lambda: relay.carry(runner)), count(step=1).__next__)
    done, got = threading.Event(), Counter()
    relay.join([Runner(name) for name in "abcdefgh"])
    for _ in range(rounds):
        done.clear()
        assert relay.start(done.set)
        relay.overtake()
        assert done.wait(20)
        got.update(found.gpu.uuid for found in relay.take())
    threads.close()
    threads.join()
    assert got == dict.fromkeys("abcdefgh", rounds)
