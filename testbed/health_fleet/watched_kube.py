"""An API server in memory that holds each write of a monitor against what monitors may never do.

People, kubelets and controllers write as they like. Who writes is told by the task that does; that
of a monitor runs inside of ``acting``. It also fails as API servers do: before a write, after one
that took effect, with a conflict that is real, and by the end of the process that asked.
"""

import copy
from collections import Counter, deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Any, Final

import msgspec

from health.checks.model import Condition
from health.names import CORDONED, HOLD, PREFIX, STATE, TAINT
from slicewatch.kube import errors
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.nodes import WHOLE_NODE
from slicewatch.kube.objects import CONFIG_MAP, Kind, O
from slicewatch.kube.protocol import Change, Json

NODES: Final = WHOLE_NODE.plural
CONFIG_MAPS: Final = CONFIG_MAP.plural
RECORD_LIMIT_BYTES: Final = 2048
_OURS: Final = frozenset(Condition)

Body = dict[str, Any]


class Trouble(StrEnum):
    """What becomes of a request.

    CONFLICT: somebody else writes the object right before. HUMAN_FIRST: the next time that a
    monitor cordons or uncordons its node, a human does so right before.
    """

    NONE = "none"
    UNAVAILABLE = "unavailable"
    ANSWER_LOST = "answer_lost"
    CONFLICT = "conflict"
    HUMAN_FIRST = "human_first"
    KILLED_BEFORE = "killed_before"
    KILLED_AFTER = "killed_after"


class KilledError(BaseException):
    """The process of the monitor ends in the middle of a request."""


class HarmError(AssertionError):
    """A monitor did what no monitor may ever do."""


class Deeds:
    """What one monitor writes in one turn.

    Attributes:
        specs: times that it cordoned or uncordoned its node.
        writes: what was written, by kind and subresource.
    """

    def __init__(self, node: str, *, may_cordon: bool = True, may_write: bool = True) -> None:
        self.node = node
        self.may_cordon = may_cordon
        self.may_write = may_write
        self.specs = 0
        self.writes: Counter[str] = Counter()


_actor: ContextVar[Deeds | None] = ContextVar("actor", default=None)


