"""The simulated NVML while something is wrong: lost, hung and spoilt GPUs, events, the driver."""

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning

import pytest

from exporter.nvml.enumeration import Enumeration
from exporter.nvml.protocol import (
    DriverUnavailableError,
    Event,
    EventKind,
    Failed,
    Lost,
    Value,
)
from exporter.nvml.simulated import SimulatedNvml
from simulator.fleet import Fleet
from simulator.scenario import Hang, Xid
from slicewatch.catalog.memory import MEMORY
from slicewatch.catalog.power import POWER, TEMPERATURE
from slicewatch.catalog.utilization import UTILIZATION

NODE = "gpu-faulty"
REINITIALISE = {"reinitialise": True}


@pytest.fixture
def fleet():
    return Fleet.named("faults")


@pytest.fixture
def nvml(fleet):
    nvml = SimulatedNvml(fleet.node(NODE))
    nvml.start()
    yield nvml
    nvml.stop()


@pytest.fixture
def pool():
    with ThreadPoolExecutor() as pool:
        yield pool


def opened(nvml, index):
    session = nvml.open(Enumeration(nvml).slots()[index].gpu.value)
    return session, session.devices().value[0]


def test_a_lost_gpu_is_lost_for_every_call_and_comes_back(nvml, fleet):
    session, gpu = opened(nvml, 0)
    fleet.advance_to(70)
    assert session.devices() == Lost("gpu_is_lost")
    assert session.read(POWER, gpu) == Lost("gpu_is_lost")
    assert Enumeration(nvml).slots()[0].gpu == Lost("gpu_is_lost")
    assert isinstance(Enumeration(nvml).slots()[1].gpu, Value)
    fleet.advance_to(95)
    assert isinstance(session.devices(), Value)


def test_a_gpu_that_needs_a_reset_says_so(nvml, fleet):
    session, _ = opened(nvml, 1)
    fleet.advance_to(125)
    assert session.devices() == Lost("reset_required")


def test_a_hang_blocks_until_it_is_over_and_costs_no_other_gpu(nvml, fleet, pool):
    (hung, gpu), (other, neighbour) = opened(nvml, 0), opened(nvml, 1)
    fleet.advance_to(185)
    call = pool.submit(hung.read, POWER, gpu)
    with pytest.raises(StillRunning):
        call.result(timeout=0.05)
    assert isinstance(other.read(POWER, neighbour), Value)
    fleet.advance_to(205)
    with pytest.raises(StillRunning):
        call.result(timeout=0.05)
    fleet.advance_to(210)
    assert isinstance(call.result(timeout=10), Value)


def test_a_hang_ends_when_it_is_cleared(nvml, fleet, pool):
    session, _ = opened(nvml, 2)
    fault = fleet.inject(Hang(node=NODE, gpu=2))
    call = pool.submit(session.devices)
    with pytest.raises(StillRunning):
        call.result(timeout=0.05)
    fleet.clear(fault)
    assert isinstance(call.result(timeout=10), Value)


@pytest.mark.parametrize("ending", ["close", "stop"])
def test_a_hang_ends_with_the_session_or_with_nvml(nvml, fleet, pool, ending):
    session, _ = opened(nvml, 2)
    fleet.inject(Hang(node=NODE, gpu=2))
    call = pool.submit(session.devices)
    with pytest.raises(StillRunning):
        call.result(timeout=0.05)
    session.close() if ending == "close" else nvml.stop()
    assert call.result(timeout=10) == Failed("UNINITIALIZED", **REINITIALISE)


def test_nonsense_comes_through_for_the_catalog_to_reject(nvml, fleet):
    session, gpu = opened(nvml, 0)
    fleet.advance_to(250)
    session.devices()
    assert session.read(TEMPERATURE, gpu).value.celsius == 4278190080
    assert not session.read(MEMORY, gpu).value.consistent()
    assert session.read(UTILIZATION, gpu).value.samples[-1][1] == 9223372036854775807


def test_events_of_the_gpus_that_are_listened_to_arrive_once(nvml, fleet):
    second, fourth = (Enumeration(nvml).slots()[index].gpu.value for index in (1, 3))
    source = nvml.events((second, fourth)).value
    assert source.wait(0) == Value(())
    fleet.advance_to(365)
    assert source.wait(0) == Value((
        Event(kind=EventKind.XID, gpu=second.uuid, data=79),
        Event(
            kind=EventKind.XID, gpu=fourth.uuid, data=94, gpu_instance=2, compute_instance=0
        ),
        Event(kind=EventKind.SINGLE_BIT_ECC, gpu=second.uuid, data=0),
    ))  # fmt: skip
    assert source.wait(0) == Value(())


