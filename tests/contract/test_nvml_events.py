"""What is listened to, and by whom, through both implementations of the Nvml seam."""

import threading
import time

import pynvml
import pytest

from exporter.measure.event_counts import EventCounts
from exporter.nvml.enumeration import Enumeration
from exporter.nvml.event_log import EventLog
from exporter.nvml.listener import WAIT_SECONDS, Listener
from exporter.nvml.protocol import EventKind
from simulator import scenario
from slicewatch.catalog.readings.errors import Recovery
from slicewatch.service.backoff import Backoff

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB}
      - {model: H100-80GB, mig: [1g.10gb, 1g.10gb]}
"""
WHOLE, PARTITIONED = 0, 1
DEADLINE_SECONDS = 20


class Post:
    """A listener, what it reported, and where its events go."""

    def __init__(self, world):
        self.world = world
        self.said = []
        self.log = EventLog()
        self.dropped = 0
        self.counts = EventCounts(self.log, self.drop)
        self.listener = Listener(
            world.nvml,
            self.log,
            report=self.said.append,
            pause=lambda: Backoff(first_seconds=0.02, most_seconds=0.05),
        )

    def drop(self, number):
        self.dropped += number

    def begin(self):
        slots = Enumeration(self.world.nvml).slots()
        gpus = tuple(slot.gpu.value for slot in slots)

        def listens():
            self.listener.begin(gpus)
            return self.said[-1:] == [""]

        self.until(listens)

    def stop(self):
        self.listener.stop()
        self.listener.join()

    def numbers(self):
        return [happened.event.data for happened in self.log.after(0).events]

    def until(self, condition):
        deadline = time.monotonic() + DEADLINE_SECONDS
        waiting = threading.Event()
        while not condition():
            assert time.monotonic() < deadline, (self.said, self.numbers())
            waiting.wait(0.005)


@pytest.fixture
def post(world):
    made = Post(world)
    yield made
    world.clear()
    made.stop()


def inject(world, *xids, gpu=WHOLE):
    for xid in xids:
        world.inject(scenario.Xid(node="n", gpu=gpu, xid=xid))


def test_a_source_says_which_gpus_report_what(world):
    gpus = tuple(slot.gpu.value for slot in Enumeration(world.nvml).slots())
    source = world.nvml.events(gpus).value
    assert source.kinds == dict.fromkeys((gpu.uuid for gpu in gpus), frozenset(EventKind))
    source.close()
    world.inject(scenario.Lost(node="n", gpu=WHOLE))
    source = world.nvml.events(gpus).value
    assert set(source.kinds) == {gpus[PARTITIONED].uuid}
    source.close()


def test_what_happens_arrives_in_order_and_once(world, post):
    """DCGM #235: of Xids 62 and 45 within one cycle only the last was shown."""
    post.begin()
    inject(world, 62, 45)
    world.advance(1)
    post.until(lambda: len(post.numbers()) >= 2)
    assert post.numbers() == [62, 45]


def test_an_xid_is_counted_on_the_instance_that_had_it(world, post):
    post.begin()
    session = world.session(PARTITIONED)
    rows = session.devices().value
    second = rows[2].gpu_instance
    fault = scenario.Xid(
        node="n", gpu=PARTITIONED, xid=43, gpu_instance=second, compute_instance=0
    )
    world.inject(fault)
    inject(world, 79, gpu=PARTITIONED)
    post.until(lambda: len(post.numbers()) == 2)
    columns = post.counts.columns(rows)
    assert columns["gpu_xid_events_total"] == [1, 0, 1]
    assert columns['gpu_xid_errors_total{xid="43"}'] == [None, None, 1]


def test_the_counts_are_zero_as_soon_as_somebody_listens(world, post):
    """dcgm-exporter #700: the series was missing until the first error."""
    rows = world.session(WHOLE).devices().value
    assert post.counts.columns(rows)["gpu_xid_events_total"] == [None]
    post.begin()
    assert post.counts.columns(rows)["gpu_xid_events_total"] == [0]