class WatchedKube(FakeKube):
    """``FakeKube`` that knows the rules.

    Args:
        limit: how many nodes may be cordoned by monitors at one time.

    Attributes:
        troubles: of the next requests of monitors, in order.
        cordons, uncordons: by monitors, as node names, in order.
        flips: how often conditions of ours changed their status.
        harms: what was against the rules. A monitor's turn takes any error, also this one.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.troubles: deque[Trouble] = deque()
        self.cordons: list[str] = []
        self.uncordons: list[str] = []
        self.flips: Counter[str] = Counter()
        self.harms: list[str] = []
        self._humans_waiting = 0

    def calm_down(self) -> None:
        """Let no more requests fail, and no human come first."""
        self.troubles.clear()
        self._humans_waiting = 0

    @contextmanager
    def acting(self, deeds: Deeds) -> Iterator[Deeds]:
        """Take what the present task asks for as a monitor's."""
        token = _actor.set(deeds)
        try:
            yield deeds
        finally:
            _actor.reset(token)

    def body(self, node: str) -> Body:
        """Return a node as it is kept."""
        return self._bodies[NODES, "", node]

    def out(self) -> set[str]:
        """Return the nodes that monitors have out of service."""
        return {
            name
            for (plural, _, name), body in self._bodies.items()
            if plural == NODES and _is_ours(body)
        }

    async def get(self, kind: Kind[O], name: str, namespace: str = "") -> O:
        """Return one object."""
        trouble = self._next_trouble()
        self._fail_before(trouble)
        found = await super().get(kind, name, namespace)
        self._fail_after(trouble)
        return found

    async def create(self, kind: Kind[O], body: Json, namespace: str = "") -> O:
        """Create an object."""
        self._hold(_may_write(), "a write in a dry run")
        trouble = self._next_trouble()
        self._fail_before(trouble)
        made = await super().create(kind, body, namespace)
        self._count(kind, "")
        self._fail_after(trouble)
        return made

    async def patch(
        self,
        kind: Kind[O],
        name: str,
        patch: Json,
        *,
        namespace: str = "",
        subresource: str = "",
        strategic: bool = False,
    ) -> O:
        """Apply a merge patch."""
        self._hold(_may_write(), "a write in a dry run")
        trouble = self._next_trouble()
        self._fail_before(trouble)
        if trouble is Trouble.CONFLICT:
            self._meddle((kind.plural, namespace, name))
        if "spec" in patch and _actor.get() is not None and self._humans_waiting:
            self._humans_waiting -= 1
            self._meddle((kind.plural, namespace, name), is_human=True)
        patched = await super().patch(
            kind, name, patch, namespace=namespace, subresource=subresource, strategic=strategic
        )
        self._count(kind, subresource)
        self._fail_after(trouble)
        return patched

    def _next_trouble(self) -> Trouble:
        is_monitors = _actor.get() is not None
        trouble = self.troubles.popleft() if is_monitors and self.troubles else Trouble.NONE
        self._humans_waiting += trouble is Trouble.HUMAN_FIRST
        return trouble

    def _fail_before(self, trouble: Trouble) -> None:
        if trouble is Trouble.UNAVAILABLE:
            raise errors.UnavailableError("503 before anything was done")
        if trouble is Trouble.KILLED_BEFORE:
            raise KilledError

    def _fail_after(self, trouble: Trouble) -> None:
        if trouble is Trouble.ANSWER_LOST:
            raise errors.UnavailableError("the answer to what was done got lost")
        if trouble is Trouble.KILLED_AFTER:
            raise KilledError

    def _meddle(self, key: tuple[str, str, str], *, is_human: bool = False) -> None:
        """Let somebody else write the object first, if there is one."""
        if key not in self._bodies:
            return
        body = copy.deepcopy(self._bodies[key])
        notes = body["metadata"].setdefault("annotations", {})
        notes["example.com/seen"] = str(int(notes.get("example.com/seen", "0")) + 1)
        if is_human:
            body["spec"]["unschedulable"] = not _cordoned(body)
        token = _actor.set(None)
        try:
            self._store(key, body, Change.MODIFIED)
        finally:
            _actor.reset(token)

    def _count(self, kind: Kind[O], subresource: str) -> None:
        if (deeds := _actor.get()) is not None:
            deeds.writes[f"{kind.name}/{subresource}".lower().rstrip("/")] += 1

    def _store(self, key: tuple[str, str, str], body: Body, change: Change) -> Body:
        deeds, before = _actor.get(), self._bodies.get(key)
        if deeds is not None and key[0] == NODES:
            self._hold(before is not None, "a node that a monitor made")
            self._hold(key[2] == deeds.node, "a write to another node")
            self._hold_node(deeds, before or {}, body)
        stored = super()._store(key, body, change)
        if deeds is not None and key[0] == NODES:
            self._hold(len(self.out()) <= self.limit, "more cordons of ours than the budget has")
        return stored

    def _hold(self, rule: bool, harm: str) -> None:
        if not rule:
            self.harms.append(harm)
            raise HarmError(harm)

    def _hold_node(self, deeds: Deeds, before: Body, after: Body) -> None:
        self._hold(foreign(before) == foreign(after), "a change of what is not ours")
        record = _annotations(after).get(STATE, "")
        self._hold(len(record.encode()) < RECORD_LIMIT_BYTES, "a record that is too long")
        was, is_now = _cordoned(before), _cordoned(after)
        marked, marked_now = (CORDONED in _annotations(body) for body in (before, after))
        self._hold_conditions(before, after)
        if was == is_now:
            self._hold(not marked_now or marked, "a mark without a cordon of ours")
            return
        deeds.specs += 1
        self._hold(deeds.specs == 1, "a second cordon or uncordon in one turn")
        self._hold(_annotations(before).get(HOLD) != "true", "a cordon or uncordon on hold")
        if is_now:
            self._hold(marked_now, "a cordon without our mark")
            self._hold(not marked, "a cordon against whoever has just uncordoned")
            self._hold(deeds.may_cordon, "a new cordon while they are paused")
            self.cordons.append(deeds.node)
        else:
            self._hold(marked, "an uncordon without our mark")
            self._hold(not marked_now, "a mark without its cordon")
            self.uncordons.append(deeds.node)

    def _hold_conditions(self, before: Body, after: Body) -> None:
        old = {one["type"]: one for one in _conditions(before)}
        for new in _conditions(after):
            was = old.get(new["type"])
            if new["type"] not in _OURS or was is None:
                continue
            flipped = was["status"] != new["status"]
            self.flips[new["type"]] += flipped
            moved = was["lastTransitionTime"] != new["lastTransitionTime"]
            self._hold(flipped or not moved, "a transition that was none")


def _may_write() -> bool:
    deeds = _actor.get()
    return deeds is None or deeds.may_write


def foreign(body: Body) -> bytes:
    """Return all of a node that is not ours to change, to the letter."""
    metadata = {k: v for k, v in body["metadata"].items() if k != "resourceVersion"}
    notes: dict[str, str | None] = {
        k: v for k, v in _annotations(body).items() if not k.startswith(PREFIX)
    }
    # What people write there is theirs, but for ``clear``, which is taken off when it is done.
    notes |= {HOLD: _annotations(body).get(HOLD)}
    spec = {k: v for k, v in body.get("spec", {}).items() if k not in {"unschedulable", "taints"}}
    taints = [one for one in body.get("spec", {}).get("taints") or () if one["key"] != TAINT]
    status = {k: v for k, v in body.get("status", {}).items() if k != "conditions"}
    conditions = [one for one in _conditions(body) if one["type"] not in _OURS]
    rest = {k: v for k, v in body.items() if k not in {"metadata", "spec", "status"}}
    kept = (rest, {**metadata, "annotations": notes}, spec, taints, status, conditions)
    return msgspec.json.encode(kept, order="deterministic")


def _annotations(body: Body) -> dict[str, str]:
    found: dict[str, str] = body.get("metadata", {}).get("annotations") or {}
    return found


def _conditions(body: Body) -> Collection[Body]:
    found: list[Body] = body.get("status", {}).get("conditions") or []
    return found


def _cordoned(body: Body) -> bool:
    return bool(body.get("spec", {}).get("unschedulable"))


def _is_ours(body: Body) -> bool:
    return _cordoned(body) and CORDONED in _annotations(body)
