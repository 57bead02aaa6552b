"""The budget's shared object, and who writes it when."""

import asyncio
from dataclasses import dataclass, field

import msgspec
import pytest

from health import names
from health.book import CONFIG_MAP_NAME, BookError
from health.budget import Claim, Held, Policy, Refusal
from health.checks.model import CheckId
from health.ledger import ATTEMPTS, CORDON_FOLLOWS_SECONDS, Ledger, Place
from slicewatch.kube import errors
from slicewatch.kube.daemon_sets import DAEMON_SET
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.nodes import WHOLE_NODE
from slicewatch.kube.objects import CONFIG_MAP

NAMESPACE, SET = "gpu", "gpu-health-monitor"
WALL = 1_800_000_000.0
LOST = CheckId("gpu_lost")


class BusyKube(FakeKube):
    """Somebody else writes the object just before we do."""

    def __init__(self) -> None:
        super().__init__()
        self.interruptions = 0

    async def patch(self, kind, name, patch, **options):
        if self.interruptions > 0 and kind is CONFIG_MAP:
            self.interruptions -= 1
            other = {"data": {"touched": str(self.interruptions)}}
            await super().patch(kind, name, other, namespace=NAMESPACE)
        return await super().patch(kind, name, patch, **options)


@dataclass
class Cluster:
    """An API server with agents, whose clock the test turns."""

    kube: BusyKube = field(default_factory=BusyKube)
    now: float = 0.0
    pauses: list[int] = field(default_factory=list)

    async def agents(self, number: int) -> None:
        body = {"metadata": {"name": SET}, "status": {"desiredNumberScheduled": number}}
        await self.kube.create(DAEMON_SET, body, NAMESPACE)

    async def node(self, name: str, *, cordoned: bool = False) -> None:
        marks = {names.CORDONED: "gpu_lost/x/1"} if cordoned else {}
        metadata = {"name": name, "uid": f"uid-{name}", "annotations": marks}
        await self.kube.create(
            WHOLE_NODE, {"metadata": metadata, "spec": {"unschedulable": cordoned}}
        )

    async def put(self, **data: str) -> None:
        body = {"metadata": {"name": CONFIG_MAP_NAME}, "data": data}
        await self.kube.create(CONFIG_MAP, body, NAMESPACE)

    async def data(self) -> dict[str, str]:
        return (await self.kube.get(CONFIG_MAP, CONFIG_MAP_NAME, NAMESPACE)).data

    async def holders(self) -> set[str]:
        return set(msgspec.json.decode((await self.data())["slots"]))

    def ledger(self, node: str = "a", *, nodes: int = 10) -> Ledger:
        async def pause(attempt: int) -> None:
            self.pauses.append(attempt)
            await asyncio.sleep(0)

        return Ledger(
            self.kube,
            Place(namespace=NAMESPACE, daemon_set=SET, node=node, uid=f"uid-{node}"),
            Policy(nodes=nodes, percent=10, burst_percent=10),
            monotonic=lambda: self.now,
            wall=lambda: WALL,
            pause=pause,
        )


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def claim(node: str = "a") -> Claim:
    return Claim(node=node, uid=f"uid-{node}", found={LOST: WALL})


def slots(*nodes: str) -> str:
    return msgspec.json.encode({n: {"uid": f"uid-{n}", "since": WALL} for n in nodes}).decode()


def refusal(held: Held | None) -> Refusal | None:
    return held.refusal if held else None


async def test_the_first_agent_makes_the_object(cluster: Cluster) -> None:
    assert await cluster.ledger().acquire(claim()) is None
    assert await cluster.holders() == {"a"}


async def test_without_a_number_of_agents_one_node_may_go(cluster: Cluster) -> None:
    """No GPU node was a crash (NVSentinel #1531)."""
    assert await cluster.ledger().acquire(claim()) is None
    await cluster.node("a", cordoned=True)
    assert refusal(await cluster.ledger("b").acquire(claim("b"))) is Refusal.FULL


