"""The budget's shared object at the API server: who reads and writes it, and in which order.

All agents write one ConfigMap, each with the version that it has read, so that none loses what
another wrote. A slot is taken before the cordon and given back after the uncordon, and counts for
as long as the cordon stands, whether its agent lives or not. Nothing here touches a node.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from health import book, budget
from health.book import CONFIG_MAP_NAME, Book, BookError, Slot
from health.budget import Claim, Held, Policy, Refusal
from health.names import CORDONED
from slicewatch.kube.daemon_sets import DAEMON_SET
from slicewatch.kube.errors import ConflictError, KubeError, NotFoundError
from slicewatch.kube.nodes import WHOLE_NODE
from slicewatch.kube.objects import CONFIG_MAP, ConfigMap
from slicewatch.kube.protocol import Kube
from slicewatch.service import logs

log = logs.logger(__name__)

ATTEMPTS: Final = 8
FIRST_PAUSE_SECONDS: Final = 0.05
LONGEST_PAUSE_SECONDS: Final = 2.0
# So many nodes of others are read for one claim at most.
MOST_LOOKS: Final = 50
# Between a slot and its cordon lies one request, and a retry after a minute if it fails.
CORDON_FOLLOWS_SECONDS: Final = 300.0

Change = Callable[[Book], Awaitable[tuple[Book, Held | None]]]


async def jitter(attempt: int) -> None:
    """Wait anything up to a step that doubles: agents that met once should not meet again."""
    step = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0**attempt)
    await asyncio.sleep(random.uniform(0, step))  # noqa: S311 - spreads load, keeps no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the object is and who we are.

    Attributes:
        namespace: of the agents.
        daemon_set: of the agents; its status says how many there are.
        node, uid: ours.
    """

    namespace: str
    daemon_set: str
    node: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The budget as it was last seen.

    Attributes:
        agents: None where that is not known.
    """

    used: int
    limit: int
    agents: int | None
    paused: bool
    paused_pools: frozenset[str]


class Ledger:
    """Our part in the shared object.

    Args:
        kube: where it is.
        place: of the object, and ours in it.
        policy: the operator's.
        monotonic: tells for how long a slot has been without a cordon.
        wall: seconds since 1970.
        pause: waits before another attempt after a conflict.

    Attributes:
        standing: what was last seen; None before the first look.
    """

    def __init__(
        self,
        kube: Kube,
        place: Place,
        policy: Policy,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        pause: Callable[[int], Awaitable[None]] = jitter,
    ) -> None:
        self._kube = kube
        self._place = place
        self._policy = policy
        self._monotonic = monotonic
        self._wall = wall
        self._pause = pause
        self._unmarked: dict[tuple[str, Slot], float] = {}
        self._may_hold = True
        self.standing: Standing | None = None

    async def acquire(self, claim: Claim) -> Held | None:
        """Take a slot for a new cordon; return why not, or None once it is written.

        Our own slot, from an attempt before, is as good as a new one.

        Raises:
            KubeError: the object can be neither read nor written.
        """
        agents = await self._agents()
        self._may_hold = True

        async def settle(read: Book) -> tuple[Book, Held | None]:
            settled, held = budget.settle(read, claim, agents, self._policy, self._wall())
            if held is not None and held.refusal is Refusal.FULL:
                kept = read.without_slots(await self._vacant(read))
                settled, held = budget.settle(kept, claim, agents, self._policy, self._wall())
            self._see(settled, agents)
            return settled, held

        try:
            return await self._change(settle)
        except BookError as error:
            return Held(refusal=Refusal.UNREADABLE, message=str(error))
        except ConflictError as error:
            return Held(refusal=Refusal.CONTENDED, message=str(error))

    async def hold(self, check: str, pool: str) -> None:
        """See to it that the cordon that is there already counts, over the limit if need be.

        Raises:
            BookError: the object cannot be read.
            KubeError: it can be neither read nor written.
        """
        slot = Slot(uid=self._place.uid, since=self._wall(), check=check, pool=pool)

        async def add(read: Book) -> tuple[Book, None]:
            return read.with_slot(self._place.node, slot), None

        self._may_hold = True
        await self._change(add)

    async def release(self) -> None:
        """Take out what is ours: of a node without a cordon of ours, that wants none.

        Asks nobody where it knows that there is nothing; at the start it does not.

        Raises:
            BookError: the object cannot be read.
            KubeError: it can be neither read nor written.
        """
        if not self._may_hold:
            return

        async def remove(read: Book) -> tuple[Book, None]:
            return read.without(self._place.node), None

        await self._change(remove)
        self._may_hold = False

    async def _change(self, change: Change) -> Held | None:
        """Read, change and write the object until nobody else did so meanwhile.

        Raises:
            ConflictError: somebody else always did.
        """
        for attempt in range(ATTEMPTS):
            found = await self._found()
            before = book.read(found.data if found else {})
            after, held = await change(before)
            if after.data() == before.data():
                return held
            try:
                await self._write(found, after)
            except ConflictError:
                await self._pause(attempt)
            else:
                return held
        raise ConflictError(
            f"ConfigMap {CONFIG_MAP_NAME} changed {ATTEMPTS} times while it was written"
        )

    async def _found(self) -> ConfigMap | None:
        try:
            return await self._kube.get(CONFIG_MAP, CONFIG_MAP_NAME, self._place.namespace)
        except NotFoundError:
            return None

    async def _write(self, found: ConfigMap | None, written: Book) -> None:
        namespace = self._place.namespace
        if found is None:
            body = {"metadata": {"name": CONFIG_MAP_NAME}, "data": written.data()}
            await self._kube.create(CONFIG_MAP, body, namespace)
            return
        version = {"resourceVersion": found.metadata.resource_version}
        patch = {"metadata": version, "data": written.data()}
        await self._kube.patch(CONFIG_MAP, CONFIG_MAP_NAME, patch, namespace=namespace)

    async def _agents(self) -> int | None:
        """Return on how many nodes an agent should run; None where nobody says."""
        place = self._place
        try:
            found = await self._kube.get(DAEMON_SET, place.daemon_set, place.namespace)
        except KubeError as error:
            log.warning("number of agents unknown; taken for one", error=str(error))
            return None
        return found.status.desired_number_scheduled or None

    async def _vacant(self, read: Book) -> set[str]:
        """Return the nodes of others whose slots count for nothing any more."""
        others = [name for name in read.slots if name != self._place.node]
        asked = self._chosen(others)
        vacant = {name for name in asked if await self._is_vacant(name, read.slot(name))}
        if vacant:
            log.info("slots of nodes that are not out of service dropped", nodes=sorted(vacant))
        return vacant

    def _chosen(self, nodes: list[str]) -> list[str]:
        """Return which nodes to read now: with thousands of slots, others in each turn.

        Those without a cordon at an earlier look come first, since it takes two to drop one.
        """
        begun = {name for name, _ in self._unmarked}
        spread = random.sample(nodes, k=len(nodes))
        return sorted(spread, key=lambda name: name not in begun)[:MOST_LOOKS]

    async def _is_vacant(self, name: str, slot: Slot | None) -> bool:
        """Tell whether a node is gone, or has for a while been without its cordon of ours.

        By our own clock, and only if it is still the same slot: its agent may be about to cordon.
        """
        if slot is None:
            return True
        try:
            node = await self._kube.get(WHOLE_NODE, name)
        except NotFoundError:
            return True
        except KubeError as error:
            log.warning("slot kept: its node cannot be read", node=name, error=str(error))
            return False
        if slot.uid and node.metadata.uid != slot.uid:
            return True
        if CORDONED in node.annotations and node.spec.unschedulable:
            self._unmarked.pop((name, slot), None)
            return False
        now = self._monotonic()
        return now - self._unmarked.setdefault((name, slot), now) >= CORDON_FOLLOWS_SECONDS

    def _see(self, seen: Book, agents: int | None) -> None:
        slots = {(name, seen.slot(name)) for name in seen.slots}
        self._unmarked = {key: at for key, at in self._unmarked.items() if key in slots}
        self.standing = Standing(
            used=len(seen.slots),
            limit=self._policy.limit(agents),
            agents=agents,
            paused=seen.paused,
            paused_pools=seen.paused_pools,
        )
