"""Events: counted, bounded, and never more than the API server should bear."""

from dataclasses import dataclass, field

import pytest

from health.actions.events import Events, of_node, of_pod
from health.actions.series import (
    APART_SECONDS,
    MOST_PER_MINUTE,
    MOST_SERIES,
    Backlog,
    Severity,
    Topic,
    bounded,
)
from health.case import Since
from health.checks.model import Action, CheckId
from health.decision import Change, Fault
from slicewatch.kube import errors
from slicewatch.kube.events import EVENT, Event, Involved
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.nodes import WHOLE_NODE, WholeNode
from slicewatch.kube.objects import Selection
from slicewatch.wire.evidence import Holder

WALL = 1_800_000_000.0


class CountingKube(FakeKube):
    def __init__(self) -> None:
        super().__init__()
        self.writes = 0

    async def create(self, kind, body, namespace=""):
        self.writes += 1
        return await super().create(kind, body, namespace)

    async def patch(self, kind, name, patch, **options):
        self.writes += 1
        return await super().patch(kind, name, patch, **options)


@dataclass
class Desk:
    kube: CountingKube = field(default_factory=CountingKube)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.events = Events(self.kube, "a")

    def say(self, reason: str = "GPULost", message: str = "m", *, gpu: str = "GPU-1") -> None:
        node = Involved(kind="Node", name="a", uid="uid-a")
        self.events.say(node, reason, message, gpu=gpu, now=self.now, wall=WALL + self.now)

    async def written(self) -> list[Event]:
        await self.events.flush(self.now)
        return list((await self.kube.list(EVENT, Selection(), limit=10_000)).objects)


@pytest.fixture
async def desk() -> Desk:
    return Desk()


def fault(gpu: str = "GPU-1", reason: str = "GPULost") -> Fault:
    since = Since(boot_id="b", driver_run="r/1", at_seconds=WALL)
    return Fault(
        check=CheckId("gpu_lost"),
        reason=reason,
        message="does not answer",
        action=Action.CORDON,
        since=since,
        gpu=gpu,
        index=3,
    )


async def node(desk: Desk) -> WholeNode:
    return await desk.kube.create(WHOLE_NODE, {"metadata": {"name": "a", "uid": "uid-a"}})


async def test_a_fault_is_told_to_the_node_and_to_whoever_holds_the_gpu(desk: Desk) -> None:
    holders = (Holder(namespace="ml", pod="train", uid="p1"), Holder(namespace="x", pod="y"))
    change = Change(fault=fault(), raised=True, holders=holders)
    desk.events.say_changes(await node(desk), [change], now=0.0, wall=WALL)
    found = {(e.involved_object.kind, e.metadata.namespace): e for e in await desk.written()}
    assert set(found) == {("Node", "default"), ("Pod", "ml"), ("Pod", "x")}
    told = found["Node", "default"]
    assert told.involved_object == of_node(await desk.kube.get(WHOLE_NODE, "a"))
    assert (told.type, told.reason, told.count) == ("Warning", "GPULost", 1)
    assert told.message == "GPU 3 (GPU-1) of node a: does not answer"
    assert found["Pod", "ml"].involved_object == of_pod(holders[0])


async def test_that_a_fault_is_over_is_an_event_of_its_own(desk: Desk) -> None:
    told = await node(desk)
    for raised in (True, False):
        desk.events.say_changes(told, [Change(fault=fault(), raised=raised)], now=0.0, wall=WALL)
    found = {e.reason: e for e in await desk.written()}
    assert found["GPULostOver"].type == "Normal"
    assert found["GPULost"].type == "Warning"


async def test_a_fault_of_the_node_names_no_gpu(desk: Desk) -> None:
    change = Change(fault=fault(gpu=""), raised=True)
    desk.events.say_changes(await node(desk), [change], now=0.0, wall=WALL)
    (told,) = await desk.written()
    assert told.message == "node a: does not answer"


async def test_ten_thousand_of_the_same_are_two_writes(desk: Desk) -> None:
    """800,000 lines were as many reports (NVSentinel #1120, #1710)."""
    for _ in range(10):
        for _ in range(1000):
            desk.say("GPUXid")
        desk.now += 6.0
        await desk.events.flush(desk.now)
    assert desk.kube.writes == 1
    desk.now = APART_SECONDS + 6.0
    (told,) = await desk.written()
    assert told.count == 10_000
    assert desk.kube.writes == 2
    assert told.first_timestamp is not None
    assert told.first_timestamp < told.last_timestamp


