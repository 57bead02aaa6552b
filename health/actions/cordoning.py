"""The way into the budget and out of it: a slot before the cordon, and back only after it.

Whatever is interrupted between the two is put right by ``settle`` in the next turn, or after the
next start: a slot without a cordon is given back, a cordon without a slot gets one.
"""

from typing import Final

from health import ownership
from health.actions.cordon import Cordon
from health.actions.events import Events, of_node
from health.actions.series import Severity
from health.book import BookError
from health.budget import Claim, Held, Refusal
from health.checks.model import CheckId
from health.ledger import Ledger
from health.names import CORDONED
from slicewatch.kube.nodes import WholeNode
from slicewatch.service import logs

log = logs.logger(__name__)

HELD: Final = "GPUNodeCordonHeld"
TAKEN: Final = "GPUNodeCordoned"
RETURNED: Final = "GPUNodeUncordoned"
GIVEN_UP: Final = "GPUNodeCordonGivenUp"


class Cordoning:
    """Cordons, as far as the cluster can spare the node, and says so.

    Args:
        ledger: our part of the budget.
        cordon: writes to the node.
        events: told of what is done, and of what is held.
        pool_label: of nodes, whose value is their pool; empty for none.

    All methods but ``settle`` raise ``ConflictError`` where the node has changed since it was
    read, and any other ``KubeError`` where it is not known whether the write was made.
    """

    def __init__(self, ledger: Ledger, cordon: Cordon, events: Events, *, pool_label: str) -> None:
        self._ledger = ledger
        self._cordon = cordon
        self._events = events
        self._pool_label = pool_label
        self._held: Refusal | None = None

    async def cordon(
        self, node: WholeNode, step: ownership.Cordon, record: str, *, now: float, wall: float
    ) -> WholeNode | Held:
        """Cordon the node; return it as it is then, or why it has to wait."""
        held = await self._ledger.acquire(self._claim(node, step))
        if held is not None:
            self._say_held(node, held, now=now, wall=wall)
            return held
        self._held = None
        cordoned = await self._cordon.cordon(node, record, step.mark)
        message = "; ".join(fault.message for fault in step.grounds)
        self._events.say(of_node(node), TAKEN, f"cordoned: {message}", now=now, wall=wall)
        return cordoned

    async def uncordon(
        self, node: WholeNode, record: str, *, now: float, wall: float
    ) -> WholeNode:
        """Take our cordon back; the slot follows with ``settle``."""
        freed = await self._cordon.uncordon(node, record)
        message = "uncordoned: no fault that asks for a cordon is left"
        self._events.say(
            of_node(node), RETURNED, message, severity=Severity.NORMAL, now=now, wall=wall
        )
        return freed

    async def give_up(self, node: WholeNode, record: str, *, now: float, wall: float) -> WholeNode:
        """Take our marks off a node that somebody else has uncordoned."""
        left = await self._cordon.give_up(node, record)
        message = "somebody has uncordoned the node: its present faults are no reason to cordon it"
        self._events.say(
            of_node(node), GIVEN_UP, message, severity=Severity.NORMAL, now=now, wall=wall
        )
        return left

    async def settle(self, node: WholeNode, *, wanted: bool) -> None:
        """Bring our part of the budget in line with the node; in every turn, at its end.

        Args:
            node: as it is now.
            wanted: a cordon was tried or held in this turn.

        Raises:
            KubeError: it could not be done; the next turn tries again.
        """
        mark = node.annotations.get(CORDONED)
        try:
            if mark is not None and node.spec.unschedulable:
                await self._ledger.hold(mark.partition("/")[0], self._pool(node))
            elif not wanted:
                self._held = None
                await self._ledger.release()
        except BookError as error:
            log.warning("budget not settled", error=str(error))

    def _say_held(self, node: WholeNode, held: Held, *, now: float, wall: float) -> None:
        """Say it when it begins, or the reason is another one."""
        if held.refusal is self._held:
            return
        self._held = held.refusal
        log.warning("cordon held", reason=held.refusal, message=held.message)
        self._events.say(of_node(node), HELD, held.message, now=now, wall=wall)

    def _claim(self, node: WholeNode, step: ownership.Cordon) -> Claim:
        found: dict[CheckId, float] = {}
        for fault in step.grounds:
            since = fault.since.at_seconds
            found[fault.check] = min(since, found.get(fault.check, since))
        return Claim(
            node=node.metadata.name, uid=node.metadata.uid, found=found, pool=self._pool(node)
        )

    def _pool(self, node: WholeNode) -> str:
        return node.metadata.labels.get(self._pool_label, "") if self._pool_label else ""