async def test_the_daemon_set_says_how_many_agents_there_are(cluster: Cluster) -> None:
    """Nodes without GPUs counted as well (NVSentinel #1228)."""
    await cluster.agents(30)
    ledger = cluster.ledger()
    await ledger.acquire(claim())
    assert ledger.standing is not None
    assert (ledger.standing.used, ledger.standing.limit, ledger.standing.agents) == (1, 3, 30)


@pytest.mark.parametrize("kind", ["gone", "another"])
async def test_slots_of_nodes_that_are_gone_are_reclaimed(cluster: Cluster, kind: str) -> None:
    """A deleted node held the lock for ever (kured #137, #847, kamino #74)."""
    await cluster.put(slots='{"x": {"uid": "old"}}')
    if kind == "another":
        await cluster.node("x", cordoned=True)
    assert await cluster.ledger().acquire(claim()) is None
    assert await cluster.holders() == {"a"}


async def test_a_slot_of_a_cordoned_node_counts_whether_its_agent_lives(cluster: Cluster) -> None:
    await cluster.put(slots=slots("x"))
    await cluster.node("x", cordoned=True)
    ledger = cluster.ledger()
    for cluster.now in (0.0, CORDON_FOLLOWS_SECONDS, 1e6):
        assert refusal(await ledger.acquire(claim())) is Refusal.FULL


async def test_a_slot_whose_cordon_never_came_is_reclaimed_after_a_while(cluster: Cluster) -> None:
    await cluster.put(slots=slots("x"))
    await cluster.node("x")
    ledger = cluster.ledger()
    for cluster.now in (0.0, CORDON_FOLLOWS_SECONDS - 1):
        assert refusal(await ledger.acquire(claim())) is Refusal.FULL
    cluster.now = CORDON_FOLLOWS_SECONDS
    assert await ledger.acquire(claim()) is None
    assert await cluster.holders() == {"a"}


async def test_a_slot_whose_cordon_a_human_has_ended_is_reclaimed(cluster: Cluster) -> None:
    """Its own agent would release it, if it lived."""
    await cluster.put(slots=slots("x"))
    await cluster.node("x", cordoned=True)
    await cluster.kube.patch(WHOLE_NODE, "x", {"spec": {"unschedulable": False}})
    ledger = cluster.ledger()
    assert refusal(await ledger.acquire(claim())) is Refusal.FULL
    cluster.now = CORDON_FOLLOWS_SECONDS
    assert await ledger.acquire(claim()) is None


async def test_a_slot_that_was_taken_anew_has_its_time_again(cluster: Cluster) -> None:
    await cluster.put(slots=slots("x"))
    await cluster.node("x")
    ledger = cluster.ledger()
    await ledger.acquire(claim())
    anew = {"data": {"slots": '{"x": {"uid": "uid-x", "since": 5}}'}}
    await cluster.kube.patch(CONFIG_MAP, CONFIG_MAP_NAME, anew, namespace=NAMESPACE)
    cluster.now = CORDON_FOLLOWS_SECONDS
    assert refusal(await ledger.acquire(claim())) is Refusal.FULL


async def test_a_node_that_cannot_be_read_keeps_its_slot(cluster: Cluster) -> None:
    await cluster.put(slots=slots("x"))

    class Blind(BusyKube):
        async def get(self, kind, name, namespace=""):
            if kind is WHOLE_NODE:
                raise errors.UnavailableError("down")
            return await super().get(kind, name, namespace)

    blind = Blind()
    blind._bodies = cluster.kube._bodies
    cluster.kube = blind
    assert refusal(await cluster.ledger().acquire(claim())) is Refusal.FULL
    assert await cluster.holders() == {"x"}


