"""One pass over a GPU: what is asked, what is not asked again, what a pass says when it fails."""

from dataclasses import replace

import pytest

from exporter.nvml.plan import Plan, ScopePlan
from exporter.nvml.protocol import Failed, Lost, Unsupported, Value
from exporter.nvml.reader import ASK_AGAIN_SECONDS, Reader
from slicewatch.catalog.memory import MEMORY
from slicewatch.catalog.power import POWER
from tests.unit.exporter.desk import PLAN

PROBES = [probe.name for probe in PLAN.gpu.probes]


class Session:
    """Answers from a table, and moves the clock as it is told."""

    mig_change_pending = False

    def __init__(self, devices, answer):
        self.answers = {"devices": Value(devices)}
        self.answer = answer
        self.asked = []

    def devices(self):
        self.asked.append("devices")
        return self.answers["devices"]

    def read(self, probe, device):
        self.asked.append((device.uuid, probe.name))
        return self.answer(probe, device)

    def close(self):
        self.asked.append("close")


@pytest.fixture
def make(gpu, hand, readings):
    def make(devices=None, answer=lambda probe, _: Value(readings[probe.name]), plan=PLAN):
        session = Session(devices or (gpu(),), answer)
        return session, Reader(session.answers["devices"].value[0], lambda _: session, plan, hand)

    return make


def test_a_pass_resolves_the_devices_first_and_then_reads_the_plan_of_each(make, gpu, mig):
    whole = gpu(mig_enabled=True)
    one = mig(whole, 0)
    session, reader = make((whole, one))
    cycle = reader.attempt()
    assert session.asked == [
        "devices", *((whole.uuid, name) for name in PROBES),
        *((one.uuid, probe.name) for probe in PLAN.mig.probes),
    ]  # fmt: skip
    assert cycle.devices == Value((whole, one))
    assert [len(outcomes) for outcomes in cycle.readings] == [len(PROBES), len(PLAN.mig.probes)]
    assert cycle.failed == frozenset()


def test_time_is_counted_by_probe_over_all_devices(make, gpu, mig, hand, readings):
    def answer(probe, _):
        hand.now += 0.002
        return Value(readings[probe.name])

    whole = gpu(mig_enabled=True)
    _, reader = make((whole, mig(whole, 0), mig(whole, 1)), answer)
    began = hand.now
    cycle = reader.attempt()
    assert cycle.spent["memory"] == pytest.approx(0.006)
    assert cycle.spent["power"] == pytest.approx(0.002)
    assert cycle.spent["devices"] == 0
    assert cycle.at == hand.now > began


def test_the_call_that_a_pass_is_in_is_told(make, readings):
    seen = []

    def answer(probe, _):
        seen.append(reader.call)
        return Value(readings[probe.name])

    _, reader = make(answer=answer)
    assert reader.call == ""
    reader.attempt()
    assert seen == list(PROBES)
    assert reader.call == ""


def test_no_call_is_told_after_a_fault_of_ours_ends_the_pass(make):
    def answer(probe, device):
        raise ZeroDivisionError

    _, reader = make(answer=answer)
    assert isinstance(reader.attempt(), ZeroDivisionError)
    assert reader.call == ""


def test_what_is_unsupported_is_not_asked_again_for_a_while_but_said_each_time(
    make, hand, readings
):
    no = Unsupported("permission")
    session, reader = make(
        answer=lambda p, _: no if p.name == "energy" else Value(readings[p.name])
    )
    column = PROBES.index("energy")
    for _ in range(3):
        assert reader.attempt().readings[0][column] is no
    assert session.asked.count(("GPU-0", "energy")) == 1
    assert session.asked.count(("GPU-0", "power")) == 3
    hand.now += ASK_AGAIN_SECONDS
    reader.attempt()
    assert session.asked.count(("GPU-0", "energy")) == 2


def test_a_device_that_changed_is_asked_for_everything(make, gpu, readings):
    """MIG was switched off: utilization is there again, and nobody waits five minutes for it."""
    partitioned, plain = gpu(mig_enabled=True), gpu()

    def answer(probe, device):
        refused = device.mig_enabled and probe.name == "utilization"
        return Unsupported("mig_enabled") if refused else Value(readings[probe.name])

    session, reader = make((partitioned,), answer)
    column = PROBES.index("utilization")
    assert reader.attempt().readings[0][column] == Unsupported("mig_enabled")
    session.answers["devices"] = Value((plain,))
    assert isinstance(reader.attempt().readings[0][column], Value)


def test_a_mig_device_with_the_same_uuid_and_another_profile_is_asked_for_everything(
    make, gpu, mig
):
    whole = gpu(mig_enabled=True)
    small, large = mig(whole, 0), mig(whole, 0, profile="3g.40gb")
    session, reader = make((whole, small), lambda *_: Unsupported("device"))
    reader.attempt()
    session.answers["devices"] = Value((whole, large))
    reader.attempt()
    assert session.asked.count((small.uuid, "memory")) == 2


@pytest.mark.parametrize("outcome", [Lost("gpu_is_lost"), Failed("UNKNOWN"), Failed("X", True)])
def test_a_gpu_that_cannot_be_resolved_is_not_read(make, outcome):
    session, reader = make()
    session.answers["devices"] = outcome
    cycle = reader.attempt()
    assert cycle.devices == outcome
    assert cycle.readings == ()
    assert session.asked == ["devices"]


def test_a_gpu_that_is_lost_half_way_is_lost_as_a_whole(make, readings):
    def answer(probe, _):
        return Lost("gpu_is_lost") if probe.name == "power" else Value(readings[probe.name])

    session, reader = make(answer=answer)
    assert reader.attempt().devices == Lost("gpu_is_lost")
    assert session.asked[-1] == ("GPU-0", "power")


def test_a_read_that_fails_costs_its_own_metrics_only(make, readings):
    def answer(probe, _):
        return Failed("UNKNOWN") if probe.name == "power" else Value(readings[probe.name])

    _, reader = make(answer=answer)
    cycle = reader.attempt()
    assert cycle.failed == {"power"}
    values = [name for name, o in zip(PROBES, cycle.readings[0], strict=True) if type(o) is Value]
    assert values == [name for name in PROBES if name != "power"]


def test_a_probe_with_a_pace_of_its_own_is_read_at_that_pace(make, gpu, mig, hand):
    """Also on MIG devices, and at once on one that has just come."""
    slow = replace(MEMORY, interval_seconds=10)
    plan = Plan(
        gpu=ScopePlan(probes=(POWER, slow), metrics=((), ())),
        mig=ScopePlan(probes=(slow,), metrics=((),)),
    )
    whole = gpu(mig_enabled=True)
    first, second = mig(whole, 0), mig(whole, 1)
    session, reader = make((whole, first), plan=plan)
    for _ in range(10):
        reader.attempt()
        hand.now += 1
    assert session.asked.count((whole.uuid, "power")) == 10
    assert session.asked.count((whole.uuid, "memory")) == 1
    assert session.asked.count((first.uuid, "memory")) == 1
    session.answers["devices"] = Value((whole, first, second))
    hand.now -= 0.5
    cycle = reader.attempt()
    assert cycle.readings[1] == (None,)
    assert isinstance(cycle.readings[2][0], Value)
    hand.now += 0.5
    assert isinstance(reader.attempt().readings[1][0], Value)
