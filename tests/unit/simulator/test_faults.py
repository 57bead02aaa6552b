"""Faults over time: each kind, once, repeatedly, and cleared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import ScenarioError
from simulator.faults import NEVER, Injection, Story
from simulator.fleet import Fleet
from simulator.node import EventKind
from simulator.scenario import Failing, Hang, Lost, RecoveryNeeded, Seconds, Xid
from slicewatch.catalog.readings.errors import Recovery

FAULTY = "gpu-faulty"


def lost(**times):
    return Lost(node="n", gpu=0, **{name: Seconds(at) for name, at in times.items()})


@pytest.fixture
def fleet():
    return Fleet.named("faults")


def states_at(fleet, gpu, *times):
    board = fleet.node(FAULTY).gpus[gpu]
    return [board.timeline.stage(at).state for at in times]


def test_a_lost_gpu_comes_back(fleet):
    assert states_at(fleet, 0, 59, 60, 89.9, 90) == ["up", "lost", "lost", "up"]


def test_a_gpu_waits_for_its_reset(fleet):
    assert states_at(fleet, 1, 119, 120, 150) == ["up", "reset_required", "up"]


def test_a_gpu_hangs_and_works_on(fleet):
    gpu = fleet.node(FAULTY).gpus[0]
    assert states_at(fleet, 0, 179, 180, 210) == ["up", "hung", "up"]
    assert fleet.truth.mean_utilization(gpu.uuid, 180, 210) == pytest.approx(0.5)


def test_a_lost_gpu_does_no_work(fleet):
    gpu = fleet.node(FAULTY).gpus[0]
    assert fleet.truth.busy_seconds(gpu.uuid, 50, 100) == pytest.approx(10)


def test_every_reading_is_nonsense_while_garbage_lasts(fleet):
    fleet.advance_to(250)
    gpu = fleet.node(FAULTY).gpus[0]
    assert gpu.temperature_celsius == 4278190080
    assert gpu.current_utilization == 9223372036854775807
    assert {percent for _, percent in gpu.utilization_samples()} == {9223372036854775807}
    assert gpu.power_milliwatts == gpu.sm_clock_mhz == gpu.memory_clock_mhz == 2**32 - 1
    assert gpu.memory.used_bytes > gpu.memory.total_bytes
    fleet.advance_to(270)
    assert gpu.temperature_celsius < 100


def test_events_happen_once_in_their_order(fleet):
    node = fleet.node(FAULTY)
    gpus = node.gpus
    events = node.events(0, 1000)
    assert [(e.at, e.kind, e.gpu, e.data, e.gpu_instance_id) for e in events] == [
        (300, EventKind.XID, gpus[1].uuid, 79, None),
        (310, EventKind.XID, gpus[3].uuid, 94, 2),
        (360, EventKind.SINGLE_BIT_ECC, gpus[1].uuid, 0, None),
        (370, EventKind.DOUBLE_BIT_ECC, gpus[1].uuid, 0, None),
        (780, EventKind.RECOVERY_ACTION, gpus[2].uuid, 1, None),
        (810, EventKind.RECOVERY_ACTION, gpus[2].uuid, 0, None),
    ]
    assert node.events(0, 300) == events[:1]
    assert node.events(301, 310) == events[1:2]


def test_a_cursor_gives_each_event_once_even_at_a_moment_that_stands_still(fleet):
    node = fleet.node(FAULTY)
    fleet.advance_to(300)
    cursor = node.listen()
    assert cursor.take() == ()
    fleet.inject(Xid(node=FAULTY, gpu=0, xid=48))
    fleet.inject(Xid(node=FAULTY, gpu=0, xid=63))
    assert [event.data for event in cursor.take()] == [48, 63]
    fleet.inject(Xid(node=FAULTY, gpu=0, xid=94))
    assert [event.data for event in cursor.take()] == [94]
    fleet.advance_to(310)
    assert [event.data for event in cursor.take()] == [94]
    assert cursor.take() == ()


def test_the_end_of_a_recovery_action_comes_after_what_happened_at_that_moment(fleet):
    node = fleet.node(FAULTY)
    cursor = node.listen()
    wanted = fleet.inject(RecoveryNeeded(node=FAULTY, gpu=0, action=Recovery.NODE_REBOOT))
    fleet.advance_to(1)
    fleet.inject(Xid(node=FAULTY, gpu=0, xid=48))
    assert [event.data for event in cursor.take()] == [2, 48]
    fleet.clear(wanted)
    assert [(e.kind, e.data) for e in cursor.take()] == [(EventKind.RECOVERY_ACTION, 0)]


def test_of_two_recovery_actions_the_other_one_is_left(fleet):
    node = fleet.node(FAULTY)
    fleet.inject(RecoveryNeeded(node=FAULTY, gpu=0, action=Recovery.DRAIN_P2P))
    fleet.advance_to(1)
    second = fleet.inject(RecoveryNeeded(node=FAULTY, gpu=0, action=Recovery.GPU_RESET))
    fleet.advance_to(2)
    fleet.clear(second)
    assert [(event.at, event.data) for event in node.events(0, 2)] == [(0, 3), (1, 1), (2, 3)]


def test_a_gpu_that_fails_works_on(fleet):
    gpu = fleet.node(FAULTY).gpus[0]
    fleet.inject(Failing(node=FAULTY, gpu=0, error="unknown", lasts=Seconds(10)))
    assert (gpu.stage.error, gpu.stage.state, gpu.stage.halted) == ("UNKNOWN", "up", False)
    fleet.advance_to(10)
    assert gpu.stage.error == ""


def test_a_gpu_is_partitioned_anew_and_then_not_at_all(fleet):
    gpu = fleet.node(FAULTY).gpus[3]
    fleet.advance_to(420)
    assert [(d.index, d.profile.name) for d in gpu.mig_devices] == [(1, "4g.40gb"), (3, "1g.10gb")]
    fleet.advance_to(480)
    assert not gpu.mig_enabled
    assert gpu.mig_devices == ()


def test_a_driver_that_is_gone_is_loaded_anew(fleet):
    node = fleet.node(FAULTY)
    gone, back = node.driver_at(550), node.driver_at(570)
    assert not gone.loaded
    assert back.loaded
    assert (back.generation, back.loaded_at, back.replaced) == (1, 570, False)
    assert not any(fleet.truth.up(gpu.uuid, 550) for gpu in node.gpus)


def test_a_driver_is_replaced_by_another_version(fleet):
    node = fleet.node(FAULTY)
    before, during, after = (node.driver_at(at) for at in (599, 610, 630))
    assert (before.version, before.matches) == ("580.95.05", True)
    assert (during.version, during.matches, during.replaced) == ("590.48.01", False, True)
    assert after.matches
    assert after.generation == before.generation + 1


@given(st.floats(0, 100), st.floats(1, 50), st.integers(51, 200), st.floats(0, 1000))
def test_a_fault_that_repeats_holds_exactly_in_its_times(at, lasts, every, moment):
    story = Story((lost(at=at, lasts=lasts, every=every),))
    holds = any(one.holds(moment) for one in story.occurrences(0, moment))
    phase = (moment - at) % every
    # At the very edges, floating-point rounding decides.
    if moment >= at and min(phase, abs(phase - lasts), every - phase) > 1e-6:
        assert holds == (phase < lasts)
    elif moment < at:
        assert not holds


@given(st.floats(0, 1000), st.integers(51, 200))
def test_the_next_change_is_the_next_begin_or_end(moment, every):
    injection = Injection(lost(at=10, lasts=50, every=every), origin=0)
    known = [t for one in injection.occurrences(0, 2000) for t in (one.begin, one.end)]
    assert injection.next_change(moment) == min(t for t in known if t > moment)


@given(st.floats(0, 1000), st.integers(51, 200))
def test_what_is_over_can_be_left_out_and_what_lasts_cannot(since, every):
    injection = Injection(lost(at=10, lasts=50, every=every), origin=0)
    every_one = list(injection.occurrences(0, 1000))
    assert [o for o in every_one if o.end > since] == [
        o for o in injection.occurrences(since, 1000) if o.end > since
    ]


def test_a_cleared_fault_keeps_its_past():
    story = Story(())
    injection = story.add(lost(lasts=10, every=20), now=100)
    story.clear(injection, now=125)
    assert [(one.begin, one.end) for one in story.occurrences(0, 500)] == [(100, 110), (120, 125)]
    assert story.next_change(125) == NEVER


def test_a_fault_on_what_is_not_there_is_refused(fleet):
    with pytest.raises(ScenarioError, match="gpu-faulty has GPUs 0 to 3"):
        fleet.inject(Hang(node=FAULTY, gpu=4))


def test_the_times_of_an_injected_fault_count_from_now(fleet):
    fleet.advance_to(1000)
    node = fleet.node(FAULTY)
    fleet.inject(Xid(node=FAULTY, gpu=0, xid=48, at=5))
    assert [(event.at, event.data) for event in node.events(900, 2000)] == [(1005, 48)]