async def test_a_pause_takes_effect_with_the_next_cordon(cluster: Cluster) -> None:
    await cluster.put(slots="{}", paused="true")
    ledger = cluster.ledger()
    assert refusal(await ledger.acquire(claim())) is Refusal.PAUSED
    assert await cluster.holders() == set()
    go = {"data": {"paused": "false"}}
    await cluster.kube.patch(CONFIG_MAP, CONFIG_MAP_NAME, go, namespace=NAMESPACE)
    assert await ledger.acquire(claim()) is None


async def test_what_cannot_be_read_holds_and_is_not_overwritten(cluster: Cluster) -> None:
    await cluster.put(slots="{broken", findings='{"x": {"gpu_lost": 1}}')
    before = await cluster.data()
    ledger = cluster.ledger()
    held = await ledger.acquire(claim())
    assert refusal(held) is Refusal.UNREADABLE
    assert held is not None
    assert CONFIG_MAP_NAME in held.message
    with pytest.raises(BookError, match="slots"):
        await ledger.release()
    with pytest.raises(BookError, match="slots"):
        await ledger.hold("gpu_lost", "")
    assert await cluster.data() == before


async def test_the_switches_of_people_survive_our_writes(cluster: Cluster) -> None:
    await cluster.put(**{"paused-pools": "a30", "allow": "gpu_lost", "note": "by hand"})
    assert await cluster.ledger().acquire(claim()) is None
    kept = await cluster.data()
    assert kept["paused-pools"] == "a30"
    assert kept["note"] == "by hand"


async def test_what_others_write_meanwhile_is_kept(cluster: Cluster) -> None:
    """NVSentinel #915, #790, #445."""
    await cluster.put(slots="{}")
    cluster.kube.interruptions = 3
    assert await cluster.ledger().acquire(claim()) is None
    assert cluster.pauses == [0, 1, 2]
    assert (await cluster.data())["touched"] == "0"
    assert await cluster.holders() == {"a"}


async def test_a_storm_of_writers_holds_the_cordon_for_now(cluster: Cluster) -> None:
    await cluster.put(slots="{}")
    cluster.kube.interruptions = ATTEMPTS
    assert refusal(await cluster.ledger().acquire(claim())) is Refusal.CONTENDED
    assert await cluster.holders() == set()


async def test_without_the_api_server_there_is_no_slot(cluster: Cluster) -> None:
    cluster.kube.fail_next(errors.UnavailableError("down"), times=2)
    with pytest.raises(errors.UnavailableError):
        await cluster.ledger().acquire(claim())


async def test_a_release_leaves_the_slots_of_others(cluster: Cluster) -> None:
    await cluster.put(slots=slots("a", "x"), findings='{"a": {"gpu_lost": 1}}')
    await cluster.ledger().release()
    assert await cluster.data() == {"slots": slots("x"), "findings": "{}"}


async def test_whoever_holds_nothing_asks_once(cluster: Cluster) -> None:
    ledger = cluster.ledger()
    await ledger.release()
    cluster.kube.fail_next(errors.UnavailableError("not to be asked"))
    await ledger.release()


async def test_a_release_that_failed_is_still_owed(cluster: Cluster) -> None:
    await cluster.put(slots=slots("a"))
    ledger = cluster.ledger()
    cluster.kube.fail_next(errors.UnavailableError("down"))
    with pytest.raises(errors.UnavailableError):
        await ledger.release()
    await ledger.release()
    assert await cluster.holders() == set()


async def test_a_cordon_that_lost_its_slot_counts_again_over_the_limit(cluster: Cluster) -> None:
    await cluster.put(slots=slots("x"))
    ledger = cluster.ledger()
    await ledger.hold("gpu_lost", "h100")
    assert await cluster.holders() == {"a", "x"}
    version = (await cluster.kube.get(CONFIG_MAP, CONFIG_MAP_NAME, NAMESPACE)).metadata
    await ledger.hold("gpu_lost", "h100")
    after = (await cluster.kube.get(CONFIG_MAP, CONFIG_MAP_NAME, NAMESPACE)).metadata
    assert after == version
