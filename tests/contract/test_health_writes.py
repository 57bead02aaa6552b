"""One suite on both ways in which the monitor writes: for real, and as a dry run."""

import asyncio
import copy
from collections import Counter
from dataclasses import dataclass, field

import pytest

from health import names
from health.actions.conditions import Conditions
from health.actions.cordon import Cordon
from health.actions.cordoning import Cordoning
from health.actions.events import Events
from health.budget import Held, Policy
from health.case import Since
from health.checks.model import Action, CheckId, Condition
from health.decision import Change, Fault, NodeCondition
from health.ledger import Ledger, Place
from health.ownership import Cordon as CordonStep
from health.writes import DryRun, Writes
from slicewatch.kube import errors
from slicewatch.kube.events import EVENT
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.nodes import WHOLE_NODE, WholeNode
from slicewatch.kube.objects import CONFIG_MAP

WALL = 1_800_000_000.0
FOREIGN_TAINT = {"key": "foreign", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
READY = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
ILL = {
    Condition.UNHEALTHY: NodeCondition(present=True, reason="GPULost", message="GPU 0: lost"),
    Condition.DEGRADED: NodeCondition(present=False, reason="NoFault", message="all is well"),
}
FAULT = Fault(
    check=CheckId("gpu_lost"),
    reason="GPULost",
    message="lost",
    action=Action.CORDON,
    since=Since(boot_id="b", driver_run="r/1", at_seconds=WALL),
    gpu="GPU-1",
    index=0,
)


@dataclass
class World:
    """A node, and a monitor's hands on it."""

    fake: FakeKube
    kind: type[Writes]
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.kube = self.kind(self.fake, self.count)
        self.outcome = self.kind.outcome
        self.events = Events(self.kube, "a")
        self.conditions = Conditions(self.kube, "a", spread=lambda _, most: most)
        place = Place(namespace="gpu", daemon_set="d", node="a", uid="uid-a")
        ledger = Ledger(self.kube, place, Policy(), wall=lambda: WALL)
        cordon = Cordon(self.kube, taint=True)
        self.cordoning = Cordoning(ledger, cordon, self.events, pool_label="pool")

    def count(self, what: str, outcome: str) -> None:
        self.counts[what, outcome] += 1

    async def node(self) -> WholeNode:
        return await self.kube.get(WHOLE_NODE, "a")

    async def cordon(self) -> WholeNode:
        step = CordonStep(grounds=(FAULT,))
        done = await self.cordoning.cordon(await self.node(), step, "record", now=0.0, wall=WALL)
        assert not isinstance(done, Held)
        await self.cordoning.settle(done, wanted=True)
        return done


@pytest.fixture(params=[Writes, DryRun])
async def world(request: pytest.FixtureRequest) -> World:
    fake = FakeKube()
    metadata = {
        "name": "a",
        "uid": "uid-a",
        "labels": {"pool": "h100"},
        "annotations": {"foreign": "1"},
    }
    body = {"metadata": metadata, "spec": {"taints": [FOREIGN_TAINT]}}
    await fake.create(WHOLE_NODE, body | {"status": {"conditions": [READY]}})
    return World(fake, request.param)


def stored(fake: FakeKube) -> object:
    return copy.deepcopy(fake._bodies)


async def test_a_write_shows_what_becomes_of_the_node(world: World) -> None:
    shown = await world.conditions.show(await world.node(), ILL, now=0.0, wall=WALL)
    found = await world.node()
    assert found.status == shown.status
    assert [(c.type, c.status) for c in found.status.conditions] == [
        ("Ready", "True"),
        ("GPUDegraded", "False"),
        ("GPUUnhealthy", "True"),
    ]
    assert world.counts == {("node/status", world.outcome): 1}


async def test_what_is_said_already_is_not_written_again(world: World) -> None:
    for now in (0.0, 60.0, 120.0):
        await world.conditions.show(await world.node(), ILL, now=now, wall=WALL + now)
    assert world.counts == {("node/status", world.outcome): 1}


async def test_a_cordon_comes_and_goes_once(world: World) -> None:
    done = await world.cordon()
    found = await world.node()
    assert found.spec == done.spec
    assert found.spec.unschedulable
    assert found.spec.taints == (FOREIGN_TAINT, {"key": names.TAINT, "effect": "NoSchedule"})
    assert found.annotations[names.CORDONED] == FAULT.fingerprint
    assert found.annotations[names.STATE] == "record"
    freed = await world.cordoning.uncordon(found, "later", now=60.0, wall=WALL)
    await world.cordoning.settle(freed, wanted=False)
    found = await world.node()
    assert not found.spec.unschedulable
    assert found.spec.taints == (FOREIGN_TAINT,)
    assert found.annotations == {"foreign": "1", names.STATE: "later"}
    assert world.counts["node", world.outcome] == 2


async def test_the_events_of_a_fault_are_written(world: World) -> None:
    node = await world.node()
    world.events.say_changes(node, [Change(fault=FAULT, raised=True)], now=0.0, wall=WALL)
    await world.events.flush(0.0)
    await world.events.flush(1000.0)
    assert world.counts == {("event", world.outcome): 1}


async def test_a_node_that_changed_meanwhile_is_a_conflict(world: World) -> None:
    old = await world.node()
    await world.fake.patch(WHOLE_NODE, "a", {"metadata": {"labels": {"by": "somebody"}}})
    with pytest.raises(errors.ConflictError):
        await world.cordoning.uncordon(old, "record", now=0.0, wall=WALL)
    assert world.counts == {("node", "conflict"): 1}


async def test_a_node_that_is_gone_is_not_found(world: World) -> None:
    old = await world.node()
    world.fake.delete(WHOLE_NODE, "a")
    with pytest.raises(errors.NotFoundError):
        await world.cordoning.give_up(old, "record", now=0.0, wall=WALL)
    assert world.counts == {("node", "not_found"): 1}


async def test_what_exists_is_not_created_again(world: World) -> None:
    body = {"metadata": {"name": "x"}}
    await world.kube.create(CONFIG_MAP, body, "gpu")
    await world.fake.create(CONFIG_MAP, body, "other")
    with pytest.raises(errors.ConflictError):
        await world.kube.create(CONFIG_MAP, body, "other")
    assert world.counts == {("configmap", world.outcome): 1, ("configmap", "conflict"): 1}


@pytest.mark.parametrize("world", [Writes], indirect=True)
async def test_a_write_that_is_broken_off_is_counted(world: World) -> None:
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    class Stuck(FakeKube):
        async def create(self, *_):
            return await gate

    stuck = world.kind(Stuck(), world.count)
    task = asyncio.ensure_future(stuck.create(CONFIG_MAP, {"metadata": {"name": "x"}}, "n"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert world.counts == {("configmap", "cancelled"): 1}


@pytest.mark.parametrize("world", [DryRun], indirect=True)
async def test_a_dry_run_changes_nothing(world: World) -> None:
    before = stored(world.fake)
    for now in (0.0, 400.0, 4000.0):
        await world.conditions.show(await world.node(), ILL, now=now, wall=WALL + now)
        world.events.say_changes(
            await world.node(), [Change(fault=FAULT, raised=True)], now=now, wall=WALL
        )
        await world.events.flush(now)
        freed = await world.cordoning.uncordon(await world.cordon(), "r", now=now, wall=WALL)
        await world.cordoning.settle(freed, wanted=False)
    assert stored(world.fake) == before
    assert {outcome for _, outcome in world.counts} == {"dry_run"}


@pytest.mark.parametrize("world", [DryRun], indirect=True)
async def test_a_dry_run_sees_what_people_really_do(world: World) -> None:
    await world.cordon()
    hold = {"metadata": {"annotations": {names.HOLD: "true"}}, "spec": {"taints": None}}
    await world.fake.patch(WHOLE_NODE, "a", hold)
    found = await world.node()
    assert found.annotations[names.HOLD] == "true"
    assert found.spec.unschedulable
    await world.cordoning.uncordon(found, "later", now=0.0, wall=WALL)
    await world.fake.patch(WHOLE_NODE, "a", {"spec": {"unschedulable": True}})
    assert (await world.node()).spec.unschedulable


@pytest.mark.parametrize("world", [DryRun], indirect=True)
async def test_a_dry_run_forgets_an_annotation_that_it_would_have_removed(world: World) -> None:
    await world.fake.patch(WHOLE_NODE, "a", {"metadata": {"annotations": {names.CLEAR: "true"}}})
    cordon = Cordon(world.kube, taint=False)
    await cordon.remember(await world.node(), "record", cleared=True)
    assert names.CLEAR not in (await world.node()).annotations


@pytest.mark.parametrize("world", [Writes], indirect=True)
async def test_events_count_on_at_the_api_server(world: World) -> None:
    node = await world.node()
    for now in (0.0, 10.0, 20.0, 301.0):
        world.events.say_changes(
            node, [Change(fault=FAULT, raised=True)], now=now, wall=WALL + now
        )
        await world.events.flush(now)
    (name,) = {key[2] for key in world.fake._bodies if key[0] == EVENT.plural}
    event = await world.fake.get(EVENT, name, "default")
    assert event.count == 4
    assert event.involved_object.uid == "uid-a"
