"""What a listener does when the driver, or our own code, does not behave."""

import threading

import pytest

from exporter.nvml.enumeration import Enumeration
from exporter.nvml.event_log import EventLog
from exporter.nvml.listener import Listener
from exporter.nvml.protocol import Failed, Value
from exporter.nvml.simulated import SimulatedNvml
from simulator.clock import ManualClock
from simulator.fleet import Fleet
from simulator.scenario import Xid
from slicewatch.service.backoff import Backoff

SCENARIO = "nodes: [{name: n, gpus: [{model: H100-80GB}]}]"
DEADLINE_SECONDS = 20


class Nvml(SimulatedNvml):
    """The simulated driver, whose attempts to listen go as it is told; then they work."""

    def __init__(self, node):
        super().__init__(node)
        self.script = []
        self.attempts = 0

    def events(self, gpus):
        self.attempts += 1
        if self.script:
            return self.script.pop(0)()
        return super().events(gpus)


class Pauses(Backoff):
    """Pauses of no length that are counted."""

    def __init__(self):
        super().__init__()
        self.in_a_row = []

    def next_seconds(self):
        super().next_seconds()
        self.in_a_row.append(self._failures)
        return 0.0


class HungSource:
    """A wait that returns when it is let go."""

    def __init__(self):
        self.kinds = {}
        self.entered, self.released = threading.Event(), threading.Event()

    def wait(self, _):
        self.entered.set()
        self.released.wait(DEADLINE_SECONDS)
        return Value(())

    def close(self):
        pass


@pytest.fixture
def fleet():
    return Fleet.load(SCENARIO, clock=ManualClock())


@pytest.fixture
def nvml(fleet):
    made = Nvml(fleet.nodes[0])
    made.start()
    yield made
    made.stop()


@pytest.fixture
def gpus(nvml):
    return tuple(slot.gpu.value for slot in Enumeration(nvml).slots())


class Said:
    """What was reported, and when it came to listening."""

    def __init__(self):
        self.reasons = []
        self.listens = threading.Event()

    def __call__(self, reason):
        self.reasons.append(reason)
        if not reason:
            self.listens.set()


@pytest.fixture
def said():
    return Said()


@pytest.fixture
def pauses():
    return Pauses()


@pytest.fixture
def log():
    return EventLog()


@pytest.fixture
def listener(nvml, log, said, pauses):
    made = Listener(nvml, log, report=said, pause=lambda: pauses)
    yield made
    made.stop()
    made.join()


def fail():
    return Failed("UNKNOWN")


def blunder():
    raise ZeroDivisionError


def test_each_failure_in_a_row_is_followed_by_a_longer_pause(nvml, gpus, listener, said, pauses):
    """A wait that fails at once took a whole CPU (HAMi #2321, k8s-device-plugin #1937)."""
    nvml.script = [fail] * 4
    listener.begin(gpus)
    assert said.listens.wait(DEADLINE_SECONDS)
    assert said.reasons == ["unknown", ""]
    assert pauses.in_a_row == [1, 2, 3, 4]


def test_a_fault_of_our_own_does_not_end_the_listening(nvml, gpus, listener, said):
    nvml.script = [blunder]
    listener.begin(gpus)
    assert said.listens.wait(DEADLINE_SECONDS)
    assert said.reasons == ["fault", ""]


def test_what_happened_before_a_stop_is_taken_along(fleet, gpus, listener, said, log):
    listener.begin(gpus)
    assert said.listens.wait(DEADLINE_SECONDS)
    fleet.inject(Xid(node="n", gpu=0, xid=31))
    fleet.advance_to(fleet.now + 1)
    listener.stop()
    listener.join()
    assert [happened.event.data for happened in log.after(0).events] == [31]


def test_while_a_wait_hangs_a_stop_says_so_and_waits_for_nothing(nvml, gpus, listener):
    source = HungSource()
    nvml.script = [lambda: Value(source)]
    listener.begin(gpus)
    assert source.entered.wait(DEADLINE_SECONDS)
    assert [listener.stop() for _ in range(3)] == [False] * 3
    source.released.set()
    listener.join()
    assert listener.stop()
    assert nvml.attempts == 1


def test_a_listener_that_never_began_has_nothing_to_let_go(listener):
    assert listener.stop()
    listener.join()
