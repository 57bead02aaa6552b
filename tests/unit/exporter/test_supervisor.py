"""Start, new start, hang and end of a driver, with real threads and deadlines instead of sleeps."""

import asyncio

import pytest

from exporter.nvml import supervisor as supervision
from exporter.nvml.enumeration import Enumeration
from exporter.nvml.life import COUNT_SECONDS
from exporter.nvml.protocol import DriverUnavailableError, Failed, Lost, Slot, Value
from exporter.nvml.restarts import FIRST_PAUSE_FOR_LOST_SECONDS
from exporter.nvml.supervisor import HANG_SECONDS
from tests.unit.exporter.desk import until
from tests.unit.exporter.office import NO_DRIVER, PATIENCE, driver_threads


async def test_the_first_pass_starts_the_driver_and_reads_every_gpu(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1)))
    assert office.supervisor.down_reason == "starting"
    assert set(await office.pass_all()) == {"GPU-0", "GPU-1"}
    assert office.began == [("580.95.05", 2)]
    assert office.supervisor.down_reason == ""
    assert set(await office.pass_all()) == {"GPU-0", "GPU-1"}
    assert office.desk.starts == 1


async def test_every_gpu_of_a_large_node_is_read_in_every_pass(offices, desk, gpu):
    """dcgm-exporter #250: on a node with eight GPUs some were missing."""
    office = offices(desk(*map(gpu, range(8))))
    for _ in range(20):
        assert set(await office.pass_all()) == {f"GPU-{index}" for index in range(8)}


async def test_a_driver_that_takes_long_to_start_holds_up_nobody(offices, desk, gpu):
    office = offices(desk(gpu()))
    gate = office.desk.hang("start")
    for _ in range(3):
        assert await office.pass_all(0.01) == {}
        assert office.supervisor.down_reason == "starting"
    gate.set()
    assert set(await office.pass_all()) == {"GPU-0"}


async def test_a_gpu_that_hangs_before_it_is_known_costs_itself_alone(
    offices, desk, gpu, monkeypatch
):
    monkeypatch.setattr(Enumeration.slots, "__defaults__", (0.1,))
    office = offices(desk(gpu(0), gpu(1), gpu(2)))
    gate = office.desk.hang("identity 1")
    assert set(await office.pass_all()) == {"GPU-0", "GPU-2"}
    assert office.began == [("580.95.05", 3)]
    # However long it hangs, NVML is not torn from under the thread that waits for it.
    for _ in range(40):
        assert set(await office.pass_all()) == {"GPU-0", "GPU-2"}
    assert office.desk.starts == 1
    gate.set()
    await until(lambda: not office.supervisor._life.is_identifying)
    assert set(await office.pass_all()) == {"GPU-0", "GPU-1", "GPU-2"}
    assert office.desk.starts == 2


async def test_a_driver_that_is_absent_is_tried_again_after_growing_pauses(offices, desk, gpu):
    office = offices(desk(gpu()))
    office.desk.refusal = NO_DRIVER
    tries, seconds = [], 0
    while len(tries) < 5:
        before = len(office.ended)
        assert await office.pass_all() == {}
        if len(office.ended) > before:
            tries.append(seconds)
        seconds += 1
    assert tries == [0, 1, 3, 7, 15]
    assert set(office.ended) == {"no_driver"}
    assert office.supervisor.down_reason == "no_driver"


async def test_a_driver_that_comes_later_is_found(offices, desk, gpu):
    office = offices(desk(gpu()))
    office.desk.refusal = NO_DRIVER
    await office.pass_all()
    office.desk.refusal = None
    assert set(await office.pass_all()) == {"GPU-0"}
    assert office.supervisor.down_reason == ""


async def test_a_driver_that_goes_is_started_anew_when_it_is_back(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1)))
    await office.pass_all()
    gone = Failed("DRIVER_NOT_LOADED", reinitialise=True)
    office.desk.found = {"GPU-0": gone, "GPU-1": gone}
    office.desk.refusal = NO_DRIVER
    assert set((await office.pass_all()).values()) == {gone}
    await office.pass_all()
    assert office.ended == ["no_driver"]
    assert office.supervisor._readers == ()
    office.desk.found, office.desk.refusal = {}, None
    for _ in range(3):
        found = await office.pass_all()
    assert set(found) == {"GPU-0", "GPU-1"}
    assert (office.desk.starts, office.desk.stops) == (2, 1)


async def test_an_enumeration_that_fails_leaves_nvml_stopped(offices, desk, gpu):
    """NVML counts its starts: one too many, and no later stop would do anything."""
    office = offices(desk(gpu()))
    office.desk.gone = DriverUnavailableError("version_mismatch", "half replaced")
    await office.pass_all()
    assert office.ended == ["version_mismatch"]
    assert office.desk.starts == office.desk.stops == 1


