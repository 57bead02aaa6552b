"""Our conditions on the node's status: written when they change, and now and then to say they live.

A strategic merge patch by type, so that what others write meanwhile stays as it is, and nothing
else of the node is ever sent. Those of an earlier release, which nobody says any more and which
would stay for ever, are taken away.
"""

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from health.checks.model import Condition
from health.decision import NodeCondition
from slicewatch.kube import nodes
from slicewatch.kube.nodes import WHOLE_NODE, WholeNode
from slicewatch.kube.patches import DIRECTIVE
from slicewatch.kube.protocol import Kube
from slicewatch.kube.times import timestamp

HEARTBEAT_SECONDS: Final = 300.0
# Never sooner than that, so that a healthy node costs at most twelve writes an hour; spread, so
# that a fleet that started together does not write together.
LATEST_HEARTBEAT: Final = 1.2

FORMER: Final[tuple[str, ...]] = ()
"""Types that earlier releases wrote: who renames or removes a ``Condition`` adds the old name."""

_STATUS: Final = {True: "True", False: "False", None: "Unknown"}


class Conditions:
    """Our conditions of one node.

    Args:
        kube: where the node is.
        node: its name.
        former: types that are ours and no longer said.
        spread: returns a random number between two; sets the times of heartbeats apart.
    """

    def __init__(
        self,
        kube: Kube,
        node: str,
        *,
        former: Collection[str] = FORMER,
        spread: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._kube = kube
        self._node = node
        self._former = former
        self._spread = spread
        self._due: float | None = None

    async def show(
        self,
        node: WholeNode,
        wanted: Mapping[Condition, NodeCondition],
        *,
        now: float,
        wall: float,
    ) -> WholeNode:
        """Write what differs from what the node says; return the node as it is then.

        Args:
            node: as just read.
            wanted: what there is to say; a condition that is missing stays as it is.
            now: seconds of a monotonic clock.
            wall: seconds since 1970.

        Raises:
            KubeError: the write failed; the next call makes up for it.
        """
        if self._due is None:
            # What was said before the restart is young enough for a while.
            self._due = now + self._spread(0, HEARTBEAT_SECONDS)
        due = now >= self._due
        time = datetime.fromtimestamp(wall, UTC).replace(microsecond=0)
        said = changes(node.status.conditions, wanted, time, former=self._former, heartbeat=due)
        if not said:
            return node
        patch = {"status": {"conditions": said}}
        written = await self._kube.patch(
            WHOLE_NODE, self._node, patch, subresource="status", strategic=True
        )
        self._due = now + self._spread(1, LATEST_HEARTBEAT) * HEARTBEAT_SECONDS
        return written


def changes(
    present: Iterable[nodes.NodeCondition],
    wanted: Mapping[Condition, NodeCondition],
    time: datetime,
    *,
    former: Collection[str] = FORMER,
    heartbeat: bool = False,
) -> list[dict[str, Any]]:
    """Return the elements of a strategic merge patch, none where all is said already.

    All that is wanted is in it or nothing: one write carries every heartbeat.
    """
    found = {one.type: one for one in present}
    stale = sorted(kind for kind in found if kind in former)
    if not wanted:
        heartbeat = False
    same = all(_same(found.get(kind), condition) for kind, condition in wanted.items())
    if same and not stale and not heartbeat:
        return []
    said = [_said(kind, one, found.get(kind), time) for kind, one in sorted(wanted.items())]
    return said + [{DIRECTIVE: "delete", "type": kind} for kind in stale]


def _same(old: nodes.NodeCondition | None, new: NodeCondition) -> bool:
    return old is not None and (old.status, old.reason, old.message) == (
        _STATUS[new.present],
        new.reason,
        new.message,
    )


def _said(
    kind: Condition, new: NodeCondition, old: nodes.NodeCondition | None, time: datetime
) -> dict[str, Any]:
    """Return a condition; the time of its transition moves with its status and nothing else."""
    status = _STATUS[new.present]
    since = old.last_transition_time if old is not None and old.status == status else None
    return {
        "type": str(kind),
        "status": status,
        "reason": new.reason,
        "message": new.message,
        "lastHeartbeatTime": timestamp(time.timestamp()),
        "lastTransitionTime": timestamp((since or time).timestamp()),
    }
