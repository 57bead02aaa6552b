"""Many agents that write one object at once, with an API server that fails now and then."""

import asyncio
import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from health import names
from health.book import ALLOW, CONFIG_MAP_NAME
from health.budget import Claim, Policy
from health.checks.model import CheckId
from health.ledger import Ledger, Place
from slicewatch.kube import errors
from slicewatch.kube.daemon_sets import DAEMON_SET
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.nodes import WHOLE_NODE
from slicewatch.kube.objects import CONFIG_MAP

LOST = CheckId("gpu_lost")
FOREIGN = {"foreign": {"uid": "uid-foreign", "later": 1}}


class Unsteady(FakeKube):
    """Answers out of step, fails now and then, and watches over the limit."""

    def __init__(self, seed: int, limit: int, failures: float) -> None:
        super().__init__()
        self.random = random.Random(seed)  # noqa: S311 - what hypothesis can repeat
        self.limit = limit
        self.failures = failures
        self.most = 0

    async def _arrive(self) -> None:
        for _ in range(self.random.randrange(4)):
            await asyncio.sleep(0)
        if self.random.random() < self.failures:
            raise errors.UnavailableError("now and then")
        await super()._arrive()

    def _store(self, key, body, change):
        if key[0] == CONFIG_MAP.plural:
            slots = msgspec.json.decode(body["data"]["slots"])
            self.most = max(self.most, len(slots))
            assert slots["foreign"] == FOREIGN["foreign"]
        return super()._store(key, body, change)


class Node:
    """A node with an agent, that is cordoned only by its slot."""

    def __init__(self, kube: Unsteady, name: str, policy: Policy) -> None:
        self.kube, self.name = kube, name
        self.out = False
        self._policy = policy
        self.restart()

    def restart(self) -> None:
        place = Place(namespace="n", daemon_set="d", node=self.name, uid=f"uid-{self.name}")
        self._ledger = Ledger(
            self.kube,
            place,
            self._policy,
            monotonic=lambda: 0.0,
            wall=lambda: 1e9,
            pause=lambda _: asyncio.sleep(0),
        )

    async def turn(self, deed: str) -> None:
        """Do one thing; what fails is left for the next turn."""
        try:
            if deed == "fail" and not self.out:
                await self._cordon()
            elif deed == "recover":
                await self._mark(None)
                await self._ledger.release()
            elif deed == "restart":
                self.restart()
                await (self._ledger.hold(LOST, "") if self.out else self._ledger.release())
        except errors.UnavailableError:
            return

    async def _cordon(self) -> None:
        claim = Claim(node=self.name, uid=f"uid-{self.name}", found={LOST: 1e9})
        if await self._ledger.acquire(claim) is None:
            await self._mark("gpu_lost/x/1")

    async def _mark(self, value: str | None) -> None:
        patch = {"metadata": {"annotations": {names.CORDONED: value}}}
        await self.kube.patch(WHOLE_NODE, self.name, patch)
        self.out = value is not None


DEEDS = st.lists(st.sampled_from(["fail", "fail", "recover", "restart"]), min_size=1, max_size=8)


@settings(deadline=None, max_examples=60)
@given(
    lives=st.lists(DEEDS, min_size=2, max_size=8),
    limit=st.integers(1, 4),
    seed=st.integers(0, 1 << 30),
    failures=st.sampled_from([0.0, 0.1]),
)
def test_never_are_more_out_than_allowed_and_no_write_is_lost(
    lives: list[list[str]], limit: int, seed: int, failures: float
) -> None:
    asyncio.run(_live(lives, limit, seed, failures))


async def _live(lives: list[list[str]], limit: int, seed: int, failures: float) -> None:
    kube = Unsteady(seed, limit, 0.0)
    policy = Policy(nodes=limit, percent=100)
    await kube.create(DAEMON_SET, {"metadata": {"name": "d"}, "status": AGENTS}, "n")
    data = {"slots": msgspec.json.encode(FOREIGN).decode(), ALLOW: "all"}
    await kube.create(CONFIG_MAP, {"metadata": {"name": CONFIG_MAP_NAME}, "data": data}, "n")
    marks = {names.CORDONED: "gpu_lost/x/1"}
    foreign = {"name": "foreign", "uid": "uid-foreign", "annotations": marks}
    await kube.create(WHOLE_NODE, {"metadata": foreign})
    nodes = [Node(kube, f"n{number}", policy) for number in range(len(lives))]
    for node in nodes:
        await kube.create(WHOLE_NODE, {"metadata": {"name": node.name, "uid": f"uid-{node.name}"}})
    kube.failures = failures

    async def live(node: Node, deeds: list[str]) -> None:
        for deed in deeds:
            await node.turn(deed)
            assert sum(one.out for one in nodes) <= max(0, limit - 1)

    async with asyncio.TaskGroup() as group:
        for node, deeds in zip(nodes, lives, strict=True):
            group.create_task(live(node, deeds))
    assert kube.most <= limit
    kube.failures = 0.0
    for node in nodes:
        node.restart()
        await node.turn("restart")
    found = await kube.get(CONFIG_MAP, CONFIG_MAP_NAME, "n")
    held = set(msgspec.json.decode(found.data["slots"])) - {"foreign"}
    assert held == {node.name for node in nodes if node.out}


AGENTS = {"desiredNumberScheduled": 100}
