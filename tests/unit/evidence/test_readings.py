"""The last answers of a GPU: kept whatever they are, with their ages."""

import pytest

from exporter.evidence.readings import INCONSISTENT, Readings
from exporter.nvml.plan import Plan
from exporter.nvml.protocol import Failed, Lost, Unsupported, Value
from exporter.nvml.reader import Cycle
from slicewatch.catalog.errors import RECOVERY
from slicewatch.catalog.power import POWER, TEMPERATURE
from slicewatch.catalog.readings.errors import RecoveryAction
from slicewatch.catalog.readings.power import Power, Temperature
from slicewatch.wire import evidence as wire
from slicewatch.wire.layout import Device

GPU = Device(uuid="GPU-0", gpu=0, model="NVIDIA H100")
PLAN = Plan.of(())


def cycle(at, outcomes=(), devices=None, plan=PLAN):
    """Return a pass that read these probes, and nothing else."""
    given = dict(outcomes)
    return Cycle(
        gpu=GPU,
        plan=plan,
        devices=Value((GPU,)) if devices is None else devices,
        readings=(tuple(given.get(probe) for probe in plan.gpu.probes),),
        at=at,
        spent={},
    )


@pytest.fixture
def readings():
    made = Readings()
    made.begin(["GPU-0"], 50.0)
    return made


def told(readings, now):
    return readings.of("GPU-0").on_wire(now)


def test_each_answer_is_told_as_what_it_was(readings):
    answers = {
        POWER: Failed("UNKNOWN"),
        TEMPERATURE: Value(Temperature(44)),
        RECOVERY: Unsupported("driver"),
    }
    readings.take([cycle(100.0, answers)])
    found = told(readings, 103.5)
    assert found["power"] == wire.Failed(error="UNKNOWN", age_seconds=3.5)
    assert found["recovery_action"] == wire.Unsupported(reason="driver")
    assert wire.read_as(TEMPERATURE, found["temperature"]) == Temperature(44)
    assert found["temperature"].age_seconds == 3.5
    assert found.keys() == {"power", "recovery_action", "temperature"}


def test_what_was_not_due_keeps_its_answer_and_grows_older(readings):
    readings.take([cycle(100.0, {POWER: Value(Power(1)), TEMPERATURE: Value(Temperature(44))})])
    readings.take([cycle(101.0, {POWER: Value(Power(2))})])
    found = told(readings, 101.0)
    assert (found["power"].age_seconds, found["temperature"].age_seconds) == (0.0, 1.0)
    assert wire.read_as(POWER, found["power"]) == Power(2)


@pytest.mark.parametrize(
    ("refusal", "answer"),
    [
        (Lost("gpu_is_lost"), wire.Lost(reason="gpu_is_lost", age_seconds=2.0)),
        (Failed("UNKNOWN"), wire.Failed(error="UNKNOWN", age_seconds=2.0)),
    ],
)
def test_a_gpu_that_refuses_everything_has_no_value_left(readings, refusal, answer):
    """A temperature of a GPU that has fallen off the bus is none."""
    readings.take([cycle(100.0, {TEMPERATURE: Value(Temperature(44))})])
    readings.take([cycle(101.0, devices=refusal)])
    assert told(readings, 103.0) == {"temperature": answer}


def test_after_one_failed_pass_what_is_read_rarely_is_there_again(readings):
    readings.take([cycle(100.0, {TEMPERATURE: Value(Temperature(44))})])
    readings.take([cycle(101.0, devices=Failed("UNKNOWN"))])
    readings.take([cycle(102.0)])
    assert told(readings, 102.0)["temperature"].age_seconds == 2.0


def test_a_success_that_cannot_be_one_is_a_failure(readings):
    readings.take([cycle(100.0, {RECOVERY: Value(RecoveryAction(2**32 - 1))})])
    assert told(readings, 100.0)["recovery_action"] == wire.Failed(
        error=INCONSISTENT, age_seconds=0.0
    )


def test_a_new_start_of_nvml_begins_with_nothing_but_remembers_who_was_silent(readings):
    readings.take([cycle(100.0, {TEMPERATURE: Value(Temperature(44))})])
    readings.begin(["GPU-1"], 200.0)
    assert told(readings, 200.0) == {}
    assert readings.of("GPU-0").answered_at == 100.0
    assert readings.of("GPU-1").answered_at == 200.0


def test_with_another_plan_everything_is_told_anew(readings):
    readings.take([cycle(100.0, {TEMPERATURE: Value(Temperature(44))})])
    readings.take([cycle(101.0, {POWER: Value(Power(2))}, plan=Plan.of(()))])
    assert told(readings, 101.0).keys() == {"power"}