async def test_equal_events_of_two_gpus_are_two(desk: Desk) -> None:
    for gpu in ("GPU-1", "GPU-2", "GPU-1"):
        desk.say(gpu=gpu)
    assert sorted(e.count for e in await desk.written()) == [1, 2]


async def test_all_together_have_a_rate_and_none_is_lost(desk: Desk) -> None:
    for number in range(25):
        desk.say(f"Reason{number}")
    counts = []
    for desk.now in (0.0, 0.0, 60.0, 120.0, 180.0):
        await desk.events.flush(desk.now)
        counts.append(desk.kube.writes)
    assert counts == [MOST_PER_MINUTE, MOST_PER_MINUTE, 2 * MOST_PER_MINUTE, 25, 25]


async def test_an_event_that_the_server_forgot_begins_anew(desk: Desk) -> None:
    desk.say()
    (first,) = await desk.written()
    desk.kube.delete(EVENT, first.metadata.name, "default")
    desk.now = 400.0
    desk.say()
    desk.say()
    await desk.events.flush(desk.now)
    (second,) = await desk.written()
    assert second.metadata.name != first.metadata.name
    assert second.count == 2


async def test_a_long_time_after_the_last_a_new_event_begins(desk: Desk) -> None:
    desk.say()
    await desk.written()
    desk.now = 3600.0
    desk.say()
    found = await desk.written()
    assert [e.count for e in found] == [1, 1]


async def test_without_the_api_server_events_wait(desk: Desk) -> None:
    desk.say()
    desk.kube.fail_next(errors.UnavailableError("down"))
    await desk.events.flush(0.0)
    desk.say()
    (told,) = await desk.written()
    assert told.count == 2
    assert desk.events.dropped == 0


async def test_what_can_never_be_written_costs_itself_alone(desk: Desk) -> None:
    desk.say("First")
    desk.say("Second")
    desk.kube.fail_next(errors.ForbiddenError("the namespace is being terminated"))
    assert [e.reason for e in await desk.written()] == ["Second"]
    assert desk.events.dropped == 1


async def test_a_message_is_cut_at_a_whole_character(desk: Desk) -> None:
    desk.say(message="é" * 1000)
    (told,) = await desk.written()
    assert len(told.message.encode()) <= 1024
    assert told.message.startswith("éé")
    assert told.message.endswith("…")
    assert bounded("short") == "short"


async def test_the_name_of_an_event_fits_whatever_the_pod_is_called(desk: Desk) -> None:
    pod = Holder(namespace="n", pod="p" * 199 + "." + "q" * 53, uid="u")
    desk.events.say(of_pod(pod), "R", "m", now=0.0, wall=WALL)
    (told,) = await desk.written()
    assert len(told.metadata.name) <= 253
    assert ".." not in told.metadata.name
    assert told.involved_object.name == pod.pod


def test_the_backlog_is_bounded_and_says_what_it_gave_up() -> None:
    backlog = Backlog()
    for number in range(2 * MOST_SERIES):
        topic = Topic(involved=Involved(kind="Pod", name=f"p{number}"), reason="R")
        backlog.say(topic, Severity.WARNING, "m", now=0.0, wall=WALL)
    assert backlog.dropped == MOST_SERIES
    assert len(backlog._series) == MOST_SERIES


def test_what_is_written_gives_way_before_what_is_not() -> None:
    backlog = Backlog()
    first, second = (Topic(involved=Involved(kind="Pod", name=n), reason="R") for n in "ab")
    for topic in (first, second):
        backlog.say(topic, Severity.WARNING, "m", now=0.0, wall=WALL)
    series = {one.topic: one for one in backlog.due(0.0)}
    backlog.written(series[second], "event", 0.0)
    for number in range(MOST_SERIES - 1):
        topic = Topic(involved=Involved(kind="Pod", name=f"p{number}"), reason="R")
        backlog.say(topic, Severity.WARNING, "m", now=0.0, wall=WALL)
    assert backlog.dropped == 0
    assert first in backlog._series
    assert second not in backlog._series