async def test_a_lost_gpu_has_nvml_started_anew_after_ten_seconds(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1)))
    await office.pass_all()
    office.desk.found["GPU-0"] = Lost("gpu_is_lost")
    seen = [await office.pass_all() for _ in range(12)]
    assert office.desk.starts == 2
    # The others are read in every tick all the same.
    assert all(isinstance(found["GPU-1"], Value) for found in seen)


async def test_a_gpu_that_fails_once_has_nothing_started_anew(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1)))
    await office.pass_all()
    for outcome in (Failed("UNKNOWN"), Lost("gpu_is_lost")):
        office.desk.found["GPU-0"] = outcome
        await office.pass_all()
        office.desk.found = {}
        for _ in range(20):
            await office.pass_all()
    assert office.desk.starts == 1


async def test_a_gpu_that_keeps_failing_has_nvml_started_anew(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1)))
    await office.pass_all()
    office.desk.found["GPU-0"] = Failed("UNKNOWN")
    for _ in range(12):
        await office.pass_all()
    assert office.desk.starts == 2


async def test_a_gpu_that_cannot_be_identified_is_asked_for_again(offices, desk, gpu):
    office = offices(desk(gpu(0)))
    office.desk.slots += (Slot(index=1, gpu=Lost("gpu_is_lost")),)
    assert set(await office.pass_all()) == {"GPU-0"}
    office.desk.slots = (office.desk.slots[0], Slot(index=1, gpu=Value(gpu(1))))
    for _ in range(11):
        found = await office.pass_all()
    assert set(found) == {"GPU-0", "GPU-1"}


async def test_a_node_without_gpus_is_asked_again(offices, desk, gpu):
    office = offices(desk())
    assert await office.pass_all() == {}
    assert office.supervisor.down_reason == ""
    office.desk.slots = (Slot(index=0, gpu=Value(gpu(0))),)
    for _ in range(11):
        found = await office.pass_all()
    assert set(found) == {"GPU-0"}


async def test_a_gpu_that_is_plugged_in_is_found_without_anything_failing(offices, desk, gpu):
    office = offices(desk(gpu(0)))
    await office.pass_all()
    office.desk.slots += (Slot(index=1, gpu=Value(gpu(1))),)
    ticks = int(COUNT_SECONDS + FIRST_PAUSE_FOR_LOST_SECONDS) + 3
    seen = [set(await office.pass_all()) for _ in range(ticks)]
    assert all("GPU-0" in found for found in seen)
    assert seen[-1] == {"GPU-0", "GPU-1"}
    assert (office.desk.starts, office.desk.stops) == (2, 1)


async def test_a_driver_that_answers_nothing_for_three_passes_is_read_again(offices, desk, gpu):
    """nvidia_gpu_exporter #65: it never recovered from its first failure."""
    office = offices(desk(gpu(0), gpu(1)))
    await office.pass_all()
    gone = Failed("UNINITIALIZED", reinitialise=True)
    office.desk.found = {"GPU-0": gone, "GPU-1": gone}
    for _ in range(3):
        await office.pass_all()
    office.desk.found = {}
    for _ in range(4):
        found = await office.pass_all()
    assert found == {"GPU-0": Value((gpu(0),)), "GPU-1": Value((gpu(1),))}
    assert office.supervisor.down_reason == ""


async def test_a_new_start_that_hangs_holds_up_nobody_and_is_taken_when_it_is_over(
    offices, desk, gpu
):
    """It hung the whole process (go-nvml #152, dra-driver-nvidia-gpu #773)."""
    office = offices(desk(gpu(0), gpu(1)))
    await office.pass_all()
    office.desk.found = {"GPU-0": Failed("UNINITIALIZED", reinitialise=True)}
    await office.pass_all()
    gate = office.desk.hang("start")
    for _ in range(10):
        assert await office.pass_all(0.01) == {}
        assert office.supervisor.down_reason == "starting"
    office.desk.found = {}
    gate.set()
    assert set(await office.pass_all()) == {"GPU-0", "GPU-1"}
    assert (office.desk.starts, office.desk.stops) == (2, 1)


async def test_a_gpu_that_hangs_costs_itself_alone(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1), gpu(2)))
    await office.pass_all()
    gate = office.desk.hang("GPU-1")
    assert set(await office.pass_with_one_that_hangs()) == {"GPU-0", "GPU-2"}
    for _ in range(5):
        assert set(await office.pass_all()) == {"GPU-0", "GPU-2"}
    gate.set()
    async with asyncio.timeout(10):
        while "GPU-1" not in await office.pass_all():
            pass
    assert set(await office.pass_all()) == {"GPU-0", "GPU-1", "GPU-2"}


