"""The part of the contract that holds on any true GPU, read from the driver of this machine.

Run them alone (``pytest -m gpu``): a process that has loaded the test driver stays with it. They
are skipped, never failed, where there is no GPU: what continuous integration requires is the same
contract over the test driver.
"""

import threading

import pynvml
import pytest

from exporter.nvml.enumeration import Enumeration
from exporter.nvml.protocol import (
    DriverUnavailableError,
    Failed,
    Lost,
    Unsupported,
    Value,
)
from exporter.nvml.real import RealNvml
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Kind
from slicewatch.catalog.power import ENERGY, POWER
from slicewatch.catalog.utilization import UTILIZATION

pytestmark = pytest.mark.gpu

REASONS = {"mig_enabled", "mig_instance", "device", "driver", "permission", "shared_gpu_instance"}
NEW_SAMPLES_WITHIN_SECONDS = 5
SAMPLES_WANTED = 3


@pytest.fixture
def nvml():
    if pynvml.nvmlLib is not None and hasattr(pynvml.nvmlLib, "slicewatchReferences"):
        pytest.skip("the test driver is loaded in this process; run these tests alone")
    made = RealNvml()
    try:
        made.start()
    except DriverUnavailableError as error:
        pytest.skip(f"there is no NVIDIA driver: {error}")
    yield made
    made.stop()


@pytest.fixture
def sessions(nvml):
    slots = Enumeration(nvml).slots()
    found = [slot.gpu.value for slot in slots if isinstance(slot.gpu, Value)]
    if not found:
        pytest.skip(f"no GPU answers: {slots}")
    return [nvml.open(gpu) for gpu in found]


def resolved(session):
    outcome = session.devices()
    assert isinstance(outcome, Value), outcome
    return outcome.value


def test_each_gpu_has_an_identity_of_its_own(nvml):
    gpus = [slot.gpu.value for slot in Enumeration(nvml).slots() if isinstance(slot.gpu, Value)]
    assert len({gpu.uuid for gpu in gpus}) == len(gpus)
    for gpu in gpus:
        assert gpu.uuid.startswith("GPU-")
        assert gpu.model
        assert gpu.pci_bus_id.count(":") == 2


def test_resolving_twice_gives_equal_devices(sessions):
    for session in sessions:
        first = resolved(session)
        assert first == resolved(session)
        assert first[0].mig_enabled or len(first) == 1


def test_mig_devices_lie_on_their_gpu(sessions):
    for session in sessions:
        gpu, *instances = resolved(session)
        for instance in instances:
            assert instance.parent == gpu.uuid
            assert instance.gpu_instance is not None
            assert instance.sm_count


@pytest.mark.parametrize("probe", CATALOG.probes(), ids=lambda probe: probe.name)
def test_every_reading_is_true_or_has_a_reason(sessions, probe):
    for session in sessions:
        for device in resolved(session):
            outcome = session.read(probe, device)
            assert not isinstance(outcome, Failed | Lost), outcome
            if isinstance(outcome, Unsupported):
                assert outcome.reason in REASONS
                continue
            assert probe.consistent is None or probe.consistent(outcome.value)
            for metric in CATALOG:
                if metric.origin is probe and metric.kind is Kind.GAUGE:
                    value = metric.value(outcome.value)
                    assert value is None or metric.limits.hold(value)


def test_samples_come_once_and_in_order(sessions):
    for session in sessions:
        (device, *_) = resolved(session)
        outcome = session.read(UTILIZATION, device)
        if isinstance(outcome, Unsupported):
            continue
        seen = [at for at, _ in outcome.value.samples]
        wait = threading.Event()
        for _ in range(10 * NEW_SAMPLES_WITHIN_SECONDS):
            wait.wait(0.1)
            resolved(session)
            seen += [at for at, _ in session.read(UTILIZATION, device).value.samples]
            if len(seen) > SAMPLES_WANTED:
                break
        # A GPU that idles may not sample at all, but none of its samples comes twice.
        assert seen == sorted(set(seen))


def test_energy_does_not_fall_and_power_is_drawn(sessions):
    for session in sessions:
        (device, *_) = resolved(session)
        first, second = session.read(ENERGY, device), session.read(ENERGY, device)
        if isinstance(first, Value):
            assert second.value.used_millijoules >= first.value.used_millijoules
        power = session.read(POWER, device)
        assert not isinstance(power, Value) or power.value.draw_milliwatts > 0


def test_a_quiet_node_has_no_events(nvml):
    gpus = tuple(
        slot.gpu.value for slot in Enumeration(nvml).slots() if isinstance(slot.gpu, Value)
    )
    events = nvml.events(gpus)
    if isinstance(events, Unsupported):
        pytest.skip(f"events are not supported here: {events.reason}")
    assert events.value.wait(0.1) == Value(())
    events.value.close()


def test_a_new_start_finds_the_same_gpus(nvml):
    before = Enumeration(nvml).slots()
    nvml.stop()
    nvml.start()
    assert Enumeration(nvml).slots() == before