def test_a_change_of_the_recovery_action_is_told_and_counted_nowhere(world, post):
    post.begin()
    wanted = scenario.RecoveryNeeded(node="n", gpu=WHOLE, action=Recovery.GPU_RESET)
    injection = world.inject(wanted)
    post.until(lambda: len(post.numbers()) == 1)
    world.advance(1)
    world.clear(injection)
    post.until(lambda: len(post.numbers()) == 2)
    events = [happened.event for happened in post.log.after(0).events]
    assert [(e.kind, e.data) for e in events] == [
        (EventKind.RECOVERY_ACTION, 1),
        (EventKind.RECOVERY_ACTION, 0),
    ]
    columns = post.counts.columns(world.session(WHOLE).devices().value)
    assert columns["gpu_xid_events_total"] == [0]
    assert columns['gpu_ecc_events_total{kind="uncorrected"}'] == [0]
    assert post.dropped == 0


@pytest.mark.parametrize("world", ["real"], indirect=True)
def test_a_driver_without_recovery_events_is_listened_to_for_the_others(world, post):
    world.alter(WHOLE, lambda state: setattr(state, "event_types", 0xB))
    post.begin()
    assert EventKind.RECOVERY_ACTION not in post.log.kinds[world.node.gpus[WHOLE].uuid]
    inject(world, 31)
    post.until(lambda: post.numbers() == [31])


def test_a_stop_lets_go_of_nvml_within_one_wait(world, post):
    post.begin()
    began = time.monotonic()
    post.listener.stop()
    post.until(post.listener.stop)
    assert time.monotonic() - began < WAIT_SECONDS + 1
    assert post.said == ["", "stopped"]
    world.nvml.stop()
    world.nvml.start()


def test_after_a_stop_it_listens_anew_and_numbers_go_on(world, post):
    post.begin()
    inject(world, 13)
    post.until(lambda: post.numbers() == [13])
    post.stop()
    world.nvml.stop()
    inject(world, 48)
    world.nvml.start()
    post.begin()
    inject(world, 31)
    post.until(lambda: 31 in post.numbers())
    assert post.numbers() == [13, 31]
    assert post.said == ["", "stopped", ""]


def test_a_driver_that_goes_away_is_said_and_a_new_start_listens_again(world, post):
    post.begin()
    injection = world.inject(scenario.DriverGone(node="n"))
    post.until(lambda: post.said[-1] == "driver_not_loaded")
    world.advance(2)
    world.clear(injection)
    post.stop()
    world.nvml.stop()
    world.nvml.start()
    post.begin()
    inject(world, 31)
    post.until(lambda: post.numbers() == [31])


def test_without_gpus_nobody_listens_and_the_reason_is_said(post):
    post.listener.begin(())
    assert post.said == ["no_gpus"]
    assert post.listener.stop()


def test_to_begin_again_changes_nothing_unless_the_gpus_did(world, post):
    post.begin()
    for _ in range(3):
        post.begin()
    assert post.said == [""]
    slots = Enumeration(world.nvml).slots()

    def other():
        post.listener.begin((slots[WHOLE].gpu.value,))
        return post.said == ["", "stopped", ""]

    post.until(other)
    assert [thread.name for thread in threading.enumerate()].count("nvml-events") == 1


@pytest.mark.parametrize("world", ["real"], indirect=True)
def test_a_wait_that_fails_is_followed_by_a_new_set_of_events(world, post):
    """NVML leaves a set undefined after a failure; a listener that kept it would be deaf."""
    post.begin()
    world.feed.file.fail_events(pynvml.NVML_ERROR_UNKNOWN)
    post.until(lambda: post.said[-1] == "unknown")
    world.feed.file.fail_events(0)
    post.until(lambda: post.said[-1] == "")
    inject(world, 31)
    post.until(lambda: post.numbers() == [31])


@pytest.mark.parametrize("world", ["real"], indirect=True)
def test_where_no_gpu_reports_events_that_is_the_reason(world, post):
    for gpu in (WHOLE, PARTITIONED):
        world.alter(gpu, lambda state: setattr(state, "event_types", 0))
    slots = Enumeration(world.nvml).slots()
    post.listener.begin(tuple(slot.gpu.value for slot in slots))
    post.until(lambda: post.said == ["device"])


@pytest.mark.parametrize("world", ["real"], indirect=True)
def test_a_gpu_without_memory_events_has_no_zeros_for_them(world, post):
    world.alter(WHOLE, lambda state: setattr(state, "event_types", 8))
    post.begin()
    columns = post.counts.columns(world.session(WHOLE).devices().value)
    assert columns == {"gpu_xid_events_total": [0]}