def test_events_of_other_gpus_and_of_before_are_not_reported(nvml, fleet):
    fleet.advance_to(365)
    (first, *_) = Enumeration(nvml).slots()
    source = nvml.events((first.gpu.value,)).value
    fleet.advance_to(400)
    assert source.wait(0) == Value(())


def test_a_wait_returns_as_soon_as_something_happens(nvml, fleet, pool):
    third = Enumeration(nvml).slots()[2].gpu.value
    source = nvml.events((third,)).value
    call = pool.submit(source.wait, 30)
    with pytest.raises(StillRunning):
        call.result(timeout=0.05)
    fleet.inject(Xid(node=NODE, gpu=2, xid=48))
    assert call.result(timeout=10) == Value((
        Event(kind=EventKind.XID, gpu=third.uuid, data=48),
    ))  # fmt: skip


def test_a_wait_ends_with_its_source(nvml, pool):
    source = nvml.events((Enumeration(nvml).slots()[2].gpu.value,)).value
    call = pool.submit(source.wait, 30)
    with pytest.raises(StillRunning):
        call.result(timeout=0.05)
    source.close()
    assert call.result(timeout=10) == Failed("UNINITIALIZED", **REINITIALISE)


def test_nobody_can_listen_to_lost_gpus_alone(nvml, fleet):
    gpus = tuple(slot.gpu.value for slot in Enumeration(nvml).slots())
    fleet.advance_to(70)
    assert nvml.events(gpus[:1]) == Lost("gpu_is_lost")
    assert isinstance(nvml.events(gpus), Value)


def test_a_driver_that_is_gone_takes_everything_with_it(nvml, fleet):
    session, gpu = opened(nvml, 0)
    source = nvml.events((gpu,)).value
    fleet.advance_to(550)
    gone = Failed("DRIVER_NOT_LOADED", **REINITIALISE)
    assert session.devices() == session.read(POWER, gpu) == gone
    assert source.wait(0) == gone
    with pytest.raises(DriverUnavailableError) as caught:
        Enumeration(nvml).slots()
    assert caught.value.reason == "no_driver"
    nvml.stop()
    with pytest.raises(DriverUnavailableError) as caught:
        nvml.start()
    assert caught.value.reason == "no_driver"


def test_after_the_driver_is_back_only_a_new_start_helps(nvml, fleet):
    session, _ = opened(nvml, 0)
    fleet.advance_to(575)
    assert session.devices() == Failed("DRIVER_NOT_LOADED", **REINITIALISE)
    nvml.stop()
    nvml.start()
    assert isinstance(opened(nvml, 0)[0].devices(), Value)


def test_a_replaced_driver_mismatches_until_the_library_is_replaced_too(nvml, fleet):
    session, _ = opened(nvml, 0)
    fleet.advance_to(575)
    nvml.stop()
    nvml.start()
    session, _ = opened(nvml, 0)
    fleet.advance_to(610)
    assert session.devices() == Failed("LIB_RM_VERSION_MISMATCH", **REINITIALISE)
    with pytest.raises(DriverUnavailableError) as caught:
        Enumeration(nvml).slots()
    assert caught.value.reason == "version_mismatch"
    nvml.stop()
    with pytest.raises(DriverUnavailableError) as caught:
        nvml.start()
    assert caught.value.reason == "version_mismatch"
    fleet.advance_to(630)
    assert nvml.start().driver == "590.48.01"


def test_a_gpu_can_be_partitioned_anew_under_a_session(nvml, fleet):
    session, gpu = opened(nvml, 3)
    before = session.devices().value[1:]
    fleet.advance_to(425)
    after = session.devices().value[1:]
    assert [d.profile for d in before] == ["3g.40gb", "1g.10gb"]
    assert [d.profile for d in after] == ["4g.40gb", "1g.10gb"]
    fleet.advance_to(485)
    (whole,) = session.devices().value
    assert (whole.uuid, whole.mig_enabled) == (gpu.uuid, False)
    assert isinstance(session.read(UTILIZATION, whole), Value)
