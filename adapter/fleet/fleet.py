"""The state of the fleet, made anew every two seconds while somebody looks, node by node.

A pass over thousands of nodes takes a good part of a second, so it is made in small steps between
which requests of autoscalers are answered. While nobody looks there is a pass every 15 s, which
keeps the sparklines.
"""

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from adapter.fleet.summary import Summary, detail_of, summary_of
from adapter.sources.source import Reading
from adapter.view import View
from slicewatch.kube.objects import Node
from slicewatch.pages.history import History
from slicewatch.pages.message import FleetState, Health, NodeRow, NodeState, Pool, Totals
from slicewatch.pages.node import worst

WATCHED_SECONDS: Final = 2.0
IDLE_SECONDS: Final = 15.0
# Somebody who looks asks again sooner than that.
LOOKING_SECONDS: Final = 6.0
# About a millisecond.
NODES_OF_A_STEP: Final = 10
# More rows than anybody reads; whoever looks for more says more words.
MOST_FOUND: Final = 200
# Each is looked for in the names of all nodes, while everybody waits.
MOST_WORDS: Final = 8

NodeOf = Callable[[str], Node | None]
"""Returns a node of the cluster by its name; None if there is none."""


class Fleet:
    """What is known of all nodes with exporters, as of the last pass.

    Args:
        view: the readings.
        node_of: knows the nodes of the cluster.
        pool_label: of nodes, that tells the pools apart.
        pods_known: whether the pods of the cluster are known now.
    """

    def __init__(
        self,
        view: View,
        node_of: NodeOf,
        *,
        pool_label: str,
        pods_known: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._view = view
        self._node_of = node_of
        self._pool_label = pool_label
        self._pods_known = pods_known
        self._clock = clock
        self._history = History(step_seconds=IDLE_SECONDS)
        self._summaries: dict[str, Summary] = {}
        self._looked_at = self._made_at = -math.inf
        self._woken = asyncio.Event()
        self._passed = asyncio.Event()

    async def run(self) -> None:
        """Make passes until cancelled."""
        while True:
            await self.make()
            is_watched = self._clock() - self._looked_at < LOOKING_SECONDS
            try:
                async with asyncio.timeout(WATCHED_SECONDS if is_watched else IDLE_SECONDS):
                    await self._woken.wait()
                    # Of several who begin to look at once, one pass is for all.
                    await asyncio.sleep(0)
            except TimeoutError:
                pass
            self._woken.clear()

    async def make(self) -> None:
        """Make a pass over all nodes."""
        made: dict[str, Summary] = {}
        for number, name in enumerate(sorted(self.names()), start=1):
            made[name] = self._summary(name)
            if number % NODES_OF_A_STEP == 0:
                await asyncio.sleep(0)
        self._summaries = made
        pools = self._by_pool()
        self._history.take(self._clock(), {name: _tracked(of) for name, of in pools.items()})
        self._made_at = self._clock()
        passed, self._passed = self._passed, asyncio.Event()
        passed.set()

    async def changed(self) -> None:
        """Return after the next pass."""
        self.look()
        await self._passed.wait()

    async def settled(self) -> None:
        """Return at once where there was a pass lately, and else after one."""
        if self._clock() - self._made_at > 2 * WATCHED_SECONDS:
            await self.changed()

    def look(self) -> None:
        """Note that somebody looks; who comes after nobody has looked gets a pass at once."""
        now = self._clock()
        if now - self._looked_at >= LOOKING_SECONDS:
            self._woken.set()
        self._looked_at = now

    def names(self) -> set[str]:
        """Return the nodes that an exporter is wanted from, or speaks for."""
        source = self._view.source
        return {*source.speakers, *(one.node for one in source.streams.values() if one.node)}

    def state(self, pool: str | None = None, words: str = "") -> FleetState:
        """Return the state of the fleet.

        Args:
            pool: whose nodes are to be in it; None for none.
            words: nodes that have all of them are in it instead, whatever their pool.
        """
        wanted = words.lower().split()[:MOST_WORDS]
        pools = self._by_pool()
        shown: list[Pool] = []
        found = 0
        for name, of in pools.items():
            rows = [one.row for one in of if pool == name or _fits(one, wanted)]
            rows = sorted(rows, key=_rank)[: None if pool == name else MOST_FOUND - found]
            found += len(rows) if wanted else 0
            shown.append(self._pool(name, of, rows))
        shown.sort(key=lambda one: (_order(one.health), one.name))
        return FleetState(
            pool_label=self._pool_label,
            totals=_added(one.row.totals for one in self._summaries.values()),
            pools=tuple(shown),
            pods_known=self._pods_known(),
            step_seconds=self._history.step_seconds,
        )

    def node(self, name: str) -> NodeState | None:
        """Return the state of a node as of now; None if there is no such node."""
        if name not in self.names():
            return None
        reading, age = self._reading(name)
        node = self._node_of(name)
        most = self._view.max_age_seconds
        return detail_of(
            name, reading, node, age=age, pool=self._pool_of(node), most_age=most
        )  # fmt: skip

    def _summary(self, name: str) -> Summary:
        reading, age = self._reading(name)
        node = self._node_of(name)
        most = self._view.max_age_seconds
        return summary_of(
            name, reading, node, age=age, pool=self._pool_of(node), most_age=most
        )  # fmt: skip

    def _reading(self, name: str) -> tuple[Reading | None, float | None]:
        source = self._view.source
        target = source.speakers.get(name)
        reading = None if target is None else source.readings.get(target)
        return reading, None if reading is None else self._clock() - reading.received_at

    def _pool_of(self, node: Node | None) -> str:
        return "" if node is None else node.metadata.labels.get(self._pool_label, "")

    def _by_pool(self) -> dict[str, list[Summary]]:
        pools: dict[str, list[Summary]] = defaultdict(list)
        for one in self._summaries.values():
            pools[one.pool].append(one)
        return pools

    def _pool(self, name: str, of: list[Summary], rows: list[NodeRow]) -> Pool:
        return Pool(
            name=name,
            health=worst([one.row.health for one in of]),
            totals=_added(one.row.totals for one in of),
            lines=self._history.lines(name),
            nodes=tuple(rows),
        )


def _fits(one: Summary, words: list[str]) -> bool:
    return bool(words) and all(word in one.searched for word in words)


def _order(health: Health) -> int:
    return list(Health).index(health)


def _rank(row: NodeRow) -> tuple[int, str]:
    return (_order(row.health), row.node)


def _added(totals: Iterable[Totals]) -> Totals:
    """Add up; means are over devices, and what nobody knows stays unknown."""
    every = list(totals)
    known = sum(one.known for one in every)
    busy = sum((one.utilization or 0.0) * one.known for one in every)
    allocated = [one.allocated for one in every if one.allocated is not None]
    contention = [o.contention_max_ratio for o in every if o.contention_max_ratio is not None]
    return Totals(
        nodes=sum(one.nodes for one in every),
        gpus=sum(one.gpus for one in every),
        devices=sum(one.devices for one in every),
        known=known,
        allocated=sum(allocated) if allocated else None,
        unwell=sum(one.unwell for one in every),
        silent=sum(one.silent for one in every),
        cordoned=sum(one.cordoned for one in every),
        utilization=busy / known if known else None,
        memory_used_bytes=_sum(one.memory_used_bytes for one in every),
        memory_total_bytes=_sum(one.memory_total_bytes for one in every),
        power_watts=_sum(one.power_watts for one in every),
        contention_max_ratio=max(contention, default=None),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _tracked(of: list[Summary]) -> tuple[float | None, ...]:
    totals = _added(one.row.totals for one in of)
    used, whole = totals.memory_used_bytes, totals.memory_total_bytes
    memory = 100 * used / whole if used is not None and whole else None
    return (totals.utilization, memory, totals.power_watts, totals.contention_max_ratio)
