import asyncio
import contextlib
import math

import pytest
from structlog.testing import capture_logs

from exporter.tenants import polling
from exporter.tenants.polling import follow, refresh
from exporter.tenants.protocol import Allocation, DeadlineError, UnreachableError
from exporter.tenants.tenants import TenantMap
from slicewatch.service.backoff import Backoff
from slicewatch.wire.layout import Device

GPU = Device(uuid="GPU-a", gpu=0, model="H100")
HELD = Allocation(
    namespace="ml", pod="p", container="c", resource="nvidia.com/gpu", device_id="GPU-a"
)


class Script:
    """A source that plays back its outcomes and then repeats the last one."""

    def __init__(self, *outcomes):
        self.outcomes = outcomes
        self.asked = 0
        self.turn = asyncio.Condition()

    async def list(self):
        outcome = self.outcomes[min(self.asked, len(self.outcomes) - 1)]
        self.asked += 1
        async with self.turn:
            self.turn.notify_all()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def offers(self):
        return ()

    async def asked_times(self, number):
        async with asyncio.timeout(10), self.turn:
            await self.turn.wait_for(lambda: self.asked >= number)


class Recorded(Backoff):
    """A backoff that records its calls, and makes every pause a short one."""

    def __init__(self, told, **given):
        super().__init__(**given)
        self.told, self.row = told, 0

    def next_seconds(self):
        self.row += 1
        self.told.append(self.row)
        return min(super().next_seconds(), 0.001)

    def reset(self):
        super().reset()
        self.row = 0
        self.told.append("reset")


@contextlib.asynccontextmanager
async def following(source, tenants, interval_seconds):
    async with asyncio.TaskGroup() as group:
        task = group.create_task(follow(source, tenants, interval_seconds))
        yield task
        task.cancel()


async def test_an_answer_is_as_old_as_its_question():
    tenants = TenantMap()

    assert await refresh(Script((HELD,)), tenants, lambda: 40.0)

    assert tenants.age_seconds(41.0) == 1.0
    assert len(tenants.resolve((GPU,))) == 1


async def test_a_failure_leaves_the_last_answer_to_grow_old():
    tenants = TenantMap()
    source = Script((HELD,), DeadlineError("late"))
    await refresh(source, tenants, lambda: 10.0)
    version = tenants.version

    assert not await refresh(source, tenants, lambda: 15.0)

    assert tenants.known
    assert tenants.version == version
    assert tenants.age_seconds(15.0) == 5.0
    assert len(tenants.resolve((GPU,))) == 1


async def test_a_source_that_never_answered_stays_unknown():
    tenants = TenantMap()

    assert not await refresh(Script(UnreachableError("no socket")), tenants, lambda: 1.0)

    assert not tenants.known


async def test_an_outage_is_said_when_it_begins_and_when_it_ends():
    tenants = TenantMap()
    source = Script(DeadlineError("late"), DeadlineError("late"), (HELD,), (HELD,))
    with capture_logs() as said:
        answered = True
        for _ in range(4):
            answered = await refresh(source, tenants, lambda: 1.0, failing=not answered)

    assert [line["log_level"] for line in said] == ["warning", "debug", "info"]
    assert said[0]["error"] == "late"


async def test_a_fault_of_our_own_is_not_taken_for_one_of_the_kubelet():
    with pytest.raises(ZeroDivisionError):
        await refresh(Script(ZeroDivisionError()), TenantMap(), lambda: 1.0)


async def test_following_goes_on_at_its_pace_when_every_third_question_fails():
    # Failures that added up would have doubled the pause to its longest before the last question.
    source = Script(*[(HELD,), (HELD,), DeadlineError("late")] * 10)
    tenants = TenantMap()
    async with following(source, tenants, 0.001):
        await source.asked_times(2)
        assert tenants.known
        await source.asked_times(30)

    assert tenants.version == 1
    assert len(tenants.resolve((GPU,))) == 1


async def test_each_failure_in_a_row_makes_the_next_question_later(monkeypatch):
    pauses = []
    monkeypatch.setattr(polling, "Backoff", lambda **given: Recorded(pauses, **given))
    source = Script(DeadlineError("late"), DeadlineError("late"), (HELD,), DeadlineError("late"))
    async with following(source, TenantMap(), 0.001):
        await source.asked_times(6)

    assert pauses[:4] == [1, 2, "reset", 1]


async def test_devices_that_change_are_asked_about_before_the_interval_ends(monkeypatch):
    monkeypatch.setattr(polling, "SHORTEST_PAUSE_SECONDS", 0.01)
    source, tenants = Script((HELD,)), TenantMap()
    async with following(source, tenants, 3600):
        await source.asked_times(1)
        tenants.resolve((GPU,))
        await source.asked_times(2)


async def test_an_interval_without_a_change_ends_in_a_question(monkeypatch):
    monkeypatch.setattr(polling, "SHORTEST_PAUSE_SECONDS", 0.01)
    source, tenants = Script((HELD,)), TenantMap()
    async with following(source, tenants, 0.05):
        await source.asked_times(4)


async def test_following_ends_when_it_is_cancelled():
    async with following(Script((HELD,)), TenantMap(), 3600) as task:
        pass

    assert task.cancelled()


@pytest.mark.parametrize("interval", [0, -1, math.nan])
async def test_an_interval_that_is_no_time_is_refused(interval):
    with pytest.raises(ValueError, match="must be above 0 seconds"):
        await follow(Script(()), TenantMap(), interval)