async def test_nvml_is_not_started_anew_while_a_gpu_hangs_and_the_others_go_on(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1), gpu(2)))
    await office.pass_all()
    gate = office.desk.hang("GPU-0")
    office.desk.found["GPU-1"] = Lost("gpu_is_lost")
    await office.pass_with_one_that_hangs()
    seen = [set(await office.pass_all()) for _ in range(30)]
    assert office.desk.starts == 1
    # When the new start falls due the hang is already known: nobody waits for it.
    assert all(found == {"GPU-1", "GPU-2"} for found in seen)
    gate.set()
    async with asyncio.timeout(10):
        while office.desk.starts == 1:
            await office.pass_all()
    assert office.desk.stops == 1


async def test_a_start_that_is_due_waits_for_one_that_is_merely_slow(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1)))
    await office.pass_all()
    office.desk.found["GPU-1"] = Failed("UNINITIALIZED", reinitialise=True)
    gate = office.desk.hang("GPU-0")
    await office.pass_with_one_that_hangs()
    (running,) = office.supervisor._relay.running().values()
    assert running < HANG_SECONDS
    assert await office.pass_all() == {}
    assert office.desk.starts == 1
    gate.set()
    async with asyncio.timeout(10):
        while office.desk.starts == 1:
            await office.pass_all()


async def test_passes_of_an_earlier_start_are_not_taken_for_those_of_a_new_one(offices, desk, gpu):
    office = offices(desk(gpu(0)))
    await office.pass_all()
    (old,), relay = office.supervisor._readers, office.supervisor._relay
    office.desk.found["GPU-0"] = Failed("UNINITIALIZED", reinitialise=True)
    await office.pass_all()
    office.desk.found = {}
    office.hand.now += 5
    await office.pass_all()
    (new,) = office.supervisor._readers
    assert new is not old
    relay.finished(old, ZeroDivisionError("from another life"))
    assert set(await office.pass_all()) == {"GPU-0"}


async def test_a_thousand_new_starts_leave_no_thread_behind(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1)))
    gone = Failed("UNINITIALIZED", reinitialise=True)
    while office.desk.starts < 1000:
        office.desk.found = {"GPU-0": gone}
        await office.pass_all()
        office.desk.found = {}
        office.hand.now += 100
        assert len(await office.pass_all()) == 2
    assert len(driver_threads()) <= 2
    assert office.desk.stops == office.desk.starts - 1


async def test_a_fault_of_ours_in_a_pass_ends_the_pass_with_its_error(offices, desk, gpu):
    """A thread that died in silence would look like a GPU that hangs for ever."""
    office = offices(desk(gpu()))
    await office.pass_all()
    office.desk.readings = None
    with pytest.raises(AttributeError, match="get"):
        await office.pass_all()


async def test_a_fault_of_ours_at_the_start_ends_the_pass_with_its_error(offices, desk, gpu):
    office = offices(desk(gpu()))
    office.desk.refusal = ZeroDivisionError("ours")
    with pytest.raises(ZeroDivisionError, match="ours"):
        await office.pass_all()


async def test_closing_stops_nvml_after_the_last_pass(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1)))
    await office.pass_all()
    await office.supervisor.close()
    assert office.desk.stops == 1
    await until(lambda: not driver_threads())


@pytest.mark.parametrize("place", ["start", "GPU-0", "stop"])
async def test_closing_does_not_wait_for_a_call_that_hangs(offices, desk, gpu, place, monkeypatch):
    """dcgm-exporter #606: a stop that hung until the process was killed."""
    monkeypatch.setattr(supervision, "CLOSE_SECONDS", 0.05)
    office = offices(desk(gpu(0), gpu(1)))
    if place == "start":
        office.desk.hang(place)
        await office.pass_all(0.01)
    else:
        await office.pass_all()
        office.desk.hang(place)
    if place == "GPU-0":
        await office.pass_with_one_that_hangs()
    async with asyncio.timeout(5):
        await office.supervisor.close()
    assert office.desk.stops == 0


async def test_closing_in_the_midst_of_a_pass_gives_no_further_turns(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1)))
    await office.pass_all()
    gate = office.desk.hang("GPU-0")
    reads = len(office.desk.reads)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(office.supervisor.pass_all(PATIENCE))
        await until(lambda: office.desk.inside)
        task.cancel()
    office.supervisor._relay.halt()
    gate.set()
    await office.supervisor.close()
    assert not any(uuid == "GPU-1" for uuid, _ in office.desk.reads[reads:])
    assert office.desk.stops == 1
